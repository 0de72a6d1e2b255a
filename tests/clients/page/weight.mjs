// What the first load of each screen weighs, in a project with hundreds of everything.
import assert from "node:assert/strict";

import { screens } from "../stage/screens.mjs";

/** What one may weigh: the document, and everything that it brings. */
const MOST = 200_000;

export default async function (stage) {
  const weights = {};
  for (const [name, path] of screens(stage)) {
    // Somebody who was never here: nothing is kept from before.
    const context = await stage.again();
    weights[name] = await weighed(await context.newPage(), path);
    await context.close();
  }
  const heavy = Object.entries(weights).filter(([, bytes]) => bytes > MOST);
  assert.deepEqual(heavy, []);
  return weights;
}

/** Bytes that came over the wire, headers and all. */
async function weighed(page, path) {
  const session = await page.context().newCDPSession(page);
  let bytes = 0;
  await session.send("Network.enable");
  session.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
  await page.goto(path, { waitUntil: "load" });
  assert.ok(bytes > 1_000, `${path} was counted`);
  return bytes;
}
