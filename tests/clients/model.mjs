// A model that says what a script says: on the loopback, to whichever program asks, in the API that the program speaks. It runs the
// program itself, and ends with it.
// Arguments: the script, where each request is written down as a line of JSON, then the program and its arguments.
// The script is a list of lanes, `{"hears": TEXT, "turns": [TURN]}`: a request takes the next turn of the first lane whose text is in it.
// A turn says something (`text`) or calls a tool (`tool`, `input`); before that, `meanwhile` runs as a shell command.
import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:http";

const PORT = 8080;
const [scriptFile, requestsFile, program, ...args] = process.argv.slice(2);
const lanes = JSON.parse(readFileSync(scriptFile, "utf8"));

/** A name that no other has, also in a session that is resumed. */
const named = (kind) => `${kind}${randomUUID()}`;

/** What comes next. Programs also ask for titles and the like: without tools, and not as a part of the story. */
function next(raw, { tools }) {
  const lane = tools?.length ? lanes.find(({ hears }) => raw.includes(hears)) : undefined;
  const turn = lane?.turns.shift() ?? { text: "done" };
  if (turn.meanwhile) {
    const { status, stderr } = spawnSync("sh", ["-c", turn.meanwhile], { encoding: "utf8" });
    if (status !== 0) throw new Error(`${turn.meanwhile}: ${stderr}`);
  }
  return turn;
}

/** Anthropic's messages. */
function messages(turn, { model, stream }) {
  const block = turn.tool
    ? { type: "tool_use", id: named("toolu_"), name: turn.tool, input: turn.input }
    : { type: "text", text: turn.text };
  const usage = { input_tokens: 10, output_tokens: 5 };
  const stop_reason = turn.tool ? "tool_use" : "end_turn";
  const message = { id: named("msg_"), type: "message", role: "assistant", model, content: [block], stop_reason, usage };
  if (!stream) return message;
  const [empty, delta] = turn.tool
    ? [{ ...block, input: {} }, { type: "input_json_delta", partial_json: JSON.stringify(turn.input) }]
    : [{ ...block, text: "" }, { type: "text_delta", text: turn.text }];
  return [
    { type: "message_start", message: { ...message, content: [], stop_reason: null } },
    { type: "content_block_start", index: 0, content_block: empty },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason }, usage },
    { type: "message_stop" },
  ];
}

/** OpenAI's responses. A tool whose input is a text is one of the custom kind; a dot in its name parts it from its namespace. */
function responses(turn) {
  const call_id = named("call_");
  const [tool, namespace] = (turn.tool ?? "").split(".").reverse();
  const item = !turn.tool
    ? { type: "message", role: "assistant", content: [{ type: "output_text", text: turn.text, annotations: [] }] }
    : typeof turn.input === "string"
      ? { type: "custom_tool_call", call_id, name: tool, input: turn.input }
      : { type: "function_call", call_id, name: tool, namespace, arguments: JSON.stringify(turn.input) };
  Object.assign(item, { id: named("item_"), status: "completed" });
  const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
  const response = { id: named("resp_"), object: "response" };
  return [
    { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress" } },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: { ...response, status: "completed", output: [item], usage } },
  ];
}

/** OpenAI's chat completions. */
function completions(turn, { model, stream }) {
  const called = { name: turn.tool, arguments: JSON.stringify(turn.input) };
  const said = turn.tool
    ? { tool_calls: [{ index: 0, id: named("call_"), type: "function", function: called }] }
    : { content: turn.text };
  const message = { role: "assistant", ...said };
  const finish_reason = turn.tool ? "tool_calls" : "stop";
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const base = { id: named("chatcmpl-"), created: 0, model };
  if (!stream) {
    return { ...base, object: "chat.completion", choices: [{ index: 0, finish_reason, message }], usage };
  }
  const chunk = (choice) => ({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, ...choice }] });
  return [
    chunk({ delta: message, finish_reason: null }),
    { ...chunk({ delta: {}, finish_reason }), usage },
    "[DONE]",
  ];
}

/** Gemini's contents. */
function contents(turn) {
  const part = turn.tool ? { functionCall: { name: turn.tool, args: turn.input } } : { text: turn.text };
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 };
  return { candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 }], usageMetadata };
}

/** The answer to a request: one object, or many as a stream of events. */
function answered(path, raw) {
  const body = JSON.parse(raw);
  if (path.endsWith(":countTokens")) return { totalTokens: 10 };
  if (path.endsWith("/count_tokens")) return { input_tokens: 10 };
  if (path.endsWith("/messages")) return messages(next(raw, body), body);
  if (path.endsWith("/responses")) return responses(next(raw, body));
  if (path.endsWith("/chat/completions")) return completions(next(raw, body), body);
  if (path.endsWith(":generateContent")) return contents(next(raw, body));
  if (path.endsWith(":streamGenerateContent")) return [contents(next(raw, body))];
  throw new Error(`no model is asked at ${path}`);
}

const event = (data) =>
  `${data.type ? `event: ${data.type}\n` : ""}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

function serve(request, response) {
  let raw = "";
  request.on("data", (part) => (raw += part));
  request.on("end", () => {
    const path = request.url.split("?")[0];
    if (request.method !== "POST") return response.writeHead(404).end();
    appendFileSync(requestsFile, `${JSON.stringify({ path, body: JSON.parse(raw) })}\n`);
    try {
      const answer = answered(path, raw);
      const isStream = Array.isArray(answer);
      response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
      response.end(isStream ? answer.map(event).join("") : JSON.stringify(answer));
    } catch (fault) {
      console.error(`model: ${fault.message}`);
      response.writeHead(500, { "content-type": "application/json" }).end(JSON.stringify({ error: { message: fault.message } }));
    }
  });
}

createServer(serve).listen(PORT, "127.0.0.1", () => {
  // One that hangs is ended.
  const child = spawn(program, args, { stdio: ["ignore", "inherit", "inherit"], timeout: 60_000 });
  child.on("exit", (status) => process.exit(status ?? 1));
});
