// A body as a tree of fields beside its bytes; the field under the pointer is lit in both.

import { el } from "./page.js";

const WIDTH = 16; // bytes of a line
const LINES = 2048; // of the dump that are drawn at once
const OPEN = 60; // parts beyond which a field begins closed

/** The fields that have this error code, each with those that hold it: lists of nodes, outermost first. */
export function errorsIn(nodes, name, above = []) {
  return (nodes ?? []).flatMap((node) => {
    const path = [...above, node];
    const own = node.error && node.text?.replace(/^-?\d+ /, "") === name ? [path] : [];
    return [...own, ...errorsIn(node.parts, name, path)];
  });
}

/** `side`: a body as trees.py gives it; `changed`: the paths of the fields that klamm changed. What it returns has
 * `reveal(path)`, which opens the tree at a field and lights it. */
export function body(side, changed = new Set()) {
  const bytes = Uint8Array.from(atob(side.raw ?? ""), (letter) => letter.charCodeAt(0));
  const lit = { from: -1, to: -1 };
  const places = []; // of every field: {start, end, element}
  const dump = hex(bytes, (position) => light(smallest(places, position), true));
  const fields = el("ul", { class: "tree", role: "tree", "aria-label": "fields", tabindex: "0" });
  const made = new Map(); // by node: {label, open()}
  const making = { places, made, changed, over: (place) => light(place, false) };
  fields.append(...(side.tree ?? []).map((node) => field(node, "", making)));
  let before = null;

  function light(place, reveal) {
    before?.element.classList.remove("lit");
    before = place;
    dump.light(place ? place.start : -1, place ? (place.end < 0 ? bytes.length : place.end) : -1, !reveal);
    if (!place) {
      return;
    }
    place.element.classList.add("lit");
    if (reveal) {
      for (let above = place.element.parentElement; above && above !== fields; above = above.parentElement) {
        if (above.tagName === "DETAILS") {
          above.open = true;
        }
      }
      place.element.scrollIntoView({ block: "nearest" });
    }
  }

  lit.from = 0;
  const element = el(
    "div",
    { class: "body" },
    side.reason ? el("p", { class: "reason" }, side.reason) : null,
    fields,
    bytes.length ? dump.element : null,
  );
  element.reveal = (path) => {
    path.slice(0, -1).forEach((node) => made.get(node).open());
    const { label } = made.get(path.at(-1));
    label.scrollIntoView({ block: "center" });
    label.focus({ preventScroll: true }); // which lights it
  };
  return element;
}

function smallest(places, position) {
  let found = null;
  for (const place of places) {
    const end = place.end < 0 ? Infinity : place.end;
    if (place.start <= position && position < end && (!found || end - place.start <= found.end - found.start)) {
      found = place;
    }
  }
  return found;
}

/** The path of a field, as changes.py writes it: topics[0].name. */
function below(path, name) {
  if (name === "tagged_fields") {
    return path;
  }
  return name.startsWith("[") || !path ? `${path}${name}` : `${path}.${name}`;
}

function field(node, above, making) {
  const { places, made, changed, over } = making;
  const path = below(above, node.name);
  const parts = node.parts ?? [];
  const label = el(
    "span",
    { class: `field${node.error ? " error" : ""}${node.end < 0 ? " broken" : ""}${changed.has(path) ? " changed" : ""}`, "data-field": node.name },
    el("b", {}, node.name),
    node.text !== undefined && node.text !== "" ? el("span", { class: "value" }, node.text) : null,
    node.kind ? el("i", {}, node.kind) : null,
  );
  const place = { start: node.start, end: node.end, element: label };
  places.push(place);
  const light = () => over(place);
  label.addEventListener("pointerenter", light);
  if (!parts.length) {
    label.tabIndex = 0;
    label.addEventListener("focus", light);
    made.set(node, { label });
    return el("li", { role: "treeitem", "aria-selected": "false" }, label);
  }
  const summary = el("summary", {}, label);
  summary.addEventListener("focus", light);
  const inner = el("ul", { role: "group" });
  const details = el("details", { open: parts.length <= OPEN }, summary, inner);
  const fill = () => inner.childElementCount || inner.append(...parts.map((part) => field(part, path, making)));
  if (details.open) {
    fill();
  } else {
    details.addEventListener("toggle", fill, { once: true });
  }
  const open = () => {
    fill();
    details.open = true;
  };
  made.set(node, { label: summary, open });
  return el("li", { role: "treeitem", "aria-selected": "false" }, details);
}

function hex(bytes, over) {
  const rows = [];
  const element = el("pre", { class: "hex", tabindex: "0", "aria-label": "bytes" });
  const shown = Math.min(Math.ceil(bytes.length / WIDTH), LINES);
  for (let row = 0; row < shown; row += 1) {
    const line = el("div", { class: "line" });
    line.start = row * WIDTH;
    rows.push(line);
    plain(line);
    element.append(line);
  }
  if (shown * WIDTH < bytes.length) {
    element.append(el("div", {}, `the first ${shown * WIDTH} bytes are drawn`));
  }
  element.addEventListener("pointermove", (event) => {
    const line = event.target.closest(".line");
    if (!line) {
      return;
    }
    const box = line.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / (box.width / line.columns)) - 7;
    const inHex = column >= 0 && column < WIDTH * 3;
    const place = inHex ? Math.floor(column / 3) : column - WIDTH * 3 - 1;
    if (place >= 0 && place < WIDTH && line.start + place < bytes.length) {
      over(line.start + place);
    }
  });

  function plain(line) {
    write(line, -1, -1);
  }

  /** The line as text, its lit part in an element. */
  function write(line, from, to) {
    const end = Math.min(bytes.length, line.start + WIDTH);
    const parts = [`${line.start.toString(16).padStart(5, "0")}  `];
    const texts = [];
    for (let at = line.start; at < line.start + WIDTH; at += 1) {
      const there = at < end;
      const isLit = there && from <= at && at < to;
      const byte = there ? bytes[at].toString(16).padStart(2, "0") : "  ";
      const letter = there ? (bytes[at] > 31 && bytes[at] < 127 ? String.fromCharCode(bytes[at]) : ".") : " ";
      parts.push(isLit ? el("mark", {}, byte) : byte, " ");
      texts.push(isLit ? el("mark", {}, letter) : letter);
    }
    line.columns = 7 + WIDTH * 3 + 1 + WIDTH;
    line.replaceChildren(...parts, " ", ...texts);
  }

  let lit = [0, -1];
  return {
    element,
    light(from, to, reveal) {
      const old = lit;
      lit = from < 0 || to <= from ? [0, -1] : [Math.floor(from / WIDTH), Math.min(shown - 1, Math.floor((to - 1) / WIDTH))];
      for (let row = old[0]; row <= old[1]; row += 1) {
        plain(rows[row]);
      }
      for (let row = lit[0]; row <= lit[1]; row += 1) {
        write(rows[row], from, to);
      }
      if (reveal && rows[lit[0]] && lit[1] >= lit[0]) {
        const line = rows[lit[0]];
        if (line.offsetTop < element.scrollTop || line.offsetTop + 20 > element.scrollTop + element.clientHeight) {
          element.scrollTop = line.offsetTop - 20;
        }
      }
    },
  };
}
