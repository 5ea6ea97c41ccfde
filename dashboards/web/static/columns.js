// The columns of the list: klamm's own, and fields of bodies. The link of the page keeps them.

import { fates, lasted, unanswered } from "./fates.js";
import { ask, clock, el, named, size, told } from "./page.js";

const errors = (row) =>
  [
    ...Object.entries(row.errors ?? {}).map(([name, count]) => (count > 1 ? `${name} x${count}` : name)),
    ...Object.entries(row.undecodable ?? {}).map(([side, reason]) => `${side} does not decode: ${reason}`),
  ].join(" ");

/** The names of the errors come first: a narrow column cuts the end. */
const outcome = (row) => [errors(row), unanswered(row), row.origin === "klamm" ? "by klamm" : "", ...fates(row)].filter(Boolean).join(" ");

/** By name: `least` width in rem, `grow` its share of the room that is left. */
export const OWN = {
  time: { least: 6.6, text: (row) => clock(row.time) },
  API: { least: 9, grow: 1.2, text: named },
  client: { least: 6, grow: 1, text: (row) => row.client_id ?? "" },
  cluster: { least: 5, text: (row) => row.cluster },
  broker: { least: 4.2, text: (row) => row.broker },
  connection: { least: 5.5, align: "number", text: (row) => String(row.connection_id) },
  "topic, group": { least: 6, grow: 1.2, text: (row) => Object.keys(row.topics ?? {}).join(" ") || row.group || "" },
  topic: { least: 6, grow: 1, text: (row) => Object.keys(row.topics ?? {}).join(" ") },
  partition: { least: 4.5, text: (row) => Object.values(row.topics ?? {}).flat().join(", ") },
  group: { least: 6, grow: 1, text: (row) => row.group ?? "" },
  request: { least: 5, align: "number", text: (row) => (row.request_bytes ? size(row.request_bytes) : "none") },
  answer: { least: 5, align: "number", text: (row) => size(row.response_bytes) || "none" },
  ms: { least: 4.6, align: "number", text: (row) => lasted(row)?.toFixed(1) ?? "" },
  error: { least: 6, grow: 1.2, text: outcome },
  rule: { least: 6, grow: 1, text: (row) => (row.rules ?? []).join(", ") },
};
const USUAL = ["time", "API", "client", "broker", "topic, group", "request", "answer", "ms", "error"];
const BRIEF = { time: 6.2, API: 6, error: 7.2 }; // beside an open exchange: the least rem of each
const NAMES = { client: 5.6, "topic, group": 6, topic: 6, group: 6 }; // there too on a wide screen
export const WIDE = matchMedia("(min-width: 90rem)"); // as in style.css
const FIELD = { least: 6, grow: 1 };
const STEP = 24; // pixels
const LEAST = 40;
const SPLIT = ";";

/** `{name, px}` of each; `px` is undefined where the list decides. */
function parsed(text) {
  const found = text.split(SPLIT).flatMap((each) => {
    const [, name, px] = /^(.*?)(?::(\d+))?$/.exec(each.trim());
    return name ? [{ name, px: px ? Math.max(LEAST, Number(px)) : undefined }] : [];
  });
  return found.filter(({ name }, index) => found.findIndex((other) => other.name === name) === index);
}

const written = (chosen) => chosen.map(({ name, px }) => (px ? `${name}:${px}` : name)).join(SPLIT);
const usual = () => USUAL.map((name) => ({ name }));
const isField = (name) => !(name in OWN);

export class Columns {
  /** `changed(more)`: other columns; `more`: rows need cells that they do not have. `apis()`: those in sight. */
  constructor({ changed, apis }) {
    this.changed = changed;
    this.apis = apis;
    this.chosen = usual();
    this.asked = []; // the fields of which rows have cells, in the order of the cells
    this.names = el("datalist", { id: "column-names" });
    this.input = el("input", { id: "column", list: "column-names", autocomplete: "off", spellcheck: "false", placeholder: "request.acks", onfocus: told(() => this._complete()) });
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    this.items = el("ol", { class: "chosen-columns" });
    this.element = el(
      "details",
      { class: "columns", name: "menu" },
      el("summary", { role: "button" }, "columns"),
      el(
        "div",
        { class: "panel" },
        this.items,
        el(
          "form",
          { onsubmit: (event) => this._add(event) },
          el("label", { for: "column" }, "Add a column: a name, or a field of a request or response"),
          this.input,
          this.names,
          el("button", {}, "add"),
          el("button", { type: "button", onclick: () => this._set(usual()) }, "usual columns"),
        ),
        this.problem,
      ),
    );
    this.element.addEventListener("keydown", (event) => event.key === "Escape" && this._close());
    this._draw();
  }

