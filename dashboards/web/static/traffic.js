// Clients, brokers, topics and software as tables, the worst first; and what the chosen one talks to.

import { count } from "./amounts.js";
import { FigureTable } from "./figure-table.js";
import { Filter } from "./filter.js";
import { amounts, Details, duration, named, rowName } from "./node.js";
import { ask, clock, el } from "./page.js";

const TABLES = { client: "clients", broker: "brokers", topic: "topics", software: "software" };
const PERIODS = [
  ["10", "the last 10 s"],
  ["60", "the last minute"],
  ["300", "the last 5 minutes"],
  ["opened", "since this view was opened"],
  ["started", "since klamm began"],
];
const AGAIN_MS = { live: 1000, reading: 500 };
const WRONG = "where: "; // begins the reason for which a filter is refused
const TYPED_MS = 150;
const UP = new Set(["name", "software"]); // columns whose least value usually comes first
const EMPTY = {
  client: { live: "No client has sent a request yet. Clients come to klamm at the addresses that the view clusters has.", capture: "No exchange is in this period." },
  broker: { live: "klamm knows no broker yet.", capture: "No exchange is in this period." },
  topic: { live: "No request has named a topic yet.", capture: "No request in this period names a topic." },
  software: { live: "No client has a connection now.", capture: "No connection has an exchange in this period." },
};

export class Traffic {
  constructor(about, remember) {
    this.about = about;
    this.live = about.kind === "live";
    this.remember = remember;
    this.page = Array.from(crypto.getRandomValues(new Uint32Array(2)), (part) => part.toString(36)).join("");
    this.asked = new URLSearchParams();
    this.seconds = 1;
    this.many = false;
    this.turn = 0;
    this.tabs = Object.keys(TABLES).map((kind) => el("a", { "data-table": kind }, TABLES[kind]));
    this.search = el("input", { type: "search", "aria-label": "search", placeholder: "search names", autocomplete: "off", spellcheck: "false", oninput: () => this._typed() });
    this.count = el("p", { class: "count", role: "status", "aria-live": "off" });
    this.notes = el("ul", { class: "notes" });
    this.empty = el("p", { class: "note", hidden: true });
    this.tables = Object.fromEntries(Object.keys(TABLES).map((kind) => [kind, this._table(kind)]));
    this.details = new Details({ href: (row) => this._to(row), close: () => this._leave(), bounds: () => this._bounds() });
    this.place = el("div", { class: "list-of-nodes" }, this.notes, this.empty);
    this.element = el(
      "div",
      { class: "traffic" },
      el("div", { class: "bar" }, el("nav", { "aria-label": "tables" }, this.tabs), this.search, this.live ? this._period() : this._choice(), this.count),
      el("div", { class: "halves" }, this.place, this.details.element),
    );
    document.addEventListener("visibilitychange", () => this.shown && !document.hidden && this._ask());
  }

  open(parameters) {
    this.shown = true;
    const before = this._chosen();
    this.asked = new URLSearchParams(parameters);
    if (rowName(before) !== rowName(this._chosen())) {
      this._find();
    }
    const search = this._get("search");
    if (this.search.value.trim() !== search) {
      this.search.value = search;
    }
    this._showControls();
    this._drawAgain();
    this._ask();
  }

  close() {
    this.shown = false;
    clearTimeout(this.timer);
    this.turn += 1;
  }

  _get(name, usual = "") {
    return this.asked.get(name) ?? usual;
  }

  _chosen() {
    return { kind: this._get("kind"), cluster: this._get("cluster"), name: this._get("name") };
  }

  _bounds() {
    return Object.fromEntries(["since", "until"].filter((name) => this.asked.has(name)).map((name) => [name, this._get(name)]));
  }

  /** The findings of an analysis that are about the chosen node. */
  async _find() {
    const chosen = this._chosen();
    this.details.tell(chosen, []);
    if (!chosen.kind) {
      return;
    }
    const found = await ask("/api/findings").catch(() => []); // the tables tell that nobody answers
    if (rowName(chosen) === rowName(this._chosen())) {
      this.details.tell(chosen, found);
    }
  }

  get _kind() {
    return this._get("table") in TABLES ? this._get("table") : "client";
  }

  /** The link to this view with other parameters; empty ones are left out. */
  _href(changes) {
    const parameters = new URLSearchParams(this.asked);
    for (const [name, value] of Object.entries(changes)) {
      value === "" ? parameters.delete(name) : parameters.set(name, value);
    }
    return `#traffic?${parameters}`;
  }

