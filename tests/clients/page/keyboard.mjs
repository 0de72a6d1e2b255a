// Everything with the keyboard alone: in order, seen, and quicker with shortcuts.
import assert from "node:assert/strict";

import { screens } from "../stage/screens.mjs";

/** More stops than any screen of the story has. */
const MANY = 400;

export default async function (stage) {
  await skips(stage);
  for (const [name, path] of screens(stage)) await order(stage, name, path);
  await shortcuts(stage);
  await rows(stage);
  await slider(stage);
  await stays(stage);
  await writes(stage);
}

/** The button of a form keeps the focus while the list that it stands in is updated. */
async function stays(stage) {
  const { page, bus } = stage;
  await stage.go("contacts");
  const rows = page.locator("main tbody tr");
  const count = await rows.count();
  await page.locator(`form[action$="/link"] button`).first().focus();
  await page.evaluate(() => (window.focused = document.activeElement));
  bus.relay("RedForest", "policy", "contacts_only");
  bus.relay("BlueLake", "link", "--target", "RedForest");
  await page.waitForFunction((count) => document.querySelectorAll("main tbody tr").length > count, count);
  assert.ok(await page.evaluate(() => document.activeElement === window.focused && window.focused.isConnected));
}

/** The first stop leads past the navigation. */
async function skips(stage) {
  const { page } = stage;
  await stage.go("");
  await page.keyboard.press("Tab");
  const link = page.locator("a:focus");
  assert.match(await link.innerText(), /skip/i);
  assert.ok((await link.boundingBox()).y >= 0, "it is seen while it has the focus");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.ok(await page.evaluate(() => document.querySelector("main").contains(document.activeElement)), "the next stop is inside");
}

/** Every stop follows the one before, is seen to have the focus, and none is left out. */
async function order(stage, name, path) {
  const { page } = stage;
  await page.goto(path);
  const wanted = await page.evaluate(() => {
    const all = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
    const seen = (element) => !element.disabled && element.checkVisibility() && element.tabIndex >= 0;
    window.stops = [...document.querySelectorAll(all)].filter(seen);
    window.visited = [];
    return window.stops.length;
  });
  assert.ok(wanted < MANY, `${name} has ${wanted} stops`);
  for (let count = 0; count < MANY; count += 1) {
    await page.keyboard.press("Tab");
    const trouble = await page.evaluate(stop);
    if (trouble === "end") break;
    assert.equal(trouble, "", `${name}: ${trouble}`);
  }
  const missed = await page.evaluate(() => {
    // Of radio buttons, one is the stop for all.
    const reached = (element) => window.visited.includes(element) || (element.type === "radio" && !element.checked);
    return window.stops.filter((element) => element.isConnected && !reached(element)).map((element) => element.outerHTML.slice(0, 120));
  });
  assert.deepEqual(missed, [], `${name}: all are reached`);
}

/** What is wrong with where the focus is now. Runs in the browser. */
function stop() {
  const element = document.activeElement;
  if (!element || element === document.body) return "end";
  const last = window.visited.at(-1);
  window.visited.push(element);
  // A field for a date has stops inside, which the browser marks.
  if (last === element) return "";
  if (last && last.isConnected && !(last.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) return `goes back to ${element.outerHTML.slice(0, 120)}`;
  const style = getComputedStyle(element);
  const ring = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
  const { width, height } = element.getBoundingClientRect();
  if (!ring || width * height === 0) return `the focus is not seen on ${element.outerHTML.slice(0, 120)}`;
  return "";
}

async function shortcuts(stage) {
  const { page } = stage;
  await stage.go("");
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  await page.locator(".switch summary").focus();
  await page.keyboard.press("Enter");
  await page.locator(".switch[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".switch:not([open])").waitFor();
  for (const [key, path] of Object.entries({ t: "threads", a: "agents", r: "reservations", c: "contacts", h: "history", n: "" })) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.waitForURL(stage.at(path));
  }
  await page.keyboard.press("w");
  await page.waitForURL(/\/write/);
  await stage.go("");
  await page.keyboard.press("/");
  const field = page.locator("input[name=words]:focus");
  await field.waitFor();
  await page.keyboard.type("session");
  await page.keyboard.press("Enter");
  await page.waitForURL(/search\?words=session/);
}

/** Through a list, and into what is chosen. */
async function rows(stage) {
  const { page } = stage;
  await stage.go("threads");
  await page.keyboard.press("j");
  const first = await page.locator(":focus").innerText();
  await page.keyboard.press("j");
  assert.notEqual(await page.locator(":focus").innerText(), first);
  await page.keyboard.press("k");
  assert.equal(await page.locator(":focus").innerText(), first);
  await page.keyboard.press("Enter");
  await page.waitForURL(/threads\/./);
}

/** A day is played with the arrow keys. */
async function slider(stage) {
  const { page } = stage;
  await stage.go(`replay?day=${stage.told.day}`);
  const range = page.locator("input[type=range]");
  await range.focus();
  await page.keyboard.press("Home");
  const first = await range.inputValue();
  const held = () => page.locator("main").innerText();
  const before = await held();
  for (let count = 0; count < 12; count += 1) await page.keyboard.press("ArrowRight");
  assert.equal(Number(await range.inputValue()), Number(first) + 12);
  await page.waitForFunction((before) => document.querySelector("main").innerText !== before, before);
  assert.ok(await range.evaluate((element) => element === document.activeElement), "it can be moved on");
}

/** A message without a mouse. */
async function writes(stage) {
  const { page } = stage;
  await stage.go("write?to=BlueLake");
  await tabTo(page, "[name=subject]");
  await page.keyboard.type("By keyboard");
  await tabTo(page, "[name=body]");
  await page.keyboard.type("Without a mouse.");
  await tabTo(page, `form[action$="/send"] button:not([type=button])`);
  await page.keyboard.press("Enter");
  await page.getByText(/Sent #\d+ to BlueLake/).first().waitFor();
}

async function tabTo(page, selector) {
  for (let count = 0; count < MANY; count += 1) {
    if (await page.evaluate((selector) => document.activeElement.matches(selector), selector)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`${selector} is not reached`);
}
