// The human decides and acts, while two agents work on. What it came to is looked at on the bus afterwards.
import assert from "node:assert/strict";

import { form, submit } from "../stage/forms.mjs";

export default async function (stage) {
  await writes(stage);
  await answers(stage);
  await converses(stage);
  await contacts(stage);
  await releases(stage);
  await stops(stage);
  await errs(stage);
  await leaves(stage);
}

/** An action that goes well leads back, and says once what it did. */
async function does(stage, found, values, said) {
  assert.equal(await submit(found, values), 303, String(said));
  await stage.page.getByText(said).first().waitFor();
  stage.clean();
  await stage.page.reload();
  assert.equal(await stage.page.getByRole("status").getByText(said).count(), 0, "it is said once");
}

/** To one, to several, to all. */
async function writes(stage) {
  const { page, bus } = stage;
  await stage.go("write?to=BlueLake");
  const one = { subject: "To one", body: "Only *you*.", ack_required: true };
  await does(stage, form(page, "send"), { to: "BlueLake", ...one }, /Sent #\d+ to BlueLake/);
  const [mail] = bus.relay("BlueLake", "poll", "--from", "human", "--bodies").messages.slice(-1);
  assert.deepEqual([mail.from, mail.subject, mail.body, mail.ack_required], ["human", "To one", "Only *you*.", true]);
  bus.relay("BlueLake", "ack", String(mail.id));

  await stage.go("write");
  const several = { to: ["BlueLake", "RedForest"], subject: "To several", body: "Both of you.", importance: "high" };
  await does(stage, form(page, "send"), several, /Sent #\d+ to BlueLake and RedForest/);
  await stage.go("write?to=@all");
  await does(stage, form(page, "send"), { to: "@all", subject: "To all", body: "Everybody." }, /Sent #\d+ to /);
}

/** A question that waits for the human is answered where it is seen first. */
async function answers(stage) {
  const { page, bus } = stage;
  const [{ id, subject }] = bus.relay("human", "status").for_the_human;
  await stage.go("");
  await page.locator("#decide").getByText(subject).waitFor();
  await does(stage, form(page, "send", { reply_to: id }), { body: "Wait for the release." }, /Sent #\d+ to RedForest/);
  assert.equal(await page.locator("#decide").getByText(subject).count(), 0, "it is decided");
}

/** A reply and an ack in a conversation in which agents go on. */
async function converses(stage) {
  const { page, bus } = stage;
  const ask = ["send", "--to", "human", "--thread", "bd-101", "--subject", "Sessions: see my plan?", "--body", "It is in the thread.", "--ack-required"];
  const { id } = bus.relay("BlueLake", ...ask).message;
  await stage.go("threads/bd-101");
  await does(stage, form(page, "ack", { id }), {}, /Acknowledged/i);
  await stage.go("threads/bd-101");
  await does(stage, form(page, "send"), { body: "I have read it." }, /Sent #\d+ to /);
  await page.getByText("I have read it.").first().waitFor();
}

async function contacts(stage) {
  const { page, bus } = stage;
  const waiting = bus.relay("human", "link", "--list").links.filter(({ state }) => state === "requested");
  assert.equal(waiting.length, 2);
  for (const [index, answer] of ["accept", "block"].entries()) {
    await stage.go("contacts");
    const found = form(page, "link", { id: waiting[index].id });
    const button = found.locator(`[name=answer][value=${answer}]`);
    assert.equal(await submit(found, {}, button), 303);
    await page.getByRole("status").waitFor();
  }
}

async function releases(stage) {
  const { page, bus } = stage;
  const [{ id }] = bus.relay("", "reservations", "src/search/index.rs").reservations;
  await stage.go("reservations");
  await does(stage, form(page, "release", { id }), { why: "QuietOwl has gone home" }, new RegExp(`Released #${id}`));
}

async function stops(stage) {
  const { page, bus } = stage;
  await stage.go("agents/QuietOwl");
  await does(stage, form(page, "retire", { name: "QuietOwl" }), {}, /QuietOwl/);
  await stage.go("agents/GreenHill");
  await does(stage, form(page, "suspend", { name: "GreenHill" }), {}, /GreenHill/);
  assert.equal(bus.answer("GreenHill", "poll").error.code, "AGENT_SUSPENDED");
  await stage.go("agents/GreenHill");
  await does(stage, form(page, "suspend", { name: "GreenHill", lift: "1" }), {}, /GreenHill/);
  bus.relay("GreenHill", "poll");
}

/** An error says what it is and what to do, keeps what was typed, and its steps are buttons. */
async function errs(stage) {
  const { page } = stage;
  await stage.go("write");
  stage.troubles.expect(/status of 4\d\d/);
  const status = await submit(form(page, "send"), { to: "BlueLak", subject: "A slip", body: "Typed with care." });
  assert.equal(status, 404);
  await page.getByText("RECIPIENT_NOT_FOUND").first().waitFor();
  await page.getByText("BlueLake").first().waitFor();
  assert.equal(await page.locator("textarea[name=body]").inputValue(), "Typed with care.");
  await stage.look("error");
}

async function leaves(stage) {
  const { page } = stage;
  await stage.go("");
  await submit(page.locator(`form[action="/leave"]`).first());
  stage.troubles.expect(/status of 401/);
  const response = await page.goto(stage.at(""));
  assert.equal(response.status(), 401);
  await page.getByText("relay serve --open").first().waitFor();
  await stage.look("closed");
}
