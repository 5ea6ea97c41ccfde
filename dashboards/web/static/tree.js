// A body as a tree of fields beside its bytes; the field under the pointer is lit in both.

import { el } from "./page.js";

const [WIDTH, NARROW] = [16, 8]; // bytes of a line
const DRAWN = 32_768; // bytes of the dump, at once
const ROOM = { alone: 620, beside: 1000 }; // pixels of a body that lines of 16 bytes take, without the fields and with them
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

  const whole = el(
    "div",
    { class: "body" },
    side.reason ? el("p", { class: "reason" }, side.reason) : null,
    fields,
    bytes.length ? dump.element : null,
  );
  new ResizeObserver(() => dump.fit(widthIn(whole))).observe(whole);
  whole.reveal = (path) => {
    path.slice(0, -1).forEach((node) => made.get(node).open());
    const { label } = made.get(path.at(-1));
    label.scrollIntoView({ block: "center" });
    label.focus({ preventScroll: true }); // which lights it
  };
  return whole;
}

/** Half as many bytes where they would leave the fields no room, or have none themselves. */
function widthIn(whole) {
  const isBeside = getComputedStyle(whole).gridTemplateColumns.split(" ").length > 1;
  return whole.clientWidth < ROOM[isBeside ? "beside" : "alone"] ? NARROW : WIDTH;
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
  let [width, lit] = [0, [0, -1]];
  fit(WIDTH);
  element.addEventListener("pointermove", (event) => {
    const line = event.target.closest(".line");
    if (!line) {
      return;
    }
    const box = line.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / (box.width / line.columns)) - 7;
    const inHex = column >= 0 && column < width * 3;
    const place = inHex ? Math.floor(column / 3) : column - width * 3 - 1;
    if (place >= 0 && place < width && line.start + place < bytes.length) {
      over(line.start + place);
    }
  });

  /** Draws it with so many bytes in a line. */
  function fit(wanted) {
    if (wanted === width) {
      return;
    }
    [width, lit] = [wanted, [0, -1]];
    rows.length = 0;
    for (let start = 0; start < Math.min(bytes.length, DRAWN); start += width) {
      const line = el("div", { class: "line" });
      line.start = start;
      rows.push(line);
      plain(line);
    }
    element.replaceChildren(...rows, ...(bytes.length > DRAWN ? [el("div", {}, `the first ${DRAWN} bytes are drawn`)] : []));
  }

  function plain(line) {
    write(line, -1, -1);
  }

  /** The line as text, its lit part in an element. */
  function write(line, from, to) {
    const end = Math.min(bytes.length, line.start + width);
    const parts = [`${line.start.toString(16).padStart(5, "0")}  `];
    const texts = [];
    for (let at = line.start; at < line.start + width; at += 1) {
      const there = at < end;
      const isLit = there && from <= at && at < to;
      const byte = there ? bytes[at].toString(16).padStart(2, "0") : "  ";
      const letter = there ? (bytes[at] > 31 && bytes[at] < 127 ? String.fromCharCode(bytes[at]) : ".") : " ";
      parts.push(isLit ? el("mark", {}, byte) : byte, " ");
      texts.push(isLit ? el("mark", {}, letter) : letter);
    }
    line.columns = 7 + width * 3 + 1 + width;
    line.replaceChildren(...parts, " ", ...texts);
  }

  return {
    element,
    fit,
    light(from, to, reveal) {
      const old = lit;
      lit = from < 0 || to <= from ? [0, -1] : [Math.floor(from / width), Math.min(rows.length - 1, Math.floor((to - 1) / width))];
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
