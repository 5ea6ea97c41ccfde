// The rules that acted on the exchanges of the list, each with a colour of its own.

import { el } from "./page.js";

const COLOURS = 8; // as in style.css; with more rules than colours, some share one

export class Acted {
  constructor() {
    this.element = el("ul", { class: "acted", "aria-label": "rules that acted" });
    this.clear();
  }

  clear() {
    this.rules = new Map(); // name: {colour, count}
    this._draw();
  }

  add(rows) {
    let seen = false;
    for (const { rules } of rows) {
      for (const name of rules ?? []) {
        const known = this.rules.get(name) ?? { colour: this.rules.size % COLOURS, count: 0 };
        known.count += 1;
        this.rules.set(name, known);
        seen = true;
      }
    }
    if (seen) {
      this._draw();
    }
  }

  /** The class of a row on which rules have acted: the colour is that of the first. */
  look(row) {
    const known = row.rules && this.rules.get(row.rules[0]);
    return known ? `ruled rule-${known.colour}` : "";
  }

  _draw() {
    this.element.hidden = !this.rules.size;
    this.element.replaceChildren(
      ...[...this.rules].map(([name, { colour, count }]) => {
        const link = el("a", { href: `#rules?name=${encodeURIComponent(name)}`, title: "the rule, in the view rules" }, name);
        return el("li", { class: `rule-${colour}`, "data-rule": name }, link, el("small", {}, ` ${count.toLocaleString()}`));
      }),
    );
  }
}
