// The exchanges of a capture as a file: those of the filter and the time, also more than the list can show.

import { el, lines, size } from "./page.js";
import { asWish, exact, ofLink } from "./period.js";

const MOST = "512 MiB"; // as exports.py has it
const FORMS = {
  jsonl: "JSON lines (.jsonl): an exchange a line, with its fields",
  pcapng: "packets (.pcapng): for Wireshark and tshark",
  arrow: "a capture (.arrow): for klamm show, klamm web, klamm replay",
};

/** `wanted()`: {where, hide, since, until}, as a link has them. */
export class Exports {
  constructor({ wanted }) {
    this.wanted = wanted;
    this.form = el("select", { "aria-label": "form of the file" }, Object.entries(FORMS).map(([form, text]) => el("option", { value: form }, text)));
    this.make = el("button", {}, "export");
    this.cancel = el("button", { type: "button", hidden: true, onclick: () => this.running?.abort() }, "cancel");
    this.of = el("p", { class: "of" });
    this.words = el("p", { class: "state", role: "status" });
    this.notes = el("ul", { class: "problems", hidden: true });
    this.element = el(
      "form",
      { class: "export", onsubmit: (event) => this._make(event) },
      this.of,
      el("div", { class: "doings" }, this.form, this.make, this.cancel),
      this.words,
      this.notes,
    );
    this.tell();
  }

  /** The same as a panel behind a button. */
  panel() {
    const summary = el("summary", { role: "button" }, "export");
    const panel = el("details", { class: "exporting", name: "menu", ontoggle: () => this.tell() }, summary, el("div", { class: "panel wide" }, this.element));
    panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        panel.open = false;
        summary.focus();
      }
    });
    return panel;
  }

  /** What an export would hold. */
  tell() {
    const wanted = this.wanted();
    const { where, hide } = wanted;
    const { since, until } = ofLink(new URLSearchParams(wanted)) ?? {};
    const times = [since ? `from ${exact(since)}` : "", until ? `to ${exact(until)}` : ""].filter(Boolean).join(" ");
    const of = [where ? el("code", {}, where) : "all exchanges", hide ? ` without ${hide.split(",").join(", ")}` : "", times ? ` ${times}` : ""];
    this.of.replaceChildren(...of.filter(Boolean), `; at most ${MOST}. What the capture has blanked stays blank.`);
  }

  async _make(event) {
    event.preventDefault();
    this.running?.abort();
    const running = (this.running = new AbortController());
    this._busy(true);
    this.notes.hidden = true;
    try {
      let last = {};
      for await (const line of lines("/api/exports", running.signal, { method: "POST", body: { form: this.form.value, ...asWish(this.wanted()) } })) {
        last = line;
        this.words.textContent = line.problem || `${(line.exchanges ?? 0).toLocaleString()} exchanges, ${size(line.bytes ?? 0)}`;
      }
      this._take(last);
    } catch (error) {
      this.words.textContent = running.signal.aborted ? "cancelled" : error.refused ? error.message : "klamm web does not answer: is it still running?";
    }
    this._busy(false);
  }

  _take({ file, name, notes = [] }) {
    if (!file) {
      return;
    }
    this.notes.hidden = !notes.length;
    this.notes.replaceChildren(...notes.map((text) => el("li", {}, text)));
    el("a", { href: file, download: name }).click();
  }

  _busy(busy) {
    this.make.disabled = busy;
    this.cancel.hidden = !busy;
  }
}
