// Texts that want to be markup, wherever others can write something: the parsed page has nothing from them but text.
import assert from "node:assert/strict";

import { judged, parsed, shown } from "../stage/documents.mjs";

/** Screens on which they stand; each leads on to its further pages. */
const SCREENS = ["", "threads", "agents", "contacts", "reservations", "history", "talk", "replay", "write"];
/** What a person types, or a link says, in each of these places. */
const ASKED = ["search?words=", "reservations?path=", "history?path=", "history?by=", "history?thread=", "history?kind=", "history?since=", "agents?state=", "write?to=", "write?thread=", "write?reply_to=", "replay?day=", "threads/", "agents/"];

/** How many of them at least would be seen if a page took them for markup; the others want to become it on the way. */
const MARKUP = 100;

export default async function (stage) {
  const { page } = stage;
  const seen = { documents: 0, text: "" };
  await stage.go("");
  await judges(stage);
  for (const screen of SCREENS) await walk(stage, `/p/${stage.told.slug}/${screen}`, seen);
  for (const thread of threads(stage)) await walk(stage, `/p/${stage.told.slug}/threads/${thread}`, seen);
  await echoes(stage, seen);
  subjects(stage, seen);
  await live(stage);
  return { documents: seen.documents };
}

/** The judge sees them: else nothing below would mean anything. */
async function judges(stage) {
  const found = await judged(stage.page, stage.told.corpus.map((text) => `<!doctype html><title>x</title><main><p title="${text}">${text}</main>`));
  const seen = found.filter((offences) => offences.length > 0).length;
  assert.ok(seen >= MARKUP, `${seen} of ${found.length} are seen`);
  stage.troubles.expect(/Content Security Policy/);
  stage.clean();
}

function threads(stage) {
  return stage.bus.relay("", "thread").threads.map(({ id }) => id);
}

/** Looks at a screen and at all the pages of it. */
async function walk(stage, start, seen) {
  const known = new Set([start]);
  for (const path of known) {
    const found = await parsed(stage.page, path);
    assert.equal(found.status, 200, path);
    assert.deepEqual(found.offences, [], path);
    seen.documents += 1;
    seen.text += found.text;
    for (const link of found.links.filter((link) => isFurther(link, start))) known.add(link);
  }
}

/** Whether a link is to another page of the same list. */
function isFurther(link, start) {
  const url = new URL(link, "http://here");
  return url.pathname === start && ["before", "after", "page"].some((name) => url.searchParams.has(name));
}

/** The page says again what it was asked. */
async function echoes(stage, seen) {
  for (const [index, text] of stage.told.corpus.entries()) {
    // Each text in a few places, each place with many texts.
    for (let turn = 0; turn < 3; turn += 1) {
      const place = ASKED[(index + turn * 5) % ASKED.length];
      const path = `/p/${stage.told.slug}/${place}${encodeURIComponent(text)}`;
      const found = await parsed(stage.page, path);
      assert.ok(found.status < 500, `${path}: ${found.status}`);
      assert.deepEqual(found.offences, [], path);
      seen.documents += 1;
    }
  }
  // Many of these are not there, or no question at all.
  stage.troubles.expect(/status of 4\d\d/);
}

/** A subject is shown as what it is: nothing of it is taken for markup, and nothing is lost. */
function subjects(stage, seen) {
  const plain = (text) => text.replace(/\s+/g, " ").trim();
  const text = plain(seen.text);
  // What is not seen on a screen is written out there.
  const printable = stage.told.subjects.filter((subject) => /^[\x20-\x7e]+$/.test(subject));
  const lost = printable.filter((subject) => !text.includes(plain(subject)));
  assert.deepEqual(lost, [], "subjects that are not shown as they are");
}

/** The same shown: whatever could run has run by then, and it was nothing. */
async function live(stage) {
  const paths = [...SCREENS, ...threads(stage).map((thread) => `threads/${thread}`)];
  for (const path of paths) {
    const { page } = stage;
    await page.goto(stage.at(path));
    assert.deepEqual(await shown(page), [], path);
    assert.equal(await page.evaluate(() => window.__hit), undefined, `${path}: a script ran`);
  }
}