  /** As the link has them; whether rows need more cells. */
  open(text) {
    const chosen = parsed(text);
    this.chosen = chosen.length ? chosen : usual();
    this._draw();
    return this._needsMore();
  }

  /** For the link: empty where they are the usual ones. */
  get text() {
    const text = written(this.chosen);
    return text === written(usual()) ? "" : text;
  }

  /** The fields, as the server wants them: the rows that come from now on have cells for them. */
  ask() {
    this.asked = this._fields();
    return this.asked.join(",");
  }

  /** For the list. */
  all() {
    return this.chosen.map(({ name, px }) => {
      const own = OWN[name];
      const at = this.asked.indexOf(name);
      const text = own?.text ?? ((row) => row.cells?.[at] ?? "");
      return { ...(own ?? FIELD), name, label: own ? name : name.split(".").at(-1), px, text };
    });
  }

  /** Those of `all` that are shown beside an open exchange. */
  brief() {
    const least = WIDE.matches ? { ...BRIEF, ...NAMES } : BRIEF;
    const found = this.all().filter(({ name }) => name in least);
    return found.length ? found.map(({ px, ...rest }) => ({ ...rest, least: least[rest.name] })) : this.all().slice(0, 3);
  }

  move(name, to) {
    const chosen = this.chosen.filter((one) => one.name !== name);
    const one = this.chosen.find((each) => each.name === name);
    chosen.splice(Math.max(0, to), 0, one);
    this._set(chosen);
  }

  resize(name, px) {
    this._set(this.chosen.map((one) => (one.name === name ? { name, px: Math.max(LEAST, Math.round(px)) } : one)));
  }

  _fields() {
    return this.chosen.map(({ name }) => name).filter(isField);
  }

  _needsMore() {
    return this._fields().some((name) => !this.asked.includes(name));
  }

  _set(chosen) {
    this.chosen = chosen;
    this._draw();
    this.changed(this._needsMore());
  }

  _close() {
    this.element.open = false;
    this.element.querySelector("summary").focus();
  }

  _draw() {
    const button = (label, text, act, disabled = false) => el("button", { type: "button", "aria-label": label, title: label, disabled, onclick: act }, text);
    const last = this.chosen.length - 1;
    this.items.replaceChildren(
      ...this.chosen.map(({ name, px }, at) =>
        el(
          "li",
          { "data-column": name },
          el("span", {}, name),
          button(`move ${name} to the left`, "←", () => this._again(name, 0, () => this.move(name, at - 1)), at === 0),
          button(`move ${name} to the right`, "→", () => this._again(name, 1, () => this.move(name, at + 1)), at === last),
          button(`make ${name} narrower`, "−", () => this._again(name, 2, () => this.resize(name, (px ?? this._width(name)) - STEP))),
          button(`make ${name} wider`, "+", () => this._again(name, 3, () => this.resize(name, (px ?? this._width(name)) + STEP))),
          button(`remove ${name}`, "×", () => this._set(this.chosen.filter((one) => one.name !== name)), last === 0),
        ),
      ),
    );
  }

  /** The items are made anew: the focus goes to the same button. */
  _again(name, place, act) {
    act();
    const buttons = [...this.items.children].find((item) => item.dataset.column === name)?.querySelectorAll("button");
    const wanted = buttons?.[place];
    (wanted?.disabled ? buttons[place ^ 1] : wanted)?.focus();
  }

  _width(name) {
    return document.querySelector(`.list .head [data-column="${CSS.escape(name)}"]`)?.offsetWidth || 100;
  }

  async _complete() {
    const fields = await ask(`/api/fields?apis=${encodeURIComponent(this.apis().join(","))}`);
    const names = [...Object.keys(OWN), ...fields].filter((name) => !this.chosen.some((one) => one.name === name));
    this.names.replaceChildren(...names.map((name) => el("option", { value: name })));
  }

  async _add(event) {
    event.preventDefault();
    const name = this.input.value.trim();
    const say = (text) => {
      this.problem.textContent = text;
      this.problem.hidden = !text;
      this.input.setAttribute("aria-invalid", String(Boolean(text)));
    };
    if (!name || this.chosen.some((one) => one.name === name)) {
      say(name ? `${name} is a column already` : "write the name of a column");
      return;
    }
    try {
      if (isField(name)) {
        await ask(`/api/fields?check=${encodeURIComponent([...this._fields(), name].join(","))}`);
      }
    } catch (error) {
      say(error.message);
      return;
    }
    say("");
    this.input.value = "";
    this._set([...this.chosen, { name }]);
  }
}
