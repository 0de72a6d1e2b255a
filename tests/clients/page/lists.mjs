// History by each filter, a day replayed, search page by page, and the way from one project to another.
import assert from "node:assert/strict";

export default async function (stage) {
  await history(stage);
  await replay(stage);
  await search(stage);
  await receipts(stage);
  await switches(stage);
}

/** The numbers of the events that are shown. */
async function numbers(page) {
  const ids = await page.locator("#history .events > li").evaluateAll((rows) => rows.map((row) => row.id));
  return ids.map((id) => Number(id.slice(1)));
}

/** Each filter, typed into the form, shows what the command line finds with the same words. */
async function history(stage) {
  const { page, bus } = stage;
  const filters = [
    { by: "BlueLake" },
    { thread: "bd-101" },
    { path: "src/auth/token.rs" },
    { since: "10m" },
    { until: "2026-11-15T12:00:00Z" },
    { since: "2026-11-16", until: "10m", by: "RedForest" },
  ];
  for (const filter of filters) {
    await stage.go("history");
    for (const [name, value] of Object.entries(filter)) await page.locator(`main input[name=${name}]`).fill(value);
    await asked(stage, filter);
  }
  await stage.go("history");
  await page.getByText("Kinds of events").first().click();
  for (const kind of ["message_sent", "mail_acked"]) await page.locator(`input[name=kind][value=${kind}]`).check();
  await asked(stage, { kind: "message_sent,mail_acked" });
  await mends(stage);
}

/** A filter that cannot be stays in the form, with what is wrong with it, and is mended there. */
async function mends(stage) {
  const { page } = stage;
  const field = (name) => page.locator(`main input[name=${name}]`);
  await stage.go("history");
  await field("by").fill("BlueLake");
  await field("since").fill("yesterday-ish");
  stage.troubles.expect(/status of 400/);
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByRole("alert").getByText("INPUT_INVALID").waitFor();
  assert.deepEqual([await field("by").inputValue(), await field("since").inputValue()], ["BlueLake", "yesterday-ish"]);
  await field("since").fill("10m");
  await asked(stage, { by: "BlueLake", since: "10m" });
}

async function asked(stage, filter) {
  const { page, bus } = stage;
  await page.getByRole("button", { name: "Filter" }).click();
  await page.waitForURL(/history\?/);
  const flags = Object.entries(filter).flatMap(([name, value]) => [`--${name}`, value]);
  const expected = bus.relay("human", "log", "--limit", "50", ...flags).events.map(({ number }) => number);
  assert.ok(expected.length > 0, `${flags} finds something`);
  assert.deepEqual((await numbers(page)).slice(0, 50), expected, flags.join(" "));
}

/** What was held is drawn as it was held then. */
async function replay(stage) {
  const { page } = stage;
  await stage.go(`replay?day=${stage.told.day}`);
  const range = page.locator("[data-slider]");
  const [first, last] = [await range.getAttribute("min"), await range.getAttribute("max")];
  const moment = page.locator("#moment");
  await range.fill(first);
  await moment.getByText("Nobody held anything.").waitFor();
  await range.fill(last);
  await moment.getByText("token.rs").first().waitFor();
  assert.equal(await moment.locator(".leaf.is-contested").count(), 2, "what was contested then is marked");
  // The same without the slider.
  await page.locator("#at").fill(first);
  await page.getByRole("button", { name: "Go there" }).click();
  await page.waitForURL(new RegExp(`at=${first}\\b`));
  await moment.getByText("Nobody held anything.").waitFor();
  await page.getByRole("link", { name: /2026-11-15/ }).first().click();
  await page.getByRole("heading", { name: "Replay of 2026-11-15" }).waitFor();
  await keepsItsDay(stage);
}

/** The slider of a day stays within it, also where the address did not say which day it is and where the page is loaded anew. */
async function keepsItsDay(stage) {
  const { page } = stage;
  for (const [path, day] of [["replay?day=2026-11-15", "2026-11-15"], ["replay", stage.told.day]]) {
    await stage.go(path);
    const range = page.locator("[data-slider]");
    const first = await range.getAttribute("min");
    await range.fill(first);
    await page.waitForURL(new RegExp(`day=${day}&at=${first}$`));
    await page.locator("#chosen").getByText(`#${first} at`).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: `Replay of ${day}` }).waitFor();
    assert.deepEqual([await range.getAttribute("min"), await range.inputValue()], [first, first], path);
  }
}

/** Everything that was found, each once, from the newest to the oldest. */
async function search(stage) {
  const { page, bus } = stage;
  for (let count = 1; count <= 130; count += 1) {
    bus.relay("BlueLake", "send", "--to", "RedForest", "--thread", "bd-104", "--subject", `Comet ${count}`, "--body", "A comet again.");
  }
  await stage.go("search?words=comet");
  const found = [];
  for (;;) {
    found.push(...(await page.locator("#found li .open").allInnerTexts()));
    const older = page.getByRole("link", { name: "Older ones" });
    if (!(await older.count())) break;
    await older.click();
    await page.waitForURL(/before=/);
  }
  assert.deepEqual(found, Array.from({ length: 130 }, (_, index) => `Comet ${130 - index}`));
  assert.ok((await page.locator("#found mark").count()) > 0, "what was looked for is marked");
}

/** Who has surfaced, read and acked a message is beside it, and moves on by itself. */
async function receipts(stage) {
  const { page, bus } = stage;
  await stage.go("threads/bd-101");
  const receipt = (name) => page.locator(".receipts").first().locator("li").filter({ hasText: name }).locator(".done");
  assert.deepEqual(await receipt("RedForest").allInnerTexts(), ["stored", "surfaced", "read", "acked"]);
  assert.deepEqual(await receipt("GreenHill").allInnerTexts(), ["stored", "surfaced"]);
  const [{ id }] = bus.relay("human", "thread", "bd-101").messages;
  bus.relay("GreenHill", "ack", String(id));
  await receipt("GreenHill").getByText("acked", { exact: true }).waitFor();
  await page.locator("#held").getByText("src/auth/**").waitFor();
  const body = page.locator("[data-body]").first();
  for (const element of ["strong", "ol li", "blockquote", "pre code"]) await body.locator(element).first().waitFor();
}

async function switches(stage) {
  const { page } = stage;
  await stage.go("");
  const list = page.locator(".switch ul");
  for (const closes of [() => page.mouse.click(1200, 500), () => page.keyboard.press("Escape"), () => page.locator(".switch summary").click()]) {
    await page.locator(".switch summary").click();
    await list.waitFor();
    await closes();
    await list.waitFor({ state: "hidden" });
  }
  await page.locator(".switch summary").click();
  await page.locator(".switch").getByRole("link", { name: /website/ }).click();
  await page.waitForURL(/\/p\/website-/);
  await page.getByText("WhiteGull").first().waitFor();
  await page.getByText("The landing page").first().waitFor();
  await page.goto(`${stage.told.base}/`);
  await page.locator("main").getByRole("link", { name: /repo/ }).first().click();
  await page.waitForURL(stage.at(""));
}
