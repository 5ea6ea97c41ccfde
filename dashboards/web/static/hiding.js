// Kinds of exchanges that are left out, beside the filter: heartbeats, empty fetches, klamm's own probes.

import { el } from "./page.js";

export class Hiding {
  /** `changed()`: other kinds are hidden. */
  constructor(changed) {
    this.changed = changed;
    this.hidden = [];
    this.boxes = el("div", { class: "panel" });
    this.summary = el("summary", { role: "button" }, "hide");
    this.element = el("details", { class: "hiding", name: "menu" }, this.summary, this.boxes);
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        this.element.open = false;
        this.summary.focus();
      }
    });
  }

  /** The kinds that there are. */
  offer(kinds) {
    this.inputs = kinds.map((kind) => el("input", { type: "checkbox", name: "hide", value: kind, onchange: () => this._changed() }));
    this.boxes.replaceChildren(...this.inputs.map((input) => el("label", {}, input, ` ${input.value}`)));
    this._draw();
  }

  /** As the link has them; whether they are others than before. */
  open(text) {
    const before = this.text;
    this.hidden = text.split(",").filter(Boolean);
    this._draw();
    return this.text !== before;
  }

  get text() {
    return this.hidden.join(",");
  }

  _changed() {
    this.hidden = this.inputs.filter((input) => input.checked).map((input) => input.value);
    this._draw();
    this.changed();
  }

  _draw() {
    this.inputs?.forEach((input) => (input.checked = this.hidden.includes(input.value)));
    this.summary.textContent = this.hidden.length ? `hide (${this.hidden.length})` : "hide";
  }
}
