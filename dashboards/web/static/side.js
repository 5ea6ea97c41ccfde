// One side of an exchange: what klamm changed in it, its record batches, its fields and bytes.

import { el, size } from "./page.js";
import { body, errorsIn } from "./tree.js";

/** `one` as trees.py gives it; `bytes` on the wire, where nothing else is known. `content()` asks for records. What it
 * returns has `errors(name)`: for each field with this error code a function that shows it, if there are any. */
export function side(name, one, bytes, { records, content }) {
  if (!one) {
    return el("section", { class: `side ${name}` }, el("h3", {}, name), el("p", { class: "reason" }, bytes ? "only its size is known" : "none"));
  }
  const place = el("div");
  const changed = new Set((one.changes ?? []).map(({ path }) => path));
  const shown = one.sent ? forms(one, place, changed) : null;
  place.append(body(one, changed));
  const element = el(
    "section",
    { class: `side ${name}` },
    el("h3", {}, name, el("small", {}, ` ${size(one.bytes)}`)),
    one.withheld ? el("p", { class: "reason" }, "klamm sent nothing of it on") : null,
    one.changes?.length ? changesTable(one.changes) : null,
    shown?.element,
    one.batches?.length ? batches(one, records, content) : null,
    place,
  );
  element.errors = (name) => {
    const form = [one.sent, one].find((each) => each && errorsIn(each.tree, name).length); // clients are told what was sent
    const show = (path) => () => {
      shown?.choose(form);
      place.firstChild.reveal(path);
    };
    return form ? errorsIn(form.tree, name).map(show) : [];
  };
  return element;
}

/** Buttons for the two forms of a body that klamm has changed. */
function forms(one, place, changed) {
  const choose = (form) => {
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(form === (index ? one.sent : one))));
    place.replaceChildren(body(form, changed));
  };
  const button = (text, form, isPressed) => el("button", { "aria-pressed": String(isPressed), onclick: () => choose(form) }, text);
  const buttons = [button("as it came", one, true), button("as klamm sent it on", one.sent, false)];
  return { choose, element: el("div", { class: "doings forms", role: "group", "aria-label": "form of the body" }, buttons) };
}

/** Fields that differ: {path, before, after}. */
export function changesTable(changes, [before, after] = ["as it came", "as klamm sent it on"], title = "") {
  const cell = (text) => el("td", {}, text ?? el("em", {}, "not there"));
  return el(
    "details",
    { class: "changes", open: changes.length <= 20 },
    el("summary", {}, title || `klamm changed ${changes.length === 1 ? "1 field" : `${changes.length} fields`}`),
    el(
      "div",
      { class: "scrolled", tabindex: "0", role: "region", "aria-label": title || "changes by klamm" },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, ["field", before, after].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, changes.map((one) => el("tr", { "data-path": one.path }, el("th", { scope: "row" }, one.path), cell(one.before), cell(one.after)))),
      ),
    ),
  );
}

const BATCH = [
  ["topic", (one) => (one.partition === null || one.partition === undefined ? one.topic : `${one.topic} ${one.partition}`)],
  ["offsets", (one) => one.offsets],
  ["records", (one) => one.records?.toLocaleString()],
  ["size", (one) => size(one.bytes)],
  ["codec", (one) => one.codec],
  ["first record", (one) => one.first],
  ["newest record", (one) => one.last],
  ["producer", (one) => (one.producer_id === undefined ? "" : `${one.producer_id} epoch ${one.producer_epoch}`)],
  ["sequence", (one) => one.base_sequence],
  ["kind", (one) => one.kind],
];

function batches(one, records, content) {
  const columns = BATCH.filter(([, text]) => one.batches.some((batch) => (text(batch) ?? "") !== ""));
  const blank = one.batches.every((batch) => batch.blank);
  const count = one.batches.length === 1 ? "1 batch" : `${one.batches.length} batches`;
  return el(
    "div",
    { class: "batches" },
    el("h4", {}, `Records: ${count}`),
    el(
      "div",
      { class: "scrolled", tabindex: "0", role: "region", "aria-label": "record batches" },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, columns.map(([name]) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, one.batches.map((batch) => el("tr", {}, columns.map(([, text]) => el("td", {}, String(text(batch) ?? "")))))),
      ),
    ),
    blank
      ? el("p", { class: "reason" }, "keys, values and headers are not kept here")
      : records
        ? null
        : el("button", { onclick: content }, "show keys, values and headers"),
  );
}
