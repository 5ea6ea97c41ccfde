// What a rule would have done to the exchanges of the list: rows are marked, and the sum stands above them.

import { ask, counted, el, told } from "./page.js";
import { asWish } from "./period.js";
import { RuleForm } from "./ruleform.js";

export class Trying {
  /** `list()`: {where, hide, since, until, keys()} of the list; `marked()`: rows look different now. `live`: rules can be made. */
  constructor({ list, marked, live }) {
    this.list = list;
    this.marked = marked;
    this.live = live;
    this.told = el("div", { class: "tried", role: "status" });
    this.place = el("div");
    this.panel = el("details", { class: "trying", name: "menu", ontoggle: told(() => this._open()) }, el("summary", { role: "button" }, "try a rule"), el("div", { class: "panel wide" }, this.place));
    this.panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        this.panel.open = false;
        this.panel.querySelector("summary").focus();
      }
    });
    this.clear();
  }

  /** A form for a rule that can be tried, and put in force where there is a klamm. */
  form() {
    if (!this.live) {
      return new RuleForm({ title: "try it on the list", submit: (rule) => this.of(rule) });
    }
    return new RuleForm({ more: (rule) => el("button", { type: "button", onclick: told(() => this.of(rule())) }, "try it on the list") });
  }

  clear() {
    this.selects = new Set();
    this.acts = new Set();
    this.told.replaceChildren();
    this.told.hidden = true;
    this.marked?.();
  }

  /** The classes of a row. */
  look({ key }) {
    return this.acts.has(key) ? "would-act" : this.selects.has(key) ? "would-select" : "";
  }

  async of(rule) {
    const { keys, ...list } = this.list();
    const body = { rule, keys: this.live ? keys() : null, ...asWish(list) };
    const found = await ask("/api/trial", { method: "POST", body });
    if (found.mistakes.length) {
      throw new Error(found.mistakes.map(({ path, reason }) => (path ? `${path}: ${reason}` : reason)).join("\n"));
    }
    this.selects = new Set(found.selects);
    this.acts = new Set(found.acts);
    this.panel.open = false;
    this._say(found);
    this.marked();
  }

  _say(found) {
    const sum = found.selects.length
      ? `The rule selects ${found.selects.length.toLocaleString()} of ${counted(found.exchanges, "exchange")}, and would act on ${found.acts.length.toLocaleString()} of them.`
      : `The rule selects none of ${counted(found.exchanges, "exchange")}.`;
    const lines = [...found.would.map((text) => `It would ${text}.`), ...found.problems];
    if (found.unread) {
      lines.push(`${counted(found.unread, "exchange")} came without bodies: a rule that reads these cannot select them.`);
    }
    this.told.replaceChildren(
      el("p", {}, sum),
      ...lines.map((text) => el("p", {}, text)),
      el("button", { onclick: () => this.clear() }, "clear the marks"),
    );
    this.told.hidden = false;
  }

  async _open() {
    if (this.panel.open && !this.place.childElementCount) {
      const form = this.form();
      await form.fill({ api: "Produce", error: "NOT_LEADER_OR_FOLLOWER", times: 3 });
      this.place.append(form.element);
    }
  }
}
