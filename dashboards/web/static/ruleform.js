// A form that makes a rule: the frames that it selects, its action with parameters, and when it acts.

import { ask, el, tell, told } from "./page.js";

const SELECTORS = [
  ["api", "API", "apis"],
  ["client", "client", "clients-seen"],
  ["topic", "topic", "topics-seen"],
  ["group", "group", "groups-seen"],
  ["where", "where", null],
];
const SIDES = { name: "side", choices: ["request", "response"], text: "the side of the exchange that the rule is about: the request, unless told" };
const WHEN = [
  ["times", "times", "number"],
  ["for", "for", "text"],
];
const WRITTEN = [...SELECTORS.map(([name]) => name), "side", ...WHEN.map(([name]) => name)]; // as a rule file has them
const CHECK_MS = 250;

const actions = await ask("/api/actions"); // known before a form is seen: what fills it later would undo what is typed

export const IN_FORCE = "put it in force";

/** Its button puts the rule in force, or, with a `title` of its own, calls `submit(rule)`; `more(rule)` gives
 * further ones. */
export class RuleForm {
  constructor({ title = IN_FORCE, more = () => [], done = () => {}, submit }) {
    this.done = done;
    this.submit = submit ?? ((rule) => this._add(rule));
    this.inputs = {};
    this.action = el("select", { "aria-label": "action", onchange: () => this._parameters({}) });
    this.parameters = el("div", { class: "parameters" });
    this.text = el("p", { class: "about" });
    this.read = el("div", { class: "read", role: "status" });
    const field = ([name, label, list]) => this._field(name, label, { list, placeholder: name === "where" ? "acks == -1" : "all" });
    this.element = el(
      "form",
      { class: "rule-form", onsubmit: told((event) => this._submit(event)), oninput: () => this._soon() },
      el("fieldset", {}, el("legend", {}, "frames"), SELECTORS.map(field), this._choice("side", SIDES)),
      el("fieldset", {}, el("legend", {}, "action"), this.action, this.parameters, this.text),
      el(
        "fieldset",
        {},
        el("legend", {}, "when"),
        WHEN.map(([name, label, type]) => this._field(name, label, { type, min: "1", placeholder: name === "for" ? "10m" : "always" })),
      ),
      this.read,
      el("div", { class: "doings" }, el("button", {}, title), more(() => this.rule())),
    );
  }

  /** As a rule file has it: an action is the key that is no selector. */
  async fill(rule = {}) {
    this.action.replaceChildren(...actions.map(({ name }) => el("option", { value: name }, name)));
    for (const name of WRITTEN) {
      this.inputs[name].value = rule[name] === undefined ? "" : String(rule[name]);
    }
    const chosen = actions.find(({ name }) => name in rule) ?? actions[0];
    this.action.value = chosen.name;
    const written = rule[chosen.name];
    const first = chosen.parameters[0]?.name;
    this._parameters(written && typeof written === "object" ? written : first && written !== true ? { [first]: written } : {});
    await this._check();
  }

  rule() {
    const made = {};
    for (const name of WRITTEN) {
      const { value } = this.inputs[name];
      if (value.trim()) {
        made[name] = name === "times" ? Number(value) : value.trim();
      }
    }
    const { name, entries, parameters } = this._action();
    if (entries) {
      const lines = this.inputs["action.entries"].value.split("\n").filter((line) => line.trim());
      made[name] = Object.fromEntries(lines.map((line) => line.split(/:(.*)/s).slice(0, 2).map((text) => text.trim())));
      return made;
    }
    const given = parameters.map(({ name: each }) => [each, this.inputs[`action.${each}`].value.trim()]).filter(([, value]) => value);
    const short = given.length === 1 && given[0][0] === parameters[0].name && !parameters[0].choices.includes("true");
    made[name] = short ? given[0][1] : given.length ? Object.fromEntries(given) : true;
    return made;
  }

  _action() {
    return actions.find(({ name }) => name === this.action.value);
  }

  _field(name, label, attributes) {
    const id = `rule-${label}-${Math.random().toString(36).slice(2)}`;
    this.inputs[name] = el("input", { id, autocomplete: "off", spellcheck: "false", ...attributes });
    return el("span", { class: "named" }, el("label", { for: id }, label), this.inputs[name]);
  }

  _parameters(values) {
    const { entries, parameters, text, name } = this._action();
    const made = entries
      ? [this._entries(values)]
      : parameters.map((one) => (one.choices.length ? this._choice(`action.${one.name}`, one, values[one.name]) : this._written(one, name, values[one.name])));
    this.parameters.replaceChildren(...made);
    this.text.textContent = text;
    this._soon();
  }

  _entries(values) {
    const lines = Object.entries(values).map(([key, value]) => `${key}: ${value}`);
    const area = el("textarea", { rows: "3", "aria-label": "fields and values", placeholder: "throttle_time_ms: 500", spellcheck: "false" });
    area.value = lines.join("\n");
    this.inputs["action.entries"] = area;
    return area;
  }

  _choice(key, { name, choices, text }, value) {
    const id = `rule-${name}-${Math.random().toString(36).slice(2)}`;
    const options = ["", ...choices].map((each) => el("option", { value: each }, each || "as usual"));
    this.inputs[key] = el("select", { id, title: text }, options);
    this.inputs[key].value = value === undefined ? "" : String(value);
    return el("span", { class: "named" }, el("label", { for: id }, name), this.inputs[key]);
  }

  /** The first parameter of an error is its code: the field is called as what one writes there. */
  _written({ name, text, shape, list, needed }, action, value) {
    const label = name === "code" ? action : name;
    const found = this._field(`action.${name}`, label, { list: list || null, title: text, placeholder: / such as ([^,]*)/.exec(shape)?.[1].split(" or ")[0] ?? shape, required: needed });
    this.inputs[`action.${name}`].value = value === undefined ? "" : String(value);
    return found;
  }

  _soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this._check(), CHECK_MS);
  }

  async _check() {
    clearTimeout(this.timer);
    const asked = (this.asked = Symbol("check"));
    let found;
    try {
      found = await ask("/api/rule", { method: "POST", body: this.rule() });
    } catch (error) {
      found = { mistakes: [{ path: "", reason: error.message }], warnings: [], words: [], yaml: "" };
    }
    if (this.asked !== asked) {
      return;
    }
    const line = ({ path, reason }) => (path ? `${path}: ${reason}` : reason);
    this.read.replaceChildren(
      ...found.mistakes.map((one) => el("p", { class: "problem" }, line(one))),
      ...found.warnings.map((one) => el("p", { class: "reason" }, line(one))),
      ...(found.words.length ? [el("dl", {}, found.words.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]))] : []),
      ...(found.yaml ? [el("pre", {}, found.yaml.trim())] : []),
    );
  }

  async _submit(event) {
    event.preventDefault();
    await this.submit(this.rule());
  }

  async _add(rule) {
    const made = await ask("/api/klamm/v1/rules", { method: "POST", body: rule });
    tell(`${made.name} is in force`);
    this.done(made);
  }
}
