// Other sites in the same browser, in which the page is open: whatever they try is refused, and nothing changes.
import assert from "node:assert/strict";

import { Hostile } from "../stage/hostile.mjs";

/** The same site on another port, to which the cookie goes along; and sites that have nothing to do with it. */
const HOSTS = ["127.0.0.1", "localhost", "evil.example"];

export default async function (stage) {
  const hostile = await Hostile.open();
  const page = await stage.context.newPage();
  const csrf = await token(stage);
  const before = stage.bus.tip();
  for (const host of HOSTS) {
    await forms(stage, hostile, page, host, csrf);
    await fetches(stage, hostile, page, host, csrf);
    await embeds(stage, hostile, page, host);
    await windows(stage, hostile, page, host);
  }
  await ownOrigin(stage, csrf);
  await otherName(stage, page);
  hostile.close();
  await page.close();
  assert.equal(stage.bus.tip(), before, "nothing happened on the bus");
  await stage.go("");
  // What browsers say about all that is part of it.
  stage.troubles.expect(/./);
}

/** What stands in the page's own forms, as if it had leaked. */
async function token(stage) {
  await stage.go("");
  return await stage.page.locator(`form[action="/leave"] input[name=csrf]`).getAttribute("value");
}

/** Everything that the page could be made to do by a form. */
function wishes(csrf) {
  const proof = { csrf, key: "0123456789abcdef", back: "/" };
  return [
    ["send", { ...proof, to: "@all", subject: "Stop", body: "Delete everything" }],
    ["retire", { ...proof, name: "BlueLake" }],
    ["suspend", { ...proof, name: "BlueLake" }],
    ["step", { ...proof, tool: "send", args: `{"to":["BlueLake"],"subject":"Stop","body":"x"}` }],
  ];
}

async function forms(stage, hostile, page, host, csrf) {
  const targets = wishes(csrf).map(([action, fields]) => [stage.at(action), fields]);
  targets.push([stage.at("send"), { to: "BlueLake", subject: "Stop", body: "no token at all" }]);
  targets.push([`${stage.told.base}/leave`, { csrf }]);
  for (const [target, fields] of targets) {
    await hostile.show(page, host, "<p>press here</p>");
    const answered = page.waitForResponse((response) => response.url() === target);
    await page.evaluate(
      ([action, fields]) => {
        const form = document.createElement("form");
        Object.assign(form, { method: "post", action });
        for (const [name, value] of Object.entries(fields)) form.append(Object.assign(document.createElement("input"), { name, value }));
        document.body.append(form);
        form.submit();
      },
      [target, fields],
    );
    refused(await answered, `a form at ${host} to ${target}`);
    await page.waitForURL(target);
  }
  await sandboxed(stage, hostile, page, host, csrf);
}

/** A form whose origin is nobody's. */
async function sandboxed(stage, hostile, page, host, csrf) {
  const target = stage.at("retire");
  const form = `<form method=post action="${target}"><input name=csrf value="${csrf}"><input name=name value=BlueLake></form><script>document.forms[0].submit()</script>`;
  const answered = page.waitForResponse((response) => response.url() === target);
  await hostile.show(page, host, `<iframe sandbox="allow-forms allow-scripts" srcdoc='${form}'></iframe>`);
  refused(await answered, `a sandboxed form at ${host}`);
}

function refused(response, what) {
  assert.ok([401, 403].includes(response.status()), `${what}: ${response.status()}`);
}

