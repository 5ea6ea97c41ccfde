// Rules in force: how often they acted, on and off, a new one, what it would have done, and an end to all.

import { Curves } from "./curves.js";
import { ask, el, tell, told, Watching } from "./page.js";
import { lasting } from "./lasting.js";
import { IN_FORCE, RuleForm } from "./ruleform.js";

const LOOK_MS = 1000;
const COLUMNS = ["rule", "from", "matches", "hits", "hits over time", "state", "written", "change"];

/** `tryOut(rule)` marks the exchanges of the list on which a rule would have acted. */
export class Rules extends Watching {
  constructor(tryOut) {
    super(LOOK_MS);
    this.curves = new Curves();
    this.table = el("tbody");
    this.all = el("div", { class: "doings", hidden: true }, el("button", { onclick: told(() => this._off()) }, "end all"));
    this.form = new RuleForm({
      more: (rule) => el("button", { type: "button", onclick: told(() => tryOut(rule())) }, "try it on the list"),
      done: () => this._look(),
    });
    this.written = el("textarea", { id: "rule", rows: "6", spellcheck: "false", placeholder: '{"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 3}' });
    this.element = el(
      "div",
      { class: "page" },
      el("h2", {}, "Rules"),
      el(
        "div",
        { class: "scrolled", tabindex: "0", role: "region", "aria-label": "rules" },
        el("table", { class: "rules" }, el("thead", {}, el("tr", {}, COLUMNS.map((name) => el("th", { scope: "col" }, name)))), this.table),
      ),
      this.all,
      el("h2", {}, "A new rule"),
      el("p", { class: "about" }, 'It ends after 10 minutes, or after its "for"; "forever" never ends.'),
      this.form.element,
      el(
        "details",
        { class: "as-json", ontoggle: () => this._copy() },
        el("summary", {}, "write it as JSON"),
        el("form", { onsubmit: told((event) => this._add(event)) }, el("label", { for: "rule" }, "A rule in the form of a rule file"), this.written, el("button", {}, IN_FORCE)),
      ),
    );
  }

  open(parameters) {
    const rule = parameters.get("rule");
    if (!this.filled || rule) {
      this.filled = true;
      told(() => this.form.fill(rule ? JSON.parse(rule) : { api: "Produce", error: "NOT_LEADER_OR_FOLLOWER", times: 3 }))();
    }
    this.named = parameters.get("name"); // its row is marked
    this.isSought = this.named !== null;
    super.open();
  }

  /** The hits by rule, told also while another view is open: the curves have no gaps. */
  count(hits) {
    this.curves.look(hits, performance.now());
  }

  async _look() {
    try {
      this._show(await ask("/api/klamm/v1/rules"));
    } catch (error) {
      this.table.replaceChildren(el("tr", {}, el("td", { colspan: String(COLUMNS.length) }, error.message)));
    }
  }

  _show(rules) {
    const focused = document.activeElement?.closest("tr[data-rule]") && document.activeElement;
    const [name, place] = focused ? [focused.closest("tr").dataset.rule, [...focused.parentElement.children].indexOf(focused)] : [];
    const rows = rules.map((rule) => this._row(rule));
    const sought = rows.find((row) => row.dataset.rule === this.named);
    sought?.setAttribute("aria-current", "true");
    this.all.hidden = !rows.length;
    this.table.replaceChildren(...(rows.length ? rows : [el("tr", {}, el("td", { colspan: String(COLUMNS.length) }, "no rules"))]));
    if (name !== undefined) {
      rows.find((row) => row.dataset.rule === name)?.querySelectorAll("button")[place]?.focus();
    }
    if (this.isSought) {
      this.isSought = false;
      this._seek(sought);
    }
  }

  /** The rule that the address names, once. */
  _seek(row) {
    if (row) {
      row.scrollIntoView({ block: "center" });
    } else {
      tell(`no rule ${this.named} is in force any more`);
    }
  }

  _row(rule) {
    const path = `/api/klamm/v1/rules/${encodeURIComponent(rule.name)}`;
    const act = (label, method, body) => el("button", { onclick: told(async () => this._after(ask(path, { method, body }))) }, label);
    const cells = [rule.name, rule.origin, rule.matches, rule.hits, this.curves.element(rule.name), lasting(rule, Date.now() / 1000), JSON.stringify(rule.written)];
    return el(
      "tr",
      { "data-rule": rule.name },
      cells.map((cell) => el("td", {}, cell instanceof Node ? cell : String(cell))),
      el(
        "td",
        {},
        rule.over ? null : act(rule.enabled ? "off" : "on", "PATCH", { enabled: !rule.enabled }),
        rule.origin === "hand" ? act("remove", "DELETE", {}) : null,
      ),
    );
  }

  async _after(call) {
    await call;
    await this._look();
  }

  async _off() {
    await this._after(ask("/api/klamm/v1/rules/off", { method: "POST", body: {} }));
  }

  /** The rule of the form, where nothing is written yet. */
  _copy() {
    this.written.value ||= JSON.stringify(this.form.rule(), null, 2);
  }

  async _add(event) {
    event.preventDefault();
    let rule;
    try {
      rule = JSON.parse(this.written.value);
    } catch (error) {
      throw new Error(`not JSON: ${error.message}`);
    }
    const made = await ask("/api/klamm/v1/rules", { method: "POST", body: rule });
    tell(`${made.name} is in force`);
    this.written.value = "";
    await this._look();
  }
}
