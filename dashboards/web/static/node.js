// The chosen client, broker or topic: its graph, and the same figures as tables.

import { bytesPerSecond, count, ms, percent, perSecond } from "./amounts.js";
import { FigureTable } from "./figure-table.js";
import { Graph } from "./graph.js";
import { el } from "./page.js";

export const FAILED = "error != NONE";
const SIDES = { client: "left", topic: "left", broker: "right" }; // of the graph
const BYTES = { client: "bytes", broker: "bytes", topic: "bytes of records" };

const ABOUT = { client: "clients", topic: "topics", broker: "brokers" }; // of a finding

/** The link to exchanges; `bounds`: {since, until} of a capture. */
export const exchangesOf = (where, bounds = {}) => (where ? `#exchanges?${new URLSearchParams({ where, ...bounds })}` : "");

/** A name as people read it. */
export function named(row, many) {
  const name = row.name || (row.kind === "software" ? "(not named)" : "(no client id)");
  return many && row.cluster ? `${row.cluster}/${name}` : name;
}

/** The same with the kind of the node, where the name does not tell it. */
const titled = (row, many) => (row.kind === "broker" && /\D/.test(row.name) ? named(row, many) : `${row.kind} ${named(row, many)}`);

/** `href(row)` leads to a node, `close()` leaves this one; `bounds()`: {since, until} where a part is looked at. */
export class Details {
  constructor({ href, close, bounds }) {
    this.href = href;
    this.exchangesOf = (where) => exchangesOf(where, bounds());
    this.seconds = 1;
    this.many = false;
    this.title = el("h2", {});
    this.missing = el("p", { class: "note", hidden: true });
    this.facts = el("dl", { class: "facts" });
    this.exchanges = el("a", { class: "button" }, "its exchanges");
    this.failures = el("a", { class: "button" }, "only its errors");
    this.notes = el("ul", { class: "notes" });
    this.findings = section("Findings", el("ul", { class: "findings" }));
    this.graph = new Graph({ href: (row) => href(row), named: (row) => (row.kind === "broker" ? titled(row, this.many) : named(row, this.many)), figures: (row) => this._figures(row) });
    this.edges = section("Talks to", new FigureTable({ label: "talks to", columns: this._edgeColumns(), of: rowName }));
    this.errors = section("Errors", new FigureTable({ label: "errors", columns: this._errorColumns(), of: ({ error, api, origin }) => `${error} ${api} ${origin}` }));
    this.apis = section("APIs", new FigureTable({ label: "APIs", columns: this._apiColumns(), of: ({ api, version }) => `${api} ${version}` }));
    this.links = section("Connections", new FigureTable({ label: "connections", columns: this._linkColumns(), of: ({ number, cluster, client }) => `${cluster} ${number} ${client}` }));
    this.content = el(
      "div",
      {},
      this.facts,
      el("div", { class: "doings" }, this.exchanges, this.failures),
      this.notes,
      this.findings.element,
      this.graph.element,
      [this.edges, this.errors, this.apis, this.links].map(({ element }) => element),
    );
    this.element = el(
      "section",
      { class: "chosen-node", "aria-label": "chosen", hidden: true },
      el("div", { class: "bar" }, this.title, el("button", { class: "close", onclick: close, "aria-label": "close" }, "×")),
      this.missing,
      this.content,
    );
  }

  /** `asked`: {kind, cluster, name} of the link; `answer` as of /api/traffic. */
  draw(asked, answer) {
    const { chosen } = answer;
    this.many = answer.many;
    this.seconds = answer.seconds;
    this.element.hidden = !asked.kind;
    if (!asked.kind) {
      return;
    }
    write(this.title, titled(asked, this.many));
    this.content.hidden = !chosen;
    this.missing.hidden = Boolean(chosen);
    write(this.missing, answer.state === "reading" ? "Not found so far." : "It is not in this period: it may have gone, or the filter leaves it out.");
    if (chosen) {
      this._draw(chosen);
    }
  }

