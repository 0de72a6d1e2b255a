// The live tree keeps claims and folders apart, whatever they are called.
import assert from "node:assert/strict";

export default async function (stage) {
  const { page, bus } = stage;
  const { id } = bus.relay("GreenHill", "reserve", "alone.rs").granted[0];
  await stage.go("");
  const claims = page.locator("#claims");
  // A folder that is called like what the claim is known by.
  for (const file of ["a.rs", "b.rs"]) bus.relay("BlueLake", "reserve", `c${id}/${file}`);
  await claims.getByText("b.rs", { exact: true }).waitFor();
  await same(stage);
  bus.relay("GreenHill", "release", "alone.rs");
  await claims.getByText("alone.rs", { exact: true }).waitFor({ state: "detached" });
  await same(stage);
  bus.relay("GreenHill", "reserve", `c${id}/c.rs`, "zebra.rs");
  await claims.getByText("zebra.rs", { exact: true }).waitFor();
  await same(stage);
}

/** What became of the page by itself is what it is when it is loaded anew. */
async function same({ page }) {
  const shown = () => page.locator("#claims").innerText();
  const live = await shown();
  await page.reload();
  assert.equal(live, await shown());
}
