// On a narrow screen all stands in one column, and what is read first comes first.
import assert from "node:assert/strict";

import { NARROW, WIDE } from "../stage/stage.mjs";

/** Of Now, from top to bottom. */
const ORDER = ["#decide", "#agents", "#claims", "#waits", "#acks", "#debt", "#health"];

export default async function (stage) {
  const { page } = stage;
  await page.setViewportSize(NARROW);
  await stage.go("");
  const tops = [];
  for (const part of ORDER) tops.push((await page.locator(part).boundingBox()).y);
  assert.deepEqual(tops, [...tops].sort((one, other) => one - other), ORDER.join(", "));
  const { y } = await page.locator("#decide .what").first().boundingBox();
  assert.ok(y < NARROW.height, `what is to be decided is seen without scrolling, at ${y}`);
  await page.setViewportSize(WIDE);
}
