// Documents of the page as a browser parses them.
import { offences } from "./offences.mjs";

/** Fetches an address as a script of the page would, and parses it without showing it. Runs in the browser. */
async function fetched(path, offences) {
  const response = await fetch(path);
  const policy = response.headers.get("content-security-policy") ?? "";
  const nonce = /script-src 'nonce-([^']+)'/.exec(policy)?.[1];
  const found = new DOMParser().parseFromString(await response.text(), "text/html");
  return {
    status: response.status,
    offences: offences(found, nonce, location.origin),
    text: found.body.textContent,
    links: [...found.querySelectorAll("a[href]")].map((link) => link.getAttribute("href")),
  };
}

/** What a document of the page holds: status, what is not the page's own, the text, and where it leads. */
export async function parsed(page, path) {
  // As a text: what a function of the page would make of a text, its policy forbids.
  return await page.evaluate(`(${fetched})(${JSON.stringify(path)}, ${offences})`);
}

/** What would not be the page's own in each of these documents. */
export async function judged(page, documents) {
  const judge = `(html) => (${offences})(new DOMParser().parseFromString(html, "text/html"), "none", location.origin)`;
  return await page.evaluate(`(${JSON.stringify(documents)}).map(${judge})`);
}

/** What is not the page's own in what is shown now. */
export async function shown(page) {
  const nonce = `document.querySelector("script[nonce]")?.nonce`;
  return await page.evaluate(`(${offences})(document, ${nonce}, location.origin)`);
}
