// What must not be in a document of the page, whatever others wrote. Runs in the browser: it refers to nothing outside itself.

/** What is in a document that is not the page's own; `nonce` is the one of its response. */
export function offences(found, nonce, origin) {
  const NEVER = "iframe,frame,frameset,object,embed,applet,portal,base,img,image,picture,video,audio,source,track,math,template,dialog[open]:not([data-own]),isindex,marquee,plaintext,xmp,listing,noembed,foreignObject,animate,set,use";
  const METAS = ["viewport", "color-scheme", "description", "robots", "referrer", "theme-color"];
  const ADDRESSES = ["href", "src", "action", "formaction", "xlink:href", "data", "poster", "background", "ping", "cite", "srcset", "srcdoc", "manifest"];
  const told = [];
  const tell = (what, element) => told.push(`${what}: ${element.outerHTML.slice(0, 160)}`);
  const own = (value) => new URL(value, origin).origin === origin;

  for (const element of found.querySelectorAll(NEVER)) tell("is not the page's", element);
  // A form's own fields could stand in its place.
  const { get: attributes } = Object.getOwnPropertyDescriptor(Element.prototype, "attributes");
  for (const element of found.querySelectorAll("*")) {
    for (const { name, value } of attributes.call(element)) {
      if (name.startsWith("on")) tell(`handler ${name}`, element);
      if (name === "style") tell("style", element);
      if (!ADDRESSES.includes(name)) continue;
      if (["ping", "srcdoc", "srcset", "manifest"].includes(name)) tell(name, element);
      if (!["http:", "https:"].includes(new URL(value, origin).protocol)) tell(`${name} to another protocol`, element);
    }
  }
  for (const script of found.querySelectorAll("script")) {
    if ((script.nonce || script.getAttribute("nonce")) !== nonce) tell("script without the nonce", script);
    const src = script.getAttribute("src");
    if (src && !src.startsWith("/assets/")) tell("script from elsewhere", script);
  }
  for (const style of found.querySelectorAll("style")) {
    if ((style.nonce || style.getAttribute("nonce")) !== nonce) tell("style without the nonce", style);
  }
  for (const link of found.querySelectorAll("link")) {
    if (!["stylesheet", "icon"].includes(link.rel) || !link.getAttribute("href").startsWith("/assets/")) tell("link", link);
  }
  for (const meta of found.querySelectorAll("meta")) {
    if (meta.httpEquiv || !(meta.hasAttribute("charset") || METAS.includes(meta.name))) tell("meta", meta);
  }
  for (const form of found.querySelectorAll("form")) {
    if (!(form.getAttribute("action") ?? "/").startsWith("/")) tell("form to elsewhere", form);
    if (form.getAttribute("method") === "post" && form.querySelectorAll("input[name=csrf]").length !== 1) tell("form", form);
  }
  for (const control of found.querySelectorAll("[form],[formaction]")) {
    if (control.hasAttribute("formaction") && !own(control.getAttribute("formaction"))) tell("leads a form elsewhere", control);
  }
  for (const link of found.querySelectorAll("a[href]")) {
    if (own(link.getAttribute("href"))) continue;
    const rel = link.rel.split(/\s+/);
    if (!["noopener", "noreferrer", "nofollow"].every((word) => rel.includes(word))) tell("foreign link without rel", link);
    if (!link.closest("[data-body]")) tell("foreign link outside a message", link);
  }
  const ids = new Set();
  for (const element of found.querySelectorAll("[id]")) {
    if (ids.has(element.id)) tell("id that is there twice", element);
    ids.add(element.id);
  }
  if (found.querySelectorAll("title").length !== 1 + found.querySelectorAll("svg title").length) told.push("titles");
  if (found.querySelectorAll("main, body").length !== 2) told.push("more than one main part");
  return told;
}
