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
  for (const screen of ["", "replay", "talk", "search"]) {
    await stage.go(screen);
    const { x, width } = await page.locator(".screens [aria-current]").boundingBox();
    assert.ok(x >= 0 && x + width <= NARROW.width, `the entry of ${screen || "now"} is seen, from ${x} on`);
    assert.equal(await page.evaluate(() => scrollY), 0, "and the page begins where it begins");
  }
  await page.setViewportSize(WIDE);
}
