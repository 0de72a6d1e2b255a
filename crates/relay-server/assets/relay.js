// What the page does beyond links and forms: it follows the bus, lets ages tick, listens to keys, and keeps what is typed.
"use strict";

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

/** A key of the browser's own storage; some people forbid it. */
const kept = (store, key, value) => {
  try {
    if (value === undefined) return store().getItem(key);
    value === null ? store().removeItem(key) : store().setItem(key, value);
  } catch {}
  return null;
};
const local = () => window.localStorage;
const session = () => window.sessionStorage;

// Ages. The server says what time it is; this clock only counts on from there.
let ahead = 0;
const now = () => performance.now() + ahead;
const sync = (body) => (ahead = Date.parse(body.dataset.now) - performance.now());
sync(document.body);

function age(at) {
  const millis = at - now();
  const whole = (unit) => Math.round(Math.abs(millis) / unit);
  const [seconds, minutes, hours] = [whole(1e3), whole(6e4), whole(36e5)];
  if (seconds < 5) return "just now";
  let size = `${whole(864e5)} days`;
  if (hours < 48) size = `${hours} h`;
  if (minutes < 60) size = `${minutes} min`;
  if (seconds < 60) size = `${seconds} s`;
  return millis > 0 ? `in ${size}` : `${size} ago`;
}

function tick(within = document) {
  for (const time of $$("time[data-age]", within)) {
    const text = age(Date.parse(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
  }
}

// Live. What is marked as live is fetched again and made the same, node by node: what did not change is not touched, and so
// keeps focus, selection, scroll and whether it is unfolded.
/** What a node is known by. A form's `id` may be a field of that name. */
const keyOf = (node) => node.getAttribute?.("id") || node.dataset?.key;
/** Classes that only this script gives. */
const OWN = ["at", "fresh"];
/** How much was changed since somebody was told. */
let changed = 0;

function become(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    changed += 1;
    old.replaceWith(document.importNode(fresh, true));
  } else if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data === fresh.data) return;
    changed += 1;
    old.data = fresh.data;
  } else if (old.matches("input, textarea, time[data-age]")) {
    attributes(old, fresh, ["value", "checked"]);
  } else if (!isTypedRow(old)) {
    attributes(old, fresh, ["open", "class"]);
    // A picture's class is no text.
    const own = [...old.classList].filter((name) => OWN.includes(name));
    const wanted = [...fresh.classList, ...own].join(" ");
    if (wanted !== (old.getAttribute("class") ?? "")) old.setAttribute("class", wanted);
    children(old, fresh);
  }
}

