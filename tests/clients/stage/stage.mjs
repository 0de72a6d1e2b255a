// A browser in which the human's page is open, and a bus on which agents act.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { AxeBuilder } from "./browser.mjs";
import { Bus } from "./bus.mjs";
import { illegible } from "./legible.mjs";
import { Troubles } from "./troubles.mjs";

export const WIDE = { width: 1280, height: 800 };
export const NARROW = { width: 360, height: 740 };
const THEMES = ["light", "dark"];
/** How bad a finding of axe must be to fail. */
const GRAVE = ["serious", "critical"];

export class Stage {
  /** Opens the page with its one-time link, as the person does who is shown it. */
  static async open(chromium, told) {
    const stage = new Stage(chromium, told);
    mkdirSync(told.shots, { recursive: true });
    stage.context = await stage.visitor();
    stage.page = await stage.context.newPage();
    await stage.page.goto(told.link);
    await stage.page.waitForURL(`${told.base}/`);
    return stage;
  }

  constructor(chromium, told) {
    this.chromium = chromium;
    this.told = told;
    this.bus = new Bus(told);
    this.troubles = new Troubles(told.base);
  }

  /** Somebody with a browser of their own, who lives at the time of the bus. */
  async visitor(options = {}) {
    const context = await this.chromium.newContext({ baseURL: this.told.base, viewport: WIDE, reducedMotion: "reduce", ...options });
    this.troubles.watch(context);
    if (options.javaScriptEnabled !== false) await context.clock.install({ time: this.bus.now() });
    return context;
  }

  /** The same person in another browser: the session is a cookie and nothing else. */
  async again(options = {}) {
    return await this.visitor({ storageState: await this.context.storageState(), ...options });
  }

  /** An address inside the project. */
  at(path = "") {
    return `${this.told.base}/p/${this.told.slug}/${path}`;
  }

  /** Goes to a screen of the project. */
  async go(path = "", page = this.page) {
    const response = await page.goto(this.at(path));
    assert.equal(response.status(), 200, `${path}: ${response.status()}`);
    return page;
  }

  /** Time passes, here and on the bus. */
  async pass(millis) {
    this.bus.setClock(this.bus.now() + millis);
    await this.page.clock.fastForward(millis);
  }

  /** Looks at what is open in both themes and on a narrow screen: pictures, nothing grave, all of it legible and none beside the screen. */
  async look(name, page = this.page) {
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      await this.#accessible(`${name} (${colorScheme})`, page);
      await this.#picture(`${name}-${colorScheme}`, page);
    }
    await this.#legible(name, page);
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize(NARROW);
    await this.#legible(`${name} (narrow)`, page);
    await this.fits(name, page);
    await this.#picture(`${name}-narrow`, page);
    await page.setViewportSize(WIDE);
  }

  async #accessible(name, page) {
    const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze();
    const grave = violations.filter(({ impact }) => GRAVE.includes(impact));
    const told = grave.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help}: ${node.html}\n${node.failureSummary}`));
    assert.deepEqual(told, [], name);
  }

  async #legible(name, page) {
    assert.deepEqual(await page.evaluate(illegible), [], `${name} can be read`);
  }

  async #picture(name, page) {
    await page.screenshot({ path: join(this.told.shots, `${name}.png`), fullPage: true, animations: "disabled" });
  }

  /** Nothing has to be scrolled to sideways. */
  async fits(name, page = this.page) {
    const wide = await page.evaluate(() => {
      const width = document.documentElement.clientWidth;
      if (document.documentElement.scrollWidth <= width) return [];
      const beyond = [...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > width + 1);
      return beyond.map((element) => element.outerHTML.slice(0, 200));
    });
    assert.deepEqual(wide, [], `${name} fits its width`);
  }

  /** Nothing went wrong that was not seen. */
  clean() {
    assert.deepEqual(this.troubles.take(), [], "the console and the network are clean");
  }

  /** What is on the screen when something fails. */
  async keep(name) {
    await this.#picture(name, this.page).catch(() => {});
    console.error(`${this.page.url()}\n${await this.page.locator("body").innerText().catch(() => "")}`);
    for (const trouble of this.troubles.take()) console.error(trouble);
  }
}
