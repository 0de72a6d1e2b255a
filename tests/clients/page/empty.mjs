// A project in which nothing happens yet, and a machine on which there is none: each screen says so, and what to do.
import assert from "node:assert/strict";

import { screens } from "../stage/screens.mjs";

/** Those that are about one thing, or have something to show from the first agent on. */
const NEVER_EMPTY = ["conversation", "agent", "agents", "write", "history", "replay"];

export default async function (stage) {
  for (const [name, path] of screens(stage).filter(([name]) => !NEVER_EMPTY.includes(name))) {
    // A machine without projects has only the list of them, and one with projects always something in it.
    if ((name === "projects") === (stage.told.slug !== null)) continue;
    await stage.page.goto(path);
    const empty = stage.page.locator("main .empty");
    await empty.first().waitFor();
    // A command to type, or a link to press.
    assert.ok((await empty.first().locator("code, a").count()) > 0, `${name} says what to do: ${await empty.first().innerText()}`);
    await stage.look(`empty-${name}`);
  }
}
