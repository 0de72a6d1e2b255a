// However long a name is and however wide the screen, nothing has to be scrolled to sideways, and no letter paints over other rows.
import assert from "node:assert/strict";

import { screens } from "../stage/screens.mjs";
import { WIDE } from "../stage/stage.mjs";

const WIDTHS = [320, 360, 560, 700, 790, 850, 900, 970, 1100, 1280];

export default async function (stage) {
  const { page } = stage;
  for (const [name, path] of screens(stage)) {
    await page.goto(path);
    for (const width of WIDTHS) {
      await page.setViewportSize({ ...WIDE, width });
      await stage.fits(`${name} at ${width}`);
    }
    assert.deepEqual(await page.evaluate(unbounded), [], name);
  }
}

/** Texts with marks above and below that nothing keeps within their row. Runs in the browser. */
function unbounded() {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const told = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!/\p{M}/u.test(node.textContent) || !node.parentElement.checkVisibility() || node.parentElement.closest("option, textarea")) continue;
    let above = node.parentElement;
    while (above && getComputedStyle(above).overflowY === "visible") above = above.parentElement;
    if (!above || above.matches("main, body, html")) told.push(node.parentElement.outerHTML.slice(0, 160));
  }
  return told;
}
