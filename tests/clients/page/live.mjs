// What two agents do meanwhile appears without reloading, and so does that one of them fell silent.
import assert from "node:assert/strict";

const ELEVEN_MINUTES = 11 * 60_000;

export default async function (stage) {
  const { page, bus } = stage;
  await stage.go("");
  // A mark that does not outlive the document.
  await page.evaluate(() => (window.sameDocument = true));

  bus.relay("GreenHill", "reserve", "docs/chapter-nine.md");
  await page.getByText("chapter-nine.md").first().waitFor();

  bus.relay("BlueLake", "send", "--to", "human", "--thread", "bd-103", "--subject", "May I drop the old table?", "--body", "It is empty.");
  await page.getByText("May I drop the old table?").first().waitFor();

  bus.relay("RedForest", "release", "src/auth/token.rs");
  await page.getByText("token.rs", { exact: true }).first().waitFor({ state: "detached" });

  bus.relay("NewBird", "start", "--task", "Looks around");
  await page.getByText("NewBird").first().waitFor();

  await silence(stage);
  assert.equal(await page.evaluate(() => window.sameDocument), true, "nothing was loaded anew");
  await focus(stage);
  await typing(stage);
  await answering(stage);
  await drafts(stage);
  await picture(stage);
  await unseen(stage);
  await behind(stage);
}

/** Nobody says anything for a while: that is no event, and is seen all the same. */
async function silence(stage) {
  const { page, bus } = stage;
  const states = page.locator("main").getByText("alive", { exact: true });
  assert.ok((await states.count()) >= 4, "they are alive");
  await stage.pass(ELEVEN_MINUTES);
  bus.relay("RedForest", "poll");
  await page.clock.fastForward(20_000);
  await page.waitForFunction(() => document.querySelector("main").innerText.match(/\bsilent\b/g)?.length >= 4);
}

/** What has the focus keeps it, also where an update moves it. */
async function focus(stage) {
  const { page, bus } = stage;
  await stage.go("");
  const names = page.locator("#agents a.open");
  assert.notEqual(await names.first().innerText(), "GreenHill");
  await names.getByText("GreenHill", { exact: true }).focus();
  await stage.pass(60_000);
  bus.relay("GreenHill", "reserve", "docs/chapter-ten.md");
  await page.waitForFunction(() => document.querySelector("#agents a.open").innerText === "GreenHill");
  assert.equal(await page.locator(":focus").innerText(), "GreenHill");
}

/** What somebody types stays, whatever happens meanwhile. */
async function typing(stage) {
  const { page, bus } = stage;
  await stage.go("threads/bd-101");
  const body = page.locator(`form[action$="/send"] textarea[name=body]`).first();
  await body.fill("Half a sent");
  bus.relay("RedForest", "send", "--to", "BlueLake", "--thread", "bd-101", "--subject", "Sessions", "--body", "One more thing happened.");
  await page.getByText("One more thing happened.").waitFor();
  assert.equal(await body.inputValue(), "Half a sent");
  assert.ok(await body.evaluate((element) => element === document.activeElement), "and keeps the focus");
  await page.keyboard.type("ence");
  assert.equal(await body.inputValue(), "Half a sentence");
}

/** Half an answer stays as it is, and what else is asked stands beside it. */
async function answering(stage) {
  const { page, bus } = stage;
  await stage.go("");
  const question = page.locator("#decide li[data-row]").first();
  await question.locator("summary").first().click();
  await question.locator("textarea").fill("Half an answ");
  await page.locator("h1").click();
  bus.relay("BlueLake", "send", "--to", "human", "--thread", "bd-104", "--subject", "Which colour?", "--body", "Red or blue.");
  await page.locator("#decide").getByText("Which colour?").waitFor();
  assert.equal(await question.locator("textarea").inputValue(), "Half an answ");
  await question.locator("textarea").fill("");
}

