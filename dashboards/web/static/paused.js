// Frames that rules with `pause` hold: look, edit as JSON, resume, drop, or answer with an error.

import { ask, clock, el, size, tell, told, Watching } from "./page.js";

const LOOK_MS = 500;
const DONE = { resume: "goes on", drop: "is dropped", error: "is answered with" };

export class Paused extends Watching {
  constructor() {
    super(LOOK_MS);
    this.frames = new Map(); // those that were opened: their fields as they came, and as edited
    this.list = el("ul", { class: "frames" });
    this.editor = el("textarea", { id: "values", rows: "24", spellcheck: "false", disabled: true, oninput: () => this._edited() });
    this.code = el("input", { "aria-label": "error", placeholder: "error of Kafka's", list: "errors", oninput: () => this._enable() });
    this.buttons = [
      el("button", { onclick: told(() => this._resolve({ action: "resume" })) }, "resume unchanged"),
      el("button", { onclick: told(() => this._resume()) }, "resume as edited"),
      el("button", { onclick: told(() => this._resolve({ action: "drop" })) }, "drop"),
      el("button", { onclick: told(() => this._resolve({ action: "error", code: this.code.value })) }, "answer with"),
    ];
    this.hint = el("p", { class: "about", hidden: true }, "Choose a frame: its fields are shown, and you decide what becomes of it.");
    this.frame = el(
      "div",
      {},
      el("label", { for: "values" }, "The fields of the chosen frame"),
      this.editor,
      el("div", { class: "doings" }, this.buttons, this.code),
    );
    this.element = el(
      "div",
      { class: "page paused" },
      el("h2", {}, "Paused frames"),
      el("p", {}, "A rule with pause makes frames wait here: one of the view rules, or one that klamm pause API makes. To pause answers, its side is response."),
      this.list,
      this.hint,
      this.frame,
    );
    this._choose(null);
  }

  async _look() {
    let frames;
    try {
      frames = await ask("/api/klamm/v1/paused");
    } catch (error) {
      this.list.replaceChildren(el("li", {}, error.message));
      return;
    }
    const items = frames.map((frame) => {
      const words = `${frame.id}: ${frame.api} v${frame.version} ${frame.side}, ${size(frame.bytes)}, of ${frame.client_id ?? "no client id"}, goes on at ${clock(frame.until)}`;
      return el("li", {}, el("button", { "aria-pressed": String(frame.id === this.chosen), onclick: told(() => this._open(frame.id)) }, words));
    });
    this.list.replaceChildren(...(items.length ? items : [el("li", {}, "no frame is paused")]));
    const there = new Set(frames.map(({ id }) => id));
    for (const number of this.frames.keys()) {
      if (!there.has(number)) {
        this.frames.delete(number);
      }
    }
    if (this.chosen !== null && !there.has(this.chosen)) {
      this._choose(null);
    }
    this.hint.hidden = this.chosen !== null || !items.length;
  }

  _choose(number) {
    this.chosen = number;
    this.frame.hidden = number === null;
    this.hint.hidden = true;
    const frame = this.frames.get(number);
    this.editor.value = frame?.text ?? "";
    this.editor.disabled = !frame?.editable;
    this._enable();
  }

  /** Which buttons can be pressed: an error answers only where one is named. */
  _enable() {
    this.buttons.forEach((button) => (button.disabled = this.chosen === null || (button === this.buttons.at(-1) && !this.code.value.trim())));
  }

  /** What was edited is there again when the frame is chosen again. */
  _edited() {
    this.frames.get(this.chosen).text = this.editor.value;
  }

  async _open(number) {
    if (!this.frames.has(number)) {
      const { values, reason } = await ask(`/api/klamm/v1/paused/${number}`);
      this.frames.set(number, { text: values ? JSON.stringify(values, null, 2) : reason, editable: Boolean(values) });
    }
    this._choose(number);
  }

  async _resume() {
    let values;
    try {
      values = JSON.parse(this.editor.value);
    } catch (error) {
      throw new Error(`not JSON: ${error.message}`);
    }
    await this._resolve({ action: "resume", values });
  }

  async _resolve(resolution) {
    const number = this.chosen;
    await ask(`/api/klamm/v1/paused/${number}`, { method: "POST", body: resolution });
    tell(`frame ${number} ${DONE[resolution.action]}${resolution.code ? ` ${resolution.code}` : ""}`);
    this._choose(null);
    await this._look();
    this.list.querySelector("button")?.focus();
  }
}
