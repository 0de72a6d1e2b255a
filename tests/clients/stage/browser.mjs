// The browser that `tests/clients/install` put beside the build, and the libraries that drive it. They are looked for where this runs.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(resolve("here.js"));
const { chromium } = require("playwright-core");
export const { AxeBuilder } = require("@axe-core/playwright");

/** The packed one is for one kind of machine; on others it is the system's. */
function program() {
  const packed = resolve("browser/chromium");
  return existsSync(packed) ? packed : "/usr/bin/chromium";
}

export async function browser() {
  const fonts = fileURLToPath(new URL("../fonts.conf", import.meta.url));
  const libraries = [resolve("browser/al2023/lib"), process.env.LD_LIBRARY_PATH].filter(Boolean).join(":");
  return await chromium.launch({
    executablePath: program(),
    // Tests run as root, for whom there is no sandbox. Everything else that keeps pages apart is as it is for everybody. Names of other
    // sites lead to this machine.
    args: ["--no-sandbox", "--host-resolver-rules=MAP *.example 127.0.0.1"],
    env: { ...process.env, FONTCONFIG_FILE: fonts, LD_LIBRARY_PATH: libraries },
  });
}