  /** The link to a node; to software the one to its clients. */
  _to(row) {
    if (row.kind === "software") {
      return row.name ? this._href({ table: "client", search: row.name, sort: "", order: "" }) : "";
    }
    const parameters = new URLSearchParams(this.asked);
    parameters.set("kind", row.kind);
    parameters.set("cluster", row.cluster);
    parameters.set("name", row.name);
    return `#traffic?${parameters}`;
  }

  _leave() {
    const name = rowName(this._chosen());
    this._change({ kind: "", cluster: "", name: "" });
    this.tables[this._kind].focus(name);
  }

  /** Change the link, without a step back in the history of the browser. */
  _change(changes) {
    this.remember(changes);
    this.asked = new URLSearchParams(this._href(changes).split("?")[1]);
    this._showControls();
    this._drawAgain();
    this._ask();
  }

  _typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this._change({ search: this.search.value.trim() }), TYPED_MS);
  }

  _sort(key) {
    const { key: now, down } = this._sorted();
    const usual = !UP.has(key);
    const turned = now === key ? !down : usual;
    this._change({ sort: key, order: turned === usual ? "" : turned ? "down" : "up" });
  }

  _sorted() {
    const key = this._get("sort", this._kind === "software" ? "connections" : "errors");
    const order = this._get("order");
    return { key, down: order ? order === "down" : !UP.has(key) };
  }

  _period() {
    this.period = el("select", { "aria-label": "period", onchange: () => this._change({ period: this.period.value === "10" ? "" : this.period.value }) }, PERIODS.map(([value, text]) => el("option", { value }, text)));
    this.freezing = el("button", { onclick: () => this._freeze(), "aria-pressed": "false" }, "freeze");
    return [this.period, this.freezing];
  }

  _freeze() {
    this.frozen = !this.frozen;
    this.freezing.setAttribute("aria-pressed", String(this.frozen));
    this.freezing.textContent = this.frozen ? "go on" : "freeze";
    if (this.frozen) {
      clearTimeout(this.timer);
      this.turn += 1; // an answer that is on its way comes too late
    } else {
      this._ask();
    }
  }

  _choice() {
    this.filter = new Filter((where) => this._change({ where }));
    const time = (name) => {
      const input = el("input", { type: "datetime-local", step: "0.001", onchange: () => this._change({ [name]: input.value ? String(new Date(input.value).getTime() / 1000) : "" }) });
      return input;
    };
    this.times = { since: time("since"), until: time("until") };
    this.whole = el("button", { onclick: () => this._change({ since: "", until: "" }) }, "all of it");
    return [
      this.filter.element,
      el("div", { class: "bounds" }, el("label", {}, "from ", this.times.since), el("label", {}, "to ", this.times.until), this.whole),
    ];
  }

  _showControls() {
    for (const tab of this.tabs) {
      const kind = tab.dataset.table;
      tab.setAttribute("href", this._href({ table: kind === "client" ? "" : kind, sort: "", order: "", search: "" }));
      kind === this._kind ? tab.setAttribute("aria-current", "page") : tab.removeAttribute("aria-current");
    }
    const { element } = this.tables[this._kind];
    if (element.parentElement !== this.place) {
      this.place.querySelector("table")?.remove();
      this.place.append(element);
      this.place.scrollTop = 0;
    }
    if (this.live) {
      this.period.value = this._get("period", "10");
      return;
    }
    this.filter.show(this._get("where"));
    this._showTimes({ since: this.about.first, until: this.about.last });
    this.whole.hidden = !this._get("since") && !this._get("until");
  }

  /** The bounds of the link, else these; not while somebody changes them. */
  _showTimes(bounds) {
    for (const [name, input] of Object.entries(this.times)) {
      const value = local(this._get(name) || bounds[name]);
      if (input.value !== value && document.activeElement !== input) {
        input.value = value;
      }
    }
  }

  _table(kind) {
    const name = { key: "name", head: kind, title: "name", text: (row) => named(row, this.many), href: (row) => this._to(row) };
    const connections = { key: "connections", head: "connections", title: this.live ? "open now" : "with exchanges in the period", align: "number", text: (row) => count(row.connections) };
    const clients = { key: "clients", head: "clients", title: "that use it", align: "number", text: (row) => count(row.clients) };
    const figures = amounts(() => this.seconds);
    const columns = {
      client: [name, ...figures, connections, { key: "software", head: "software", title: "as the client names it", text: ({ software }) => software ?? "" }],
      broker: [name, ...figures, connections, { head: "at", text: (row) => [row.at, row.up === false ? "down" : ""].filter(Boolean).join(", ") }],
      topic: this.live ? [name, ...figures.filter(({ key }) => !key.endsWith("_bytes"))] : [name, ...figures, clients],
      software: [name, connections, clients],
    }[kind];
    return new FigureTable({ label: TABLES[kind], columns, of: rowName, sort: (key) => this._sort(key) });
  }

  /** Ask now, and again after a while. */
  async _ask() {
    clearTimeout(this.timer);
    this.turn += 1;
    const { turn } = this;
    const wanted = new URLSearchParams(this.asked);
    wanted.set("page", this.page);
    wanted.set("table", this._kind);
    wanted.set("sort", this._sorted().key);
    let next = this.live ? AGAIN_MS.live : null;
    try {
      const answer = await ask(`/api/traffic?${wanted}`);
      if (turn !== this.turn) {
        return;
      }
      this._draw(answer);
      this.element.dataset.turns = turn;
      next = AGAIN_MS[answer.state] ?? null;
    } catch (error) {
      if (turn !== this.turn) {
        return;
      }
      this._fail(error.message);
    }
    if (next && this.shown && !this.frozen && !document.hidden) {
      this.timer = setTimeout(() => this._ask(), next);
    }
  }

  _fail(reason) {
    if (this.filter && reason.startsWith(WRONG)) {
      this.filter.say(reason.slice(WRONG.length));
      return;
    }
    this.count.classList.add("problem");
    this.count.textContent = reason;
  }

  /** What is shown: the kind of the table, and the chosen node. */
  get _shows() {
    return `${this._kind} ${rowName(this._chosen())}`;
  }

  /** The last answer with the links of now: who clicks before the next one comes must not lose what was chosen. */
  _drawAgain() {
    if (this.drawn?.shows === this._shows) {
      this._draw(this.drawn.answer);
    }
  }

  _draw(answer) {
    this.drawn = { shows: this._shows, answer };
    this.seconds = answer.seconds;
    this.many = answer.many;
    const asked = this._chosen();
    const table = this.tables[this._kind];
    table.update(answer.rows, { sorted: this._sorted(), chosen: rowName(asked) });
    this.filter?.say("");
    this._say(answer);
    this.details.draw(asked, answer);
  }

  _say(answer) {
    const { rows, matching, counts, state, notes } = answer;
    for (const tab of this.tabs) {
      const kind = tab.dataset.table;
      tab.textContent = `${TABLES[kind]} ${count(counts[kind])}`;
    }
    this.count.classList.toggle("problem", Boolean(answer.problem));
    const words = [answer.problem, this._span(answer)];
    if (state === "reading") {
      words.push(`reading: ${count(answer.exchanges)} exchanges so far`);
    } else if (!this.live) {
      words.push(answer.exchanges === 1 ? "1 exchange" : `${count(answer.exchanges)} exchanges`);
    }
    if (rows.length < matching) {
      words.push(`the first ${count(rows.length)} of ${count(matching)} are shown: search for the others`);
    }
    this.count.textContent = words.filter(Boolean).join(" · ");
    const none = this._get("search") && counts[this._kind] ? `No name here has "${this._get("search")}" in it.` : EMPTY[this._kind][this.about.kind];
    this.empty.hidden = Boolean(rows.length) || (state === "reading" && !counts[this._kind]);
    this.empty.textContent = none;
    this.tables[this._kind].element.hidden = !rows.length;
    if (notes.join() !== this.noted) {
      this.noted = notes.join();
      this.notes.replaceChildren(...notes.map((text) => el("li", {}, text)));
    }
  }

  _span({ since, until, seconds }) {
    return this.live ? `over ${duration(seconds)}, to ${clock(until).slice(0, 8)}` : since ? `${clock(since)} to ${clock(until)}, ${duration(seconds)}` : "";
  }
}

/** Seconds since 1970 as a field for local times has them. */
function local(seconds) {
  if (!seconds || Number.isNaN(Number(seconds))) {
    return "";
  }
  const at = new Date(Number(seconds) * 1000);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 23);
}
