// Frames that rules with `pause` hold: look, edit as JSON, resume, drop, or answer with an error.

import { ask, clock, el, size, tell, told, untell, Watching } from "./page.js";

const LOOK_MS = 500;
const DONE = { resume: "goes on", drop: "is dropped", error: "is answered with" };

export class Paused extends Watching {
  constructor() {
    super(LOOK_MS);
    this.frames = new Map(); // those that were opened: their fields as they came, and as edited
    this.gone = false; // the chosen frame waits no more, and what was edited of it is still shown
    this.list = el("ul", { class: "frames" });
    this.editor = el("textarea", { id: "values", rows: "24", spellcheck: "false", disabled: true, oninput: () => this._edited() });
    this.code = el("input", { "aria-label": "error", placeholder: "error of Kafka's", list: "errors", oninput: () => this._enable() });
    this.buttons = [
      el("button", { onclick: () => this._resolve({ action: "resume" }) }, "resume unchanged"),
      el("button", { onclick: () => this._resolve({ action: "resume", values: JSON.parse(this.editor.value) }) }, "resume as edited"),
      el("button", { onclick: () => this._resolve({ action: "drop" }) }, "drop"),
      el("button", { onclick: () => this._resolve({ action: "error", code: this.code.value }) }, "answer with"),
    ];
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    this.hint = el("p", { class: "about", hidden: true }, "Choose a frame: its fields are shown, and you decide what becomes of it.");
    this.frame = el(
      "div",
      {},
      el("label", { for: "values" }, "The fields of the chosen frame"),
      this.editor,
      this.problem,
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
      const seconds = Math.max(0, Math.ceil(frame.until - Date.now() / 1000));
      const words = `${frame.id}: ${frame.api} v${frame.version} ${frame.side}, ${size(frame.bytes)}, of ${frame.client_id ?? "no client id"}, goes on at ${clock(frame.until)}, in ${seconds} s`;
      return el("li", {}, el("button", { "aria-pressed": String(frame.id === this.chosen), onclick: told(() => this._open(frame.id)) }, words));
    });
    this.list.replaceChildren(...(items.length ? items : [el("li", {}, "no frame is paused")]));
    const there = new Set(frames.map(({ id }) => id));
    if (this.chosen !== null && !there.has(this.chosen)) {
      this._leave();
    }
    for (const number of this.frames.keys()) {
      if (!there.has(number) && number !== this.chosen) {
        this.frames.delete(number);
      }
    }
    this.hint.hidden = this.chosen !== null || !items.length;
  }

  /** The chosen frame waits no more. What was written into it stays, until another one is chosen. */
  _leave() {
    const { text, came } = this.frames.get(this.chosen);
    if (text === came) {
      this._choose(null);
    } else if (!this.gone) {
      this.gone = true;
      this._tell(`Frame ${this.chosen} went on before this was sent, at ${clock(Date.now() / 1000)}: somebody decided about it, its time was over, or its connection ended. What you wrote is still here.`);
      this._enable();
    }
  }

  _choose(number) {
    this.chosen = number;
    this.gone = false;
    this._tell("");
    this.frame.hidden = number === null;
    this.hint.hidden = true;
    const frame = this.frames.get(number);
    this.editor.value = frame?.text ?? "";
    this.editor.disabled = !frame?.editable;
    this._enable();
  }

  /** Which buttons can be pressed: what was edited goes on only as JSON, an error answers only where one is named. */
  _enable() {
    const [, edited, , answer] = this.buttons;
    this.buttons.forEach((button) => (button.disabled = this.chosen === null || this.gone));
    edited.disabled ||= this.editor.disabled || this._mistake() !== "";
    answer.disabled ||= !this.code.value.trim();
  }

  /** What was edited is there again when the frame is chosen again. */
  _edited() {
    this.frames.get(this.chosen).text = this.editor.value;
    if (!this.gone) {
      this._tell(this._mistake());
      this._enable();
    }
  }

  /** Why the fields are no JSON; empty if they are. */
  _mistake() {
    try {
      JSON.parse(this.editor.value);
      return "";
    } catch (error) {
      return `not JSON: ${error.message}`;
    }
  }

  _tell(problem) {
    this.problem.textContent = problem;
    this.problem.hidden = !problem;
  }

  async _open(number) {
    if (!this.frames.has(number)) {
      const { values, reason } = await ask(`/api/klamm/v1/paused/${number}`);
      const came = values ? JSON.stringify(values, null, 2) : reason;
      this.frames.set(number, { came, text: came, editable: Boolean(values) });
    }
    this._choose(number);
  }

  async _resolve(resolution) {
    const number = this.chosen;
    untell();
    try {
      await ask(`/api/klamm/v1/paused/${number}`, { method: "POST", body: resolution });
    } catch (error) {
      this._tell(error.message);
      return;
    }
    tell(`frame ${number} ${DONE[resolution.action]}${resolution.code ? ` ${resolution.code}` : ""}`);
    this._choose(null);
    await this._look();
    this.list.querySelector("button")?.focus();
  }
}
