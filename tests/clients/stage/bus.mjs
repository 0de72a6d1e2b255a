// The command line, for what agents and the human do meanwhile.
import { spawnSync } from "node:child_process";
import { readFileSync, renameSync, writeFileSync } from "node:fs";

export class Bus {
  constructor(told) {
    this.told = told;
  }

  /** What a command answers as JSON, whatever came of it; `""` for a call without an agent. */
  answer(agent, ...args) {
    const named = agent ? ["--agent", agent] : [];
    const options = { cwd: this.told.project, encoding: "utf8" };
    const { stdout, stderr } = spawnSync(this.told.relay, ["--json", ...named, ...args], options);
    if (!stdout) throw new Error(`relay ${args.join(" ")}: ${stderr}`);
    return JSON.parse(stdout);
  }

  /** The result of a command that goes well. */
  relay(agent, ...args) {
    const answer = this.answer(agent, ...args);
    if (!answer.ok) throw new Error(`relay ${args.join(" ")}: ${JSON.stringify(answer.error)}`);
    return answer.result;
  }

  /** The number of the newest event: as long as it is the same, nothing happened. */
  tip() {
    return this.relay("", "log", "--limit", "1").events[0]?.number ?? 0;
  }

  now() {
    return Number(readFileSync(this.told.clock, "utf8"));
  }

  setClock(millis) {
    writeFileSync(`${this.told.clock}.scene`, String(millis));
    renameSync(`${this.told.clock}.scene`, this.told.clock);
  }
}