  /** Of these findings, as /api/findings gives them, those about this node; nothing is shown without any. */
  tell({ kind, name }, findings) {
    const [list] = this.findings.parts;
    const mine = findings.filter((one) => one[ABOUT[kind]]?.includes(name));
    list.replaceChildren(...mine.map(finding));
    this.findings.element.hidden = !mine.length;
  }

  _draw(chosen) {
    const { row, edges } = chosen;
    facts(this.facts, this._facts(chosen));
    this.facts.classList.toggle("failing", Boolean(row.errors));
    this.element.dataset.kind = row.kind;
    this.element.dataset.bytes = row.request_bytes === undefined ? "unknown" : "known";
    href(this.exchanges, this.exchangesOf(row.where));
    href(this.failures, row.where ? this.exchangesOf(`${row.where} and ${FAILED}`) : "");
    const notes = chosen.notes.map((text) => el("li", {}, text));
    if (chosen.notes.join() !== this.noted) {
      this.noted = chosen.notes.join();
      this.notes.replaceChildren(...notes);
    }
    const of = (side) => edges.filter(({ kind }) => SIDES[kind] === side);
    this.graph.element.hidden = !edges.length;
    if (edges.length) {
      this.graph.draw(row, of("left"), of("right"), chosen.more_edges);
    }
    const more = chosen.more_edges ? `${count(chosen.more_edges)} more are not shown: search in the table for one.` : "";
    this.edges.draw(edges, more);
    this.errors.draw(chosen.errors);
    this.apis.draw(chosen.apis);
    this.links.draw(chosen.links, chosen.more_links ? `${count(chosen.more_links)} more are not shown.` : "");
  }

  _facts({ row, groups }) {
    const rate = (amount) => (amount === undefined ? "" : bytesPerSecond(amount, this.seconds) + "/s");
    return {
      requests: row.requests === undefined ? "" : `${count(row.requests)} in ${duration(this.seconds)}, ${perSecond(row.requests, this.seconds)} a second`,
      [`${BYTES[row.kind]} in`]: rate(row.request_bytes),
      [`${BYTES[row.kind]} out`]: rate(row.response_bytes),
      errors: row.errors ? `${count(row.errors)}, ${percent(row.share)} of requests` : row.errors === 0 ? "none" : "",
      latency: row.p50 ? `p50 ${ms(row.p50)} ms, p99 ${ms(row.p99)} ms` : "",
      connections: row.kind === "topic" ? "" : count(row.connections),
      clients: row.clients === undefined ? "" : count(row.clients),
      software: row.software,
      at: row.at,
      state: row.up === undefined || row.up === null ? "" : row.up ? "up" : "down",
      groups: (groups ?? []).join(", "),
    };
  }

  _figures(row) {
    if (!row.requests && !row.errors) {
      return ["no requests", row.connections ? `${count(row.connections)} open` : ""];
    }
    const parts = [`${perSecond(row.requests, this.seconds)}/s`, row.errors ? `${percent(row.share)} errors` : ""];
    const bytes = (row.request_bytes ?? 0) + (row.response_bytes ?? 0);
    const known = row.request_bytes !== undefined || row.response_bytes !== undefined;
    const more = [known ? `${bytesPerSecond(bytes, this.seconds)}/s` : "", row.p99 ? `p99 ${ms(row.p99)} ms` : ""];
    return [parts, more].map((words) => words.filter(Boolean).join(" · "));
  }

  _amounts(...without) {
    return amounts(() => this.seconds).filter(({ key }) => !without.includes(key));
  }

  _edgeColumns() {
    return [
      { head: "name", text: (row) => titled(row, this.many), href: (row) => this.href(row) },
      ...this._amounts("errors", "p50"),
      { head: "connections", align: "number", text: ({ connections }) => count(connections) },
      { head: "exchanges", text: () => "show", href: ({ where }) => this.exchangesOf(where) },
    ];
  }

