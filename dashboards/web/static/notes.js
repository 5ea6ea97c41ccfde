// Rows of the list that are no exchanges: each says what is missing at its place, or that another klamm begins there.

import { clock, el } from "./page.js";

const LEAST_S = 1; // of a hole whose times are told in whole seconds

const listed = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]);

/** `where` and `hide` of the filter that was in force; `unread`: there was none, for nobody read the list. */
function kept({ where, hide, unread }) {
  if (unread) {
    return "nothing was kept: no page read this list";
  }
  if (!where) {
    return `${listed(hide)} were left out`;
  }
  return `only what passed \`${where}\` was kept${hide.length ? `, without ${listed(hide)}` : ""}`;
}

/** The rows before those of a line of the stream. */
export class Notes {
  constructor() {
    this.clear();
  }

  /** The list begins anew. */
  clear() {
    this.began = 0; // the start of the klamm from which the last exchange was
  }

  of({ rows, hole, began }) {
    const found = hole ? [ofHole(hole)] : [];
    if (rows?.length && began) {
      if (this.began && this.began !== began) {
        found.push(ofRestart(began));
      }
      this.began = began;
    }
    return found;
  }
}

const ofRestart = (began) => ({
  note: "klamm was restarted",
  restart: true,
  time: began,
  text: `klamm was restarted at ${clock(began).slice(0, 8)}: connections are numbered from 1 again`,
  more: "A connection below this row is another one than that of the same number above it.",
});

/** As the server tells it. */
function ofHole(hole) {
  const { since, until } = hole;
  const [from, to] = [since, until].map((at) => (until - since < LEAST_S ? clock(at) : clock(at).slice(0, 8)));
  return {
    note: "not all is here",
    time: since,
    text: `from ${from} to ${to} ${kept(hole)}`,
    more: "Other exchanges that ended in this time are missing here, and do not come again.",
  };
}

/** A row that was chosen, beside the list. */
export function noteOf({ note, text, more }, close) {
  return el(
    "div",
    {},
    el("div", { class: "bar" }, el("h2", { tabindex: "-1" }, note), el("button", { class: "close", onclick: close, "aria-label": "close" }, "×")),
    el("p", { class: "noted" }, `${text}.`),
    el("p", { class: "noted" }, more),
  );
}