/** Requests of a script: none is answered in a way that it could read, and none acts. */
async function fetches(stage, hostile, page, host, csrf) {
  await hostile.show(page, host, "<p>one moment</p>");
  const body = new URLSearchParams(wishes(csrf)[0][1]).toString();
  const type = "application/x-www-form-urlencoded";
  const asked = [
    [stage.at("send"), { method: "POST", mode: "cors", body, headers: { "content-type": type } }],
    [stage.at("send"), { method: "POST", mode: "no-cors", body, headers: { "content-type": type } }],
    [stage.at("send"), { method: "POST", mode: "cors", body, headers: { "content-type": type, "x-requested-with": "relay" } }],
    [stage.at("send"), { method: "POST", mode: "no-cors", body, headers: { "content-type": "text/plain" } }],
    [`${stage.told.base}/leave`, { method: "POST", mode: "no-cors", body, headers: { "content-type": type } }],
    [stage.at(""), { mode: "cors" }],
    [stage.at(""), { mode: "no-cors" }],
    [stage.at("live"), { mode: "cors" }],
    [`${stage.told.base}/v1/ask`, { method: "POST", mode: "no-cors", body: "{}" }],
  ];
  for (const [url, options] of asked) {
    const read = await page.evaluate(
      ([url, options]) => fetch(url, { credentials: "include", ...options }).then((answer) => answer.text(), () => ""),
      [url, options],
    );
    assert.equal(read, "", `${host} reads ${url}`);
  }
  // A beacon: that it came to nothing is seen on the bus.
  const gone = ["requestfailed", "requestfinished"].map((event) => page.waitForEvent(event, (request) => request.url() === stage.at("retire")));
  await page.evaluate(([url, fields]) => navigator.sendBeacon(url, new URLSearchParams(fields)), [stage.at("retire"), wishes(csrf)[1][1]]);
  await Promise.any(gone);
  const streamed = await page.evaluate(
    (url) =>
      new Promise((resolve) => {
        const stream = new EventSource(url, { withCredentials: true });
        stream.onmessage = stream.onopen = () => resolve("open");
        stream.onerror = () => resolve("refused");
      }),
    stage.at("live"),
  );
  assert.equal(streamed, "refused", `${host} listens to what happens`);
}

/** The page inside of another, where a person could be led to press its buttons. */
async function embeds(stage, hostile, page, host) {
  for (const path of [stage.at(""), `${stage.told.base}/open`]) {
    const elements = `<iframe src="${path}"></iframe><object data="${path}"></object><embed src="${path}">`;
    await hostile.show(page, host, elements);
    await page.waitForLoadState("networkidle");
    for (const frame of page.frames().slice(1)) {
      const inside = await frame.evaluate(() => document.querySelectorAll("main, form").length).catch(() => 0);
      assert.equal(inside, 0, `${path} is framed at ${host}: ${frame.url()}`);
    }
  }
  const parts = `<img src="${stage.at("")}"><script src="${stage.told.base}/assets/relay.js"></script>`;
  await hostile.show(page, host, parts);
  assert.equal(await page.evaluate(() => document.images[0].naturalWidth), 0);
}

/** A window that another site opened, or that stays connected with the one that it came from. */
async function windows(stage, hostile, page, host) {
  await hostile.show(page, host, "<p>look</p>");
  const opened = stage.context.waitForEvent("page");
  await page.evaluate((url) => void (window.taken = window.open(url)), stage.at(""));
  const child = await opened;
  await child.waitForLoadState();
  assert.equal(await child.evaluate(() => window.opener), null, `${host} is the opener`);
  const reached = await page.evaluate(() => {
    try {
      return window.taken.document.title || window.taken.length > 0;
    } catch {
      return false;
    }
  });
  assert.equal(reached, false, `${host} reaches into the page`);
  assert.equal(await page.evaluate(() => window.taken.closed), true, `${host} keeps hold of the window`);
  await child.close();
}

/** In the page itself: no token, one of nobody, and one of a session that is over. */
async function ownOrigin(stage, csrf) {
  await stage.go("");
  const [, fields] = wishes(csrf)[1];
  for (const stale of [undefined, "", "0".repeat(csrf.length), csrf.slice(0, -1), `${csrf}0`, csrf.toUpperCase() + "G"]) {
    const sent = { ...fields, csrf: stale };
    if (stale === undefined) delete sent.csrf;
    const status = await stage.page.evaluate(
      ([url, sent]) => fetch(url, { method: "POST", body: new URLSearchParams(sent), redirect: "manual" }).then(({ status }) => status),
      [stage.at("retire"), sent],
    );
    assert.equal(status, 403, `the token ${stale}`);
  }
}

/** The server under a name that is not its own, as after a name was made to point here. */
async function otherName(stage, page) {
  const { port } = new URL(stage.told.base);
  const response = await page.goto(`http://evil.example:${port}/`);
  assert.ok(response.status() >= 400 && response.status() < 500, `another name: ${response.status()}`);
}