function attributes(old, fresh, except) {
  for (const { name, value } of fresh.attributes) {
    if (!except.includes(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!except.includes(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  if (old.matches("input[type=hidden]")) old.value = fresh.value;
}

function children(old, fresh) {
  const known = new Map([...old.children].filter(keyOf).map((child) => [keyOf(child), child]));
  let place = old.firstChild;
  for (const child of fresh.childNodes) {
    const same = keyOf(child) ? known.get(keyOf(child)) : place && !keyOf(place) && place.nodeName === child.nodeName ? place : null;
    if (same) {
      if (same === place) place = place.nextSibling;
      else old.insertBefore(same, place);
      become(same, child);
    } else {
      const added = document.importNode(child, true);
      changed += 1;
      // What a slider brings along is not new.
      if (added.matches?.("[data-row], .leaf") && !old.closest("[data-calm]")) added.classList.add("fresh");
      old.insertBefore(added, place);
    }
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    if (isTypedRow(gone)) continue;
    changed += 1;
    gone.remove();
  }
}

/** A row in which somebody types stays as it is; those around it go on. */
const isTypedRow = (node) => node.matches?.("[data-row]") && isTyped(node);

/** Whether somebody types here, in a row or beside the rows alone. */
function isTyped(region, besideRows = false) {
  const chosen = (options) => Math.max(0, options.findIndex((option) => option.defaultSelected));
  const typed = (field) => {
    if (field.type === "hidden") return false;
    if (field.matches("select")) return field.selectedIndex !== chosen([...field.options]);
    return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
  };
  const fields = $$("textarea, input, select", region).filter((field) => !(besideRows && field.closest("[data-row]")));
  return fields.some((field) => field === document.activeElement || typed(field));
}

let asking = false;
let again = false;
async function refresh() {
  if (!$("[data-live]")) return;
  if (asking) return void (again = true);
  asking = true;
  try {
    const response = await fetch(location.href, { headers: { accept: "text/html", "x-relay-script": "1" }, cache: "no-store" });
    if (response.status === 401) return over();
    if (!response.ok) return;
    swap(new DOMParser().parseFromString(await response.text(), "text/html"));
  } catch {
    // The stream says that nobody is there.
  } finally {
    asking = false;
    if (again) setTimeout(refresh);
    again = false;
  }
}

/** Puts the live regions of a document in the place of those that are shown. */
function swap(fresh) {
  changed = 0;
  sync(fresh.body);
  document.title = fresh.title;
  const focused = document.activeElement;
  for (const region of $$("[data-live]")) {
    const other = fresh.getElementById(region.id);
    if (isTyped(region, true)) continue;
    if (other) become(region, other);
    else region.remove();
  }
  // What was not there before comes after what it stands behind.
  for (const other of $$("[data-live]", fresh)) {
    const behind = other.previousElementSibling?.id;
    if (behind && !document.getElementById(other.id)) document.getElementById(behind)?.after(document.importNode(other, true));
  }
  // Whatever is moved loses the focus on the way.
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  tick();
  if (changed > 0) said("Updated");
}

function said(text) {
  const region = $("#said");
  region.textContent = "";
  requestAnimationFrame(() => (region.textContent = text));
}

let stream = null;
function shows(state, textContent) {
  Object.assign($("#pulse"), { hidden: false, className: `pulse ${state}`, textContent });
}

function over() {
  stream?.close();
  stream = null;
  shows("off", "Session over: run relay serve --open");
}

function follow(address) {
  let since = null;
  stream?.close();
  stream = new EventSource(address);
  stream.onopen = () => {
    since = null;
    shows("on", "live");
    refresh();
  };
  stream.addEventListener("changed", () => document.hidden || refresh());
  stream.onerror = () => {
    since ??= new Date(now()).toLocaleTimeString();
    shows("off", `not live since ${since}`);
    // A browser gives up where the answer is no stream: then it is asked why.
    if (stream?.readyState === EventSource.CLOSED) setTimeout(() => stream && (refresh(), follow(address)), 5e3);
  };
}

// Keys.
const rows = () => $$("[data-row]").filter((row) => row.offsetParent);
function move(step) {
  const all = rows();
  const at = all.findIndex((row) => row.classList.contains("at"));
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  if (!next) return;
  all[at]?.classList.remove("at");
  next.classList.add("at");
  next.scrollIntoView({ block: "nearest" });
  const target = $("a.open", next) ?? $("a", next);
  target?.focus({ preventScroll: true });
}

/** Closes the list of projects; whether it was open. */
function folds() {
  const list = $(".switch[open]");
  list?.removeAttribute("open");
  return list !== null;
}

let prefix = "";
let forgets = 0;
function pressed(event) {
  const field = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key === "Escape" && field) return field.blur();
  if (event.key === "Escape" && folds()) return $(".switch > summary").focus();
  if (field || event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
  const key = prefix + event.key;
  prefix = event.key === "g" && !prefix ? "g " : "";
  clearTimeout(forgets);
  forgets = setTimeout(() => (prefix = ""), 2e3);
  const link = key === "g p" ? $(".brand") : $(`[data-key="${CSS.escape(key)}"]`, $(".screens") ?? document.head);
  const act = { "?": () => $("#keys")?.showModal(), "/": () => $("#words")?.focus(), j: () => move(1), k: () => move(-1) }[key];
  if (!link && !act) return;
  event.preventDefault();
  link ? link.click() : act();
}

const does = {
  keys: () => $("#keys").showModal(),
  close: () => $("#keys").close(),
  theme() {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const root = document.documentElement.dataset;
    root.theme = (root.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
    kept(local, "relay-theme", root.theme);
    said(`${root.theme} theme`);
  },
};

// Drafts: what was typed is kept until it has been sent, also where a page is left by mistake. Whether it was is known from the next
// page: one that says what was done lets them go, one with an error waits for what comes of it, and any other keeps them.
const draftOf = (field) => `relay-draft ${location.pathname.split("/")[2]} ${field.dataset.draft}`;
const SENT = "relay-sent";
const sent = () => JSON.parse(kept(session, SENT) ?? "[]");
function drafts() {
  if ($(".flash")) sent().forEach((key) => kept(session, key, null));
  if (!$("[role=alert]")) kept(session, SENT, null);
  for (const field of $$("[data-draft]")) {
    const draft = !field.value && kept(session, draftOf(field));
    if (!draft) continue;
    field.value = draft;
    for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  }
  document.addEventListener("input", ({ target }) => target.dataset.draft && kept(session, draftOf(target), target.value || null));
  document.addEventListener("submit", ({ target }) => {
    const keys = $$("[data-draft]", target).map(draftOf);
    if (keys.length > 0) kept(session, SENT, JSON.stringify([...sent(), ...keys]));
  });
}

/** On a narrow screen the navigation is a row that is longer than it: where one is stands in its middle. */
function reveals() {
  const here = $(".screens [aria-current]");
  if (!here) return;
  const [row, entry] = [here.parentElement, here.getBoundingClientRect()];
  row.scrollLeft += entry.left + entry.width / 2 - row.clientWidth / 2;
}

/** Recipients, as they are typed. */
function filters() {
  for (const field of $$("[data-filters]")) {
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      for (const one of $$(`#${field.dataset.filters} label`)) {
        one.hidden = !one.textContent.toLowerCase().includes(wanted) && !$("input", one).checked;
      }
    });
  }
}

/** The slider of a day: the same address with another `at`, asked for once it rests. */
function slider() {
  const range = $("[data-slider]");
  if (!range) return;
  let waiting = 0;
  const number = $("#at");
  range.addEventListener("input", () => {
    number.value = range.value;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const address = new URL(location.href);
      address.searchParams.set("day", range.form.elements.day.value);
      address.searchParams.set("at", range.value);
      history.replaceState(null, "", address);
      refresh();
    }, 120);
  });
}

function copies() {
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-copy]");
    const text = button?.previousElementSibling;
    if (!text) return;
    try {
      await navigator.clipboard.writeText(text.textContent);
      said("Copied");
    } catch {
      // Not every address may: then it is chosen, and the person copies it.
      getSelection().selectAllChildren(text);
      said("Chosen");
    }
  });
}

document.addEventListener("DOMContentLoaded", () => {
  for (const button of $$("[data-does]")) button.addEventListener("click", does[button.dataset.does]);
  document.addEventListener("keydown", pressed);
  document.addEventListener("click", ({ target }) => target.closest(".switch") || folds());
  reveals();
  drafts();
  filters();
  slider();
  copies();
  tick();
  setInterval(tick, 5e3);
  const { changes } = document.body.dataset;
  if (!changes) return;
  // Silence is no event: it is seen by looking again. Of a page that nobody sees the title still counts what waits.
  let beats = 0;
  setInterval(() => (document.hidden && ++beats % 4) || refresh(), 15e3);
  // A browser keeps few connections to one server: a page that nobody sees takes none, and gives its own back.
  let aside = document.hidden;
  if (!aside) follow(changes);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && stream) {
      stream.close();
      aside = true;
    } else if (!document.hidden && aside) {
      aside = false;
      follow(changes);
    }
  });
  addEventListener("pagehide", () => stream?.close());
  addEventListener("pageshow", ({ persisted }) => persisted && stream && follow(changes));
});
