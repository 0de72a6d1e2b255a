// Without scripts: every screen can be read, and the human can act.
import assert from "node:assert/strict";

import { form, submit } from "../stage/forms.mjs";
import { screens } from "../stage/screens.mjs";

export default async function (stage) {
  const context = await stage.again({ javaScriptEnabled: false });
  const page = await context.newPage();
  for (const [name, path] of screens(stage)) {
    const response = await page.goto(path);
    assert.equal(response.status(), 200, name);
    assert.notEqual(await page.locator("h1").innerText(), "", `${name} has a heading`);
    assert.ok((await page.locator("main").innerText()).length > 40, `${name} is more than a heading`);
  }
  await stage.go("threads/bd-101", page);
  await page.getByText("ends after ten minutes").waitFor();
  await stage.go("write?to=BlueLake", page);
  const status = await submit(form(page, "send"), { to: "BlueLake", subject: "Without scripts", body: "Plain forms." });
  assert.equal(status, 303);
  await page.getByText(/Sent #\d+ to BlueLake/).waitFor();
  await context.close();
}
