// The times of an exchange: when its request came, went on, was answered, and when the answer went on.

import { lasted, unanswered } from "./fates.js";
import { clock, el } from "./page.js";

const LEAST = 0.4; // percent of the width that a bar takes at least

/** Did klamm answer in the broker's place? */
const isOwn = ({ origin, changed }) => origin === "klamm" && !changed;

/** The phases of an exchange, in seconds since 1970. What is not known is left out. */
export function phases(exchange) {
  const answered = exchange.time;
  const took = (lasted(exchange) ?? 0) / 1000;
  const came = answered - took;
  const held = Math.min((exchange.request_delay_ms ?? 0) / 1000, took);
  const late = (exchange.response_delay_ms ?? 0) / 1000;
  const found = [];
  if (lasted(exchange) === undefined) {
    const title = exchange.request_bytes ? "the request came; no answer is known" : "the answer came; its request was not seen";
    return [{ name: "request", title, from: came, to: came }];
  }
  if (held) {
    found.push({ name: "held", title: "a rule held the request", from: came, to: came + held });
  }
  if (exchange.unanswered) {
    found.push({ name: "vain", title: unanswered(exchange), from: came + held, to: answered });
  } else if (isOwn(exchange)) {
    found.push({ name: "own", title: "klamm answered by itself", from: came + held, to: answered });
  } else {
    found.push({ name: "broker", title: "the broker, and the way to it and back", from: came + held, to: answered });
  }
  if (late) {
    found.push({ name: "late", title: "a rule held the answer", from: answered, to: answered + late });
  }
  return found;
}

/** `neighbours`: {before, after}, rows of the list on the same connection, or nothing; `open(key)` shows one. */
export function waterfall(exchange, neighbours, open) {
  const own = phases(exchange);
  const lanes = [
    neighbours.before && { name: "before", row: neighbours.before },
    { name: "this", row: exchange, own },
    neighbours.after && { name: "after", row: neighbours.after },
  ].filter(Boolean);
  const spans = lanes.map(({ row, own: mine }) => mine ?? phases(row));
  const [from, to] = scale(own, spans);
  const lane = ({ name, row }, index) =>
    el(
      "li",
      { class: `lane ${name}`, "data-lane": name },
      name === "this"
        ? el("span", {}, `${exchange.api}`)
        : el("button", { title: `${name} on this connection, as far as the list has it`, onclick: () => open(row.key) }, `${name}: ${row.api}`),
      el("span", { class: "track" }, spans[index].map((phase) => bar(phase, from, to))),
    );
  return el(
    "section",
    { class: "times", "aria-label": "timing" },
    el("h3", {}, "Timing"),
    el("ol", { class: "waterfall" }, lanes.map(lane)),
    el("ol", { class: "phases" }, steps(exchange, own).map(([at, text]) => el("li", {}, el("span", { class: "at" }, at), text))),
  );
}

/** This exchange takes at least a third of the width: neighbours that are far away end at the edge. */
function scale(own, spans) {
  const first = own[0].from;
  const last = own.at(-1).to;
  const wide = Math.max(last - first, 1e-6);
  const from = Math.max(first - wide, Math.min(...spans.flat().map((each) => each.from)));
  const to = Math.min(last + wide, Math.max(...spans.flat().map((each) => each.to)));
  return [from, Math.max(to, from + 1e-6)];
}

function bar({ name, title, from, to }, first, last) {
  const place = (time) => Math.min(100, Math.max(0, ((time - first) / (last - first)) * 100));
  const made = el("i", { class: `phase ${name}`, title });
  made.style.left = `${Math.min(place(from), 100 - LEAST)}%`;
  made.style.width = `${Math.max(LEAST, place(to) - place(from))}%`;
  return made;
}

/** The same in words. */
function steps(exchange, own) {
  const came = own[0].from;
  const after = (time) => `+${((time - came) * 1000).toFixed(3)} ms`;
  const found = [[clock(came), "the request came from the client"]];
  for (const { name, to } of own) {
    if (name === "held") {
      found.push([after(to), "it went on to the broker: a rule had held it"]);
    } else if (name === "broker") {
      found.push([after(to), "the answer came from the broker"]);
    } else if (name === "vain") {
      found.push([after(to), unanswered(exchange)]);
    } else if (name === "own") {
      found.push([after(to), "klamm answered by itself"]);
    } else if (name === "late") {
      found.push([after(to), "the answer went on to the client: a rule had held it"]);
    }
  }
  return found;
}