/** What was typed is there again until it has been sent, each for its own letter, and none of it is folded away. */
async function drafts(stage) {
  const { page } = stage;
  const body = page.locator(`main form[action$="/send"] textarea[name=body]`).first();
  const kept = async (path) => (await stage.go(path), await body.inputValue());
  assert.equal(await kept("threads/bd-101"), "Half a sentence");
  await page.locator("#reply button.main").click();
  await page.getByText(/Sent #\d+ to /).first().waitFor();
  assert.equal(await kept("threads/bd-101"), "", "what was sent is forgotten");

  await stage.go("write?to=Nobdy");
  await page.locator("[name=subject]").fill("To whom?");
  await body.fill("It is refused.");
  stage.troubles.expect(/status of 4\d\d/);
  await page.locator("main form button.main").click();
  await page.getByText("RECIPIENT_NOT_FOUND").first().waitFor();
  assert.equal(await kept("write?to=Nobdy"), "It is refused.");
  assert.equal(await page.locator("[name=subject]").inputValue(), "To whom?");
  assert.equal(await kept("write?to=BlueLake"), "", "another letter is another");

  await stage.go("");
  await page.locator("#decide summary").first().click();
  await body.fill("Not yet");
  await stage.go("threads");
  await stage.go("");
  assert.equal(await body.inputValue(), "Not yet");
  assert.ok(await body.isVisible(), "it is unfolded");
}

/** A picture that is drawn anew is drawn as before. */
async function picture(stage) {
  const { page, bus } = stage;
  await stage.go("talk");
  const edges = page.locator("svg .edge");
  const count = await edges.count();
  const before = await edges.first().evaluate((edge) => getComputedStyle(edge).fill);
  bus.relay("GreenHill", "send", "--to", "human", "--thread", "bd-105", "--subject", "Read the guide?", "--body", "It is short.");
  await page.waitForFunction((count) => document.querySelectorAll("svg .edge").length > count, count);
  assert.equal(before, "none");
  assert.equal(await edges.first().evaluate((edge) => getComputedStyle(edge).fill), before);
}

/** As many as one session is told of changes at a time. */
const PLACES = 16;

/** What a browser says of a tab: the one that the tests bring along never hides any. */
function seen(visibility) {
  const is = (get) => ({ configurable: true, get });
  Object.defineProperties(document, { visibilityState: is(() => visibility), hidden: is(() => visibility === "hidden") });
  document.dispatchEvent(new Event("visibilitychange"));
}

/** A page that nobody looks at gives its connection back, however often, and takes one again when somebody does. */
async function unseen(stage) {
  const { page, bus } = stage;
  const live = stage.at("live");
  await stage.go("");
  await page.locator("#pulse.on").waitFor();
  await page.evaluate(() => (window.sameDocument = true));
  for (let turn = 0; turn <= PLACES; turn += 1) {
    const given = page.waitForEvent("requestfailed", (request) => request.url() === live);
    await page.evaluate(seen, "hidden");
    await given;
    if (turn === 0) bus.relay("GreenHill", "reserve", "docs/chapter-eleven.md");
    const taken = page.waitForResponse(live);
    await page.evaluate(seen, "visible");
    assert.equal((await taken).status(), 200, `turn ${turn}`);
  }
  await page.getByText("chapter-eleven.md").first().waitFor();
  assert.equal(await page.evaluate(() => window.sameDocument), true, "nothing was loaded anew");
}

/** A page that is opened behind another takes no connection before somebody looks at it. */
async function behind(stage) {
  const page = await stage.context.newPage();
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.addInitScript(seen, "hidden");
  await stage.go("", page);
  const live = stage.at("live");
  // Whatever it had asked for by itself was asked before this.
  await page.evaluate(() => fetch("/assets/relay.css").then((style) => style.text()));
  assert.ok(!asked.includes(live), "nobody sees it");
  const taken = page.waitForResponse(live);
  await page.evaluate(seen, "visible");
  assert.equal((await taken).status(), 200);
  await page.locator("#pulse.on").waitFor();
  await page.close();
}
