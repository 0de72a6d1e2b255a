// Brings relay into OpenCode: each event goes to `relay hook` as one line of JSON, and its answer is applied. Whatever goes
// wrong here, or in relay, the user's own work goes on as if this file were not there.

import { spawn } from "node:child_process";

const RELAY = "RELAY_PROGRAM";
const SECONDS = 10;
const TOOLS = new Set(["edit", "write", "multiedit", "patch", "apply_patch", "bash"]);

/** Asks relay. No answer, a late one and one that is no object are all `{}`. `started` gets what can be ended early. */
function ask(event, { flags = [], seconds = SECONDS, started = () => {} } = {}) {
  return new Promise((resolve) => {
    let text = "";
    let timer;
    const done = (answer) => {
      clearTimeout(timer);
      resolve(answer && typeof answer === "object" ? answer : {});
    };
    try {
      const child = spawn(RELAY, ["hook", ...flags], { cwd: event.cwd, stdio: ["pipe", "pipe", "ignore"] });
      const stop = () => {
        child.kill();
        done({});
      };
      if (seconds) timer = setTimeout(stop, seconds * 1000);
      started(stop);
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
      child.stdin.end(JSON.stringify(event) + "\n");
    } catch {
      done({});
    }
  });
}

export const Relay = async ({ client, directory }) => {
  const parents = new Map();
  const models = new Map();
  const waiting = new Map();
  const begun = new Map();

  /** The session that started this one, if one did; sessions that go on after a restart are looked up. */
  const parent = async (session) => {
    if (!parents.has(session)) {
      const found = await Promise.resolve(client.session.get({ path: { id: session } })).catch(() => undefined);
      parents.set(session, found?.data?.parentID);
    }
    return parents.get(session);
  };

  const about = async (name, session, more = {}) => ({
    relay_plugin: "opencode",
    version: 1,
    hook_event_name: name,
    session_id: session,
    parent_session_id: await parent(session),
    model: models.get(session),
    cwd: directory,
    pid: process.pid,
    ...more,
  });

  /** The session is at work again: nobody has to wait for something to wake it with. */
  const busy = (session) => {
    waiting.get(session)?.();
    waiting.delete(session);
  };

  /** At the end of a turn: what relay has to say at once, or else what comes while nothing happens. */
  const rest = async (session) => {
    busy(session);
    const event = await about("session.idle", session);
    let answer = await ask(event);
    if (!answer.prompt && !event.parent_session_id) {
      let mine;
      const started = (stop) => waiting.set(session, (mine = stop));
      answer = await ask(event, { flags: ["--idle"], seconds: 0, started });
      if (waiting.get(session) !== mine) return;
      waiting.delete(session);
    }
    if (answer.prompt) {
      const body = { parts: [{ type: "text", text: answer.prompt }] };
      await client.session.promptAsync({ path: { id: session }, body });
    }
  };

  const happened = async ({ type, properties }) => {
    const session = properties?.sessionID ?? properties?.info?.id;
    if (!session) return;
    if (type === "session.idle") {
      await rest(session);
    } else if (type === "session.created" || type === "session.compacted") {
      if (properties.info) parents.set(session, properties.info.parentID);
      await ask(await about(type, session));
    } else if (type === "session.deleted") {
      busy(session);
      await ask(await about(type, session));
      parents.delete(session);
      models.delete(session);
      begun.delete(session);
    }
  };

  return {
    event: async ({ event }) => {
      // Nobody waits for it, so that nothing here can hold up the program.
      const told = happened(event).catch(() => {});
      if (event.type === "session.created") begun.set(event.properties?.sessionID, told);
    },

    "chat.message": async (input, output) => {
      try {
        busy(input.sessionID);
        const model = input.model ?? output.message?.model;
        if (model) models.set(input.sessionID, `${model.providerID}/${model.modelID}`);
        // One word after the other, and a session that goes on after a restart has begun long ago.
        begun.set(input.sessionID, await begun.get(input.sessionID));
        const answer = await ask(await about("chat.message", input.sessionID));
        const first = output.parts.find((part) => part.type === "text");
        if (answer.context && first) first.text += `\n\n${answer.context}`;
      } catch {}
    },

    "tool.execute.before": async (input, output) => {
      if (!TOOLS.has(input.tool)) return;
      let answer = {};
      try {
        busy(input.sessionID);
        const call = { tool_name: input.tool, tool_use_id: input.callID, tool_input: output.args };
        answer = await ask(await about("tool.execute.before", input.sessionID, call));
      } catch {}
      // The one thing that is meant to stop a call.
      if (answer.deny) throw new Error(answer.deny);
    },

    "tool.execute.after": async (input, output) => {
      if (!TOOLS.has(input.tool)) return;
      try {
        const call = { tool_name: input.tool, tool_use_id: input.callID, tool_input: input.args };
        const answer = await ask(await about("tool.execute.after", input.sessionID, call));
        if (answer.context && typeof output.output === "string") output.output += `\n\n${answer.context}`;
      } catch {}
    },

    // So that `relay` in a shell knows whose it is.
    "shell.env": async (input, output) => {
      if (input.sessionID && output.env) output.env.RELAY_SESSION = (await parent(input.sessionID)) ?? input.sessionID;
    },

    // The program ends, and with it what it does for its sessions.
    dispose: async () => {
      for (const session of [...waiting.keys()]) busy(session);
      const own = [...begun.keys()].filter((session) => !parents.get(session));
      await Promise.all(own.map(async (session) => ask(await about("dispose", session)))).catch(() => {});
    },
  };
};
