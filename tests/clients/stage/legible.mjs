// What a person would see at once and a program does not: words that are broken letter by letter, and words over each other. Runs in
// the browser: it refers to nothing outside itself.

/** The texts that cannot be read as they are shown. */
export function illegible() {
  const LONG = 20;
  const told = [];
  const shown = [];

  /** The part of a text's line that is inside of everything that cuts it off. */
  const clipped = (rect, element) => {
    let { left, top, right, bottom } = rect;
    for (let above = element; above && above !== document.body; above = above.parentElement) {
      if (getComputedStyle(above).overflow === "visible") continue;
      const box = above.getBoundingClientRect();
      [left, top, right, bottom] = [Math.max(left, box.left), Math.max(top, box.top), Math.min(right, box.right), Math.min(bottom, box.bottom)];
    }
    return { left, top, right, bottom };
  };
  const isSeen = ({ left, top, right, bottom }) => right - left > 1 && bottom - top > 4;

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.textContent.trim();
    if (!text || !element.checkVisibility() || element.closest("svg, script, style, option")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    // What is only for those who listen is cut down to nothing.
    const lines = [...range.getClientRects()].map((line) => clipped(line, element)).filter(isSeen);
    const words = text.split(/\s+/);
    if (words.every(({ length }) => length <= LONG) && lines.length > 2 * words.length + 2) told.push(`broken: ${text}`);
    for (const { 0: word, index } of node.textContent.matchAll(/(?<!\S)[A-Za-z]{2,20}(?!\S)/g)) {
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const heights = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
      if (heights.size > 1) told.push(`broken: ${word} in ${text}`);
    }
    for (const line of lines) shown.push({ node, text, ...line });
  }
  for (const [index, one] of shown.entries()) {
    for (const other of shown.slice(index + 1)) {
      if (one.node === other.node) continue;
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      const least = Math.min(one.bottom - one.top, other.bottom - other.top);
      if (wide > 3 && high > 0.4 * least) told.push(`over each other: ${one.text} | ${other.text}`);
    }
  }
  return told;
}
