// An error whose step is a button: it is refused, somebody makes room meanwhile, and the button does what could not be done before.
import assert from "node:assert/strict";

import { form, submit } from "../stage/forms.mjs";

export default async function (stage) {
  const { page, bus } = stage;
  await stage.go("write?to=RedForest");
  stage.troubles.expect(/status of \d\d\d/);
  const letter = { to: "RedForest", thread: "bd-2", subject: "Stop", body: "Let **us** talk first." };
  assert.notEqual(await submit(form(page, "send"), letter), 303);
  await page.getByText("INBOX_FULL").first().waitFor();
  assert.equal(await page.locator("textarea[name=body]").inputValue(), letter.body, "what was typed is still there");
  await stage.look("step");
  for (const { id } of bus.relay("RedForest", "poll").messages) bus.relay("RedForest", "ack", String(id));
  const status = await submit(form(page, "step"));
  assert.ok([200, 303].includes(status), `${status}`);
  assert.deepEqual(bus.relay("RedForest", "poll", "--bodies").messages.map(({ body }) => body), [letter.body]);
}
