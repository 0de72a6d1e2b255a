// Forms as a person fills them in. They are known by what they do: the action, and what they carry.

/** The form of an action; of several, the one that carries these values. */
export function form(page, action, carries = {}) {
  let found = page.locator(`form[method="post"][action$="/${action}"]`);
  for (const [name, value] of Object.entries(carries)) {
    found = found.filter({ has: page.locator(`[name="${name}"][value="${value}"]`) });
  }
  return found.first();
}

/** Opens what it is folded into, fills it in, and presses the button; returns how the page answered. */
export async function submit(form, values = {}, button = form.locator(`button:not([type="button"])`).first()) {
  await unfold(form);
  for (const [name, value] of Object.entries(values)) await fill(form.locator(`[name="${name}"]`), value);
  const page = form.page();
  const answered = page.waitForResponse((response) => response.request().method() === "POST");
  await button.click();
  const response = await answered;
  await page.waitForLoadState("load");
  return response.status();
}

/** What is folded away is opened by its summary. */
async function unfold(form) {
  const folded = form.locator("xpath=ancestor::details[not(@open)]");
  for (let left = await folded.count(); left > 0; left -= 1) await folded.first().locator("summary").first().click();
}

/** Boxes are ticked by their values; what has no box is typed, with commas between. */
async function fill(field, value) {
  const page = field.page();
  const kind = await field.first().evaluate((element) => element.type);
  if (kind.startsWith("select")) return await field.selectOption(value);
  const typed = [];
  for (const each of [value].flat()) {
    const box = field.and(page.locator(each === true ? "[type=checkbox]" : `[type=checkbox][value="${each}"]`));
    if (await box.count()) await box.check();
    else typed.push(each);
  }
  if (typed.length) await field.and(page.locator(":not([type=checkbox])")).fill(typed.join(", "));
}
