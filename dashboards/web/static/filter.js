// The filter: an expression as in rules, completed while one types.

import { ask, el, quoted } from "./page.js";

const NOISE = "not api in (Heartbeat, ApiVersions, ConsumerGroupHeartbeat, ShareGroupHeartbeat, StreamsGroupHeartbeat)";
const PRESETS = [
  { name: "all", text: "" },
  { name: "without heartbeats", text: NOISE },
  { name: "errors", text: "error != NONE" },
  { name: "slow", text: "latency_ms > 100 and api != Fetch" },
  { name: "writes", text: "api in (Produce, AddPartitionsToTxn, EndTxn, TxnOffsetCommit, OffsetCommit)" },
  { name: "groups", text: "group is not None" },
];
const OWN = "own"; // the value of the preset box for a filter that is none of them
const MOST = 12; // proposals
const FUNCTIONS = ["any(", "all(", "len(", "glob(", "matches(", "startswith(", "and", "or", "not", "in", "is None"];

const TEXT = /"(?:[^"\\]|\\.)*"/g;
const OPEN_TEXT = /"((?:[^"\\]|\\.)*)$/; // a text that is begun
const COMPARED = /\b(\w+)\s*(?:[=!]=|(?:not\s+)?in\s*[[(](?:[^\])]*,)?)\s*$/; // a name, and what stands behind it
const BEGIN = /(?:^|\b(?:and|or|not)|(?:^|\W)\()\s*$/; // of a condition
const KINDS = { api: "apis", error: "errors" };

/** `text` is the filter that is in force. `changed(text)` is called with each finished one. `seen`: names of clients, topics and groups (seen.js). */
export class Filter {
  constructor(changed, seen = null) {
    this.changed = changed;
    this.seen = seen;
    this.text = "";
    this.input = el("input", {
      id: "filter",
      type: "text",
      role: "combobox",
      "aria-expanded": "false",
      "aria-controls": "proposals",
      "aria-autocomplete": "list",
      "aria-label": "filter",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: 'filter, as in rules: topic == "orders" and error != NONE',
      oninput: () => {
        this.typing = true;
        this._propose();
      },
      onkeydown: (event) => this._key(event),
      onblur: () => setTimeout(() => this._close(), 150),
    });
    this.list = el("ul", { id: "proposals", role: "listbox", "aria-label": "proposals", hidden: true });
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    this.presets = el(
      "select",
      { "aria-label": "ready filters", onchange: () => this.set(this.presets.value) },
      PRESETS.map(({ name, text }) => el("option", { value: text }, name)),
      el("option", { value: OWN, disabled: true, hidden: true }, "own filter"),
    );
    this.element = el("div", { class: "filter" }, this.presets, el("div", { class: "typed" }, this.input, this.list, this.problem));
    this.words = FUNCTIONS;
    this.at = -1;
    this.typing = false;
    this._load();
  }

  /** This filter is in force: show it, in the field and in the preset box. */
  show(text) {
    this.text = text.trim();
    this.input.value = this.text;
    this.presets.value = PRESETS.some((preset) => preset.text === this.text) ? this.text : OWN;
  }

  set(text) {
    this.input.value = text;
    this._finish();
  }

  /** Add a condition to what is there. */
  add(condition) {
    const there = this.input.value.trim();
    this.set(there ? `(${there}) and ${condition}` : condition);
  }

  say(problem) {
    this.problem.textContent = problem;
    this.problem.hidden = !problem;
    this.input.setAttribute("aria-invalid", String(Boolean(problem)));
  }

  async _load() {
    const { names, apis, errors } = await ask("/api/words");
    this.words = [...names, ...FUNCTIONS];
    this.kinds = { apis, errors };
    if (this.typing) {
      this._propose();
    }
  }

  _finish() {
    this._close();
    this.say("");
    this.show(this.input.value);
    this.changed(this.text);
  }

  /** What is being typed: `from` is its place, `of` the name that it is compared with, `open` that of a text; `begins`: a condition. */
  _typed() {
    const before = this.input.value.slice(0, this.input.selectionStart);
    const open = OPEN_TEXT.exec(before.replace(TEXT, (text) => " ".repeat(text.length)));
    if (open) {
      return { word: open[1], from: open.index, open: true, of: COMPARED.exec(before.slice(0, open.index))?.[1] };
    }
    const word = /[A-Za-z_][\w.-]*$/.exec(before)?.[0] ?? "";
    const from = before.length - word.length;
    const ahead = before.slice(0, from);
    const of = COMPARED.exec(ahead)?.[1];
    return { word, from, open: false, of, begins: !of && BEGIN.test(ahead) };
  }

  /** The words that fit there, as they are written; behind them, where a condition begins, those of names. */
  _fitting({ word, open, of, begins }) {
    const named = (this.seen?.of(of) ?? []).map((name) => quoted(name));
    if (open || this.seen?.knows(of)) {
      return { words: named, any: open || Boolean(of) };
    }
    const kind = this.kinds?.[KINDS[of]];
    if (kind) {
      return { words: kind, any: true };
    }
    return begins ? { words: this.words, conditions: this.seen?.conditions(word) } : { words: [...this.words, ...(word ? named : [])] };
  }

  _propose() {
    const typed = this._typed();
    const { words, any = false, conditions = [] } = this._fitting(typed);
    const word = typed.word.toLowerCase();
    const plain = (each) => each.toLowerCase().replace(/^"/, "");
    const begin = words.filter((each) => plain(each).startsWith(word));
    const inside = words.filter((each) => plain(each).includes(word) && !begin.includes(each));
    this.found = word || any ? [...begin, ...inside, ...conditions].slice(0, MOST) : [];
    this.at = -1;
    this.list.replaceChildren(
      ...this.found.map((each, index) =>
        el("li", { role: "option", id: `proposal-${index}`, "aria-selected": "false", onmousedown: () => this._take(each) }, each),
      ),
    );
    this._show(this.found.length > 0);
  }

  _show(open) {
    this.list.hidden = !open;
    this.input.setAttribute("aria-expanded", String(open));
    if (!open) {
      this.input.removeAttribute("aria-activedescendant");
    }
  }

  _close() {
    this.typing = false;
    this._show(false);
  }

  _take(word) {
    const { input } = this;
    const { from, open } = this._typed();
    const end = input.selectionStart + (open && input.value[input.selectionStart] === '"' ? 1 : 0);
    input.setRangeText(word, from, end, "end");
    this._close();
    input.focus();
  }

  _key(event) {
    const open = !this.list.hidden;
    if (event.key === "Enter") {
      event.preventDefault();
      return open && this.at >= 0 ? this._take(this.found[this.at]) : this._finish();
    }
    if (event.key === "Tab" && open) {
      event.preventDefault();
      return this._take(this.found[Math.max(0, this.at)]);
    }
    if (event.key === "Escape") {
      return open ? this._close() : this.input.blur();
    }
    if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.at = (this.at + step + this.found.length) % this.found.length;
      [...this.list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === this.at)));
      this.input.setAttribute("aria-activedescendant", `proposal-${this.at}`);
    }
    return undefined;
  }
}
