// Frames that rules with `pause` hold: look, edit as JSON, resume, drop, or answer with an error.

import { ask, clock, el, size, tell, told, Watching } from "./page.js";

const LOOK_MS = 500;

export class Paused extends Watching {
  constructor() {
    super(LOOK_MS);
    this.list = el("ul", { class: "frames" });
    this.editor = el("textarea", { id: "values", rows: "24", spellcheck: "false", disabled: true });
    this.code = el("input", { "aria-label": "error", placeholder: "error of Kafka's", list: "errors" });
    this.buttons = [
      el("button", { onclick: told(() => this._resolve({ action: "resume" })) }, "resume unchanged"),
      el("button", { onclick: told(() => this._resume()) }, "resume as edited"),
      el("button", { onclick: told(() => this._resolve({ action: "drop" })) }, "drop"),
      el("button", { onclick: told(() => this._resolve({ action: "error", code: this.code.value })) }, "answer with"),
    ];
    this.element = el(
      "div",
      { class: "page paused" },
      el("h2", {}, "Paused frames"),
      el("p", {}, "A rule with pause, or klamm pause API, makes frames wait here."),
      this.list,
      el("label", { for: "values" }, "The fields of the chosen frame"),
      this.editor,
      el("div", { class: "doings" }, this.buttons, this.code),
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
    if (this.chosen !== null && !frames.some(({ id }) => id === this.chosen)) {
      this._choose(null);
    }
  }

  _choose(number) {
    this.chosen = number;
    this.editor.disabled = number === null;
    if (number === null) {
      this.editor.value = "";
    }
    this.buttons.forEach((button) => (button.disabled = number === null));
  }

  async _open(number) {
    const frame = await ask(`/api/klamm/v1/paused/${number}`);
    this._choose(number);
    this.editor.value = frame.values ? JSON.stringify(frame.values, null, 2) : frame.reason;
    this.editor.disabled = !frame.values;
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
    tell(`${number}: ${resolution.action}`);
    this._choose(null);
    await this._look();
  }
}
