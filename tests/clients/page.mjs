// Looks at the human's page in a real browser, as a person would, while agents work through the command line.
// Arguments: the scenes, each a file of `page/`. What they need to know stands as JSON in $STAGE: where the page is (`base`), the link
// that opens it once (`link`), the project's part of an address (`slug`), the program (`relay`), the project (`project`), the clock that
// the tests hold (`clock`), where pictures go (`shots`), and what a scene is told beside that.
// Prints what the scenes found as one line of JSON, by the name of the scene.
import { browser } from "./stage/browser.mjs";
import { Stage } from "./stage/stage.mjs";

const told = JSON.parse(process.env.STAGE);
const chromium = await browser();
const stage = await Stage.open(chromium, told);
const found = {};
for (const name of process.argv.slice(2)) {
  const { default: scene } = await import(`./page/${name}.mjs`);
  try {
    found[name] = (await scene(stage)) ?? null;
    stage.clean();
  } catch (fault) {
    await stage.keep(`failed-${name}`);
    console.error(`${name}: ${fault.stack}`);
    process.exitCode = 1;
    break;
  }
}
await chromium.close();
console.log(JSON.stringify(found));
// Whatever a scene that failed left open is of no interest any more.
process.exit();