  _errorColumns() {
    return [
      { head: "error", text: ({ error }) => error, href: ({ where }) => this.exchangesOf(where) },
      { head: "API", text: ({ api }) => api },
      { head: "made by", text: ({ origin }) => origin },
      { head: "count", align: "number", text: (one) => count(one.count) },
      { head: "a second", align: "number", text: (one) => perSecond(one.count, this.seconds) },
    ];
  }

  _apiColumns() {
    return [
      { head: "API", text: ({ api }) => api, href: ({ where }) => this.exchangesOf(where) },
      { head: "version", align: "number", text: ({ version }) => (version === null ? "–" : String(version)) },
      ...this._amounts("share"),
    ];
  }

  _linkColumns() {
    return [
      { head: "id", text: ({ number }) => String(number), href: ({ where }) => this.exchangesOf(where) },
      { head: "from", text: ({ client }) => client },
      { head: "client", text: ({ client_id }) => client_id || "(no client id)" },
      { head: "broker", text: ({ broker }) => broker },
    ];
  }
}

/** The columns of figures that all tables share; `seconds()` is the length of the period. */
export function amounts(seconds) {
  return [
    { key: "requests", head: "requests/s", title: "requests a second", align: "number", text: ({ requests }) => perSecond(requests, seconds()) },
    { key: "request_bytes", head: "in/s", title: "bytes of requests a second; of topics, of records that are produced", align: "number", text: (row) => bytesPerSecond(row.request_bytes, seconds()) },
    { key: "response_bytes", head: "out/s", title: "bytes of answers a second; of topics, of records that are fetched", align: "number", text: (row) => bytesPerSecond(row.response_bytes, seconds()) },
    { key: "errors", head: "errors/s", title: "Kafka errors in answers a second", align: "number", text: ({ errors }) => perSecond(errors, seconds()) },
    { key: "share", head: "errors %", title: "errors for each request; an answer may have several", align: "number", text: ({ share }) => percent(share) },
    { key: "p50", head: "p50 ms", title: "half of the answers took less; without Fetch and others that wait for news", align: "number", text: ({ p50 }) => ms(p50) },
    { key: "p99", head: "p99 ms", title: "99% of the answers took less; without Fetch and others that wait for news", align: "number", text: ({ p99 }) => ms(p99) },
  ];
}

/** The name of a node in a table. */
export const rowName = ({ kind, cluster, name }) => `${kind} ${cluster} ${name}`;

export function duration(seconds) {
  return seconds < 100 ? `${seconds.toFixed(1)} s` : seconds < 6000 ? `${(seconds / 60).toFixed(1)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function section(title, ...parts) {
  const more = el("p", { class: "note", hidden: true });
  const [table] = parts;
  const elements = parts.map((part) => part.element ?? part);
  const element = el("section", { hidden: true }, el("h3", {}, title), el("div", { class: "across" }, elements), more);
  const draw = (rows, left = "") => {
    element.hidden = !rows.length;
    table.update(rows);
    write(more, left);
    more.hidden = !left;
  };
  return { element, parts, draw };
}

function finding({ severity, title, what, where, since, until }) {
  const shown = exchangesOf(where, { since, until });
  return el("li", {}, el("b", { class: severity }, severity), ` ${title}: ${what} `, shown ? el("a", { href: shown }, "exchanges") : null);
}

function write(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

function href(link, to) {
  link.hidden = !to;
  if (to && link.getAttribute("href") !== to) {
    link.setAttribute("href", to);
  }
}

/** Terms and their texts, those without a text left out; what stays the same is left alone. */
function facts(list, texts) {
  const shown = Object.entries(texts).filter(([, text]) => text);
  const names = shown.map(([name]) => name).join();
  if (list.dataset.names !== names) {
    list.dataset.names = names;
    list.replaceChildren(...shown.flatMap(([name]) => [el("dt", {}, name), el("dd", { "data-fact": name })]));
  }
  shown.forEach(([, text], index) => write(list.children[2 * index + 1], text));
}
