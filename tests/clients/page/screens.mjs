// Every screen tells the morning of the story: what is said, in both themes, on a narrow screen, and without anything grave.
import { screens } from "../stage/screens.mjs";

/** What must be read on each screen. */
const TOLD = {
  projects: ["repo", "website"],
  now: ["BlueLake", "claude-code", "claude-opus-5", "QuietOwl", "silent", "contested", "token.rs", "Rotate the keys today?"],
  threads: ["bd-101", "Sessions expire too early", "bd-102"],
  conversation: ["ends after ten minutes", "GreenHill", "src/auth/**"],
  search: ["Sessions expire too early"],
  agents: ["BlueLake", "OldPine", "retired", "GreyWolf", "suspended"],
  agent: ["Sessions that expire too early", "src/auth/**"],
  contacts: ["GreenHill", "The guide names the keys"],
  reservations: ["src/auth/token.rs", "res:dev-database", "docs/**"],
  history: ["BlueLake", "bd-101"],
  replay: [],
  talk: ["BlueLake", "RedForest"],
  write: [],
};

export default async function (stage) {
  const { page } = stage;
  for (const [name, path] of screens(stage)) {
    await page.goto(path);
    // What is only told to whoever points at it is not read.
    for (const text of TOLD[name]) await page.locator("main :not(title)").getByText(text).locator("visible=true").first().waitFor();
    await stage.look(name);
    stage.clean();
  }
}
