// Brings relay into OpenCode: each event goes to `relay hook` as one line of JSON, and its answer is applied. Whatever goes
// wrong here, or in relay, the user's own work goes on as if this file were not there.

import { spawn } from "node:child_process";

const RELAY = "RELAY_PROGRAM";
const SECONDS = 10;
const TOOLS = new Set(["edit", "write", "multiedit", "patch", "apply_patch", "bash"]);

/** Asks relay. No answer, a late one and one that is no JSON are all `{}`. */
function ask(event, cwd, flags = [], seconds = SECONDS) {
  return new Promise((resolve) => {
    let text = "";
    let timer;
    const done = (answer) => {
      clearTimeout(timer);
      resolve(answer && typeof answer === "object" ? answer : {});
    };
    try {
      const child = spawn(RELAY, ["hook", ...flags], { cwd, stdio: ["pipe", "pipe", "ignore"] });
      if (seconds) {
        timer = setTimeout(() => {
          child.kill();
          done({});
        }, seconds * 1000);
      } else {
        child.unref();
      }
      child.on("error", () => done({}));
      child.stdin.on("error", () => {});
      child.stdout.on("data", (part) => (text += part));
      child.on("close", () => {
        try {
          done(JSON.parse(text));
        } catch {
          done({});
        }
      });
      child.stdin.end(JSON.stringify({ relay_plugin: "opencode", version: 1, cwd, ...event }) + "\n");
    } catch {
      done({});
    }
  });
}

export const Relay = async ({ client, directory }) => {
  const parents = new Map();
  const models = new Map();
  const idle = new Map();

  const about = (name, session, more = {}) => ({
    hook_event_name: name,
    session_id: session,
    parent_session_id: parents.get(session),
    model: models.get(session),
    ...more,
  });

  const prompt = (session, text) =>
    client.session.promptAsync({ path: { id: session }, body: { parts: [{ type: "text", text }] } });

  /** At the end of a turn: what relay has to say at once, or else what comes while nothing happens. */
  const rest = async (session) => {
    const turn = {};
    idle.set(session, turn);
    const now = await ask(about("session.idle", session), directory);
    const answer = now.prompt ? now : await ask(about("session.idle", session), directory, ["--idle"], 0);
    if (answer.prompt && idle.get(session) === turn) {
      idle.delete(session);
      await prompt(session, answer.prompt);
    }
  };

  const happened = async (event) => {
    const info = event.properties?.info;
    const session = event.properties?.sessionID ?? info?.id;
    if (!session) return;
    if (event.type === "session.created") {
      if (info?.parentID) parents.set(session, info.parentID);
      await ask(about(event.type, session), directory);
    } else if (event.type === "session.idle") {
      await rest(session);
    } else if (event.type === "session.compacted") {
      await ask(about(event.type, session), directory);
    } else if (event.type === "session.deleted") {
      idle.delete(session);
      await ask(about(event.type, session), directory);
      parents.delete(session);
      models.delete(session);
    }
  };

  return {
    event: async ({ event }) => {
      // Nobody waits for it, so that nothing here can hold up the program.
      happened(event).catch(() => {});
    },

    "chat.message": async (input, output) => {
      try {
        idle.delete(input.sessionID);
        if (input.model) models.set(input.sessionID, `${input.model.providerID}/${input.model.modelID}`);
        const answer = await ask(about("chat.message", input.sessionID), directory);
        const first = output.parts?.find((part) => part.type === "text");
        if (answer.context && first) first.text = `${first.text}\n\n${answer.context}`;
      } catch {}
    },

    "tool.execute.before": async (input, output) => {
      if (!TOOLS.has(input.tool)) return;
      let answer = {};
      try {
        idle.delete(input.sessionID);
        const call = { tool_name: input.tool, tool_use_id: input.callID, tool_input: output.args };
        answer = await ask(about("tool.execute.before", input.sessionID, call), directory);
      } catch {}
      // The one thing that is meant to stop a call.
      if (answer.deny) throw new Error(answer.deny);
    },

    "tool.execute.after": async (input, output) => {
      if (!TOOLS.has(input.tool)) return;
      try {
        const call = { tool_name: input.tool, tool_use_id: input.callID, tool_input: input.args ?? {} };
        const answer = await ask(about("tool.execute.after", input.sessionID, call), directory);
        if (answer.context && typeof output?.output === "string") output.output += `\n\n${answer.context}`;
      } catch {}
    },
  };
};
