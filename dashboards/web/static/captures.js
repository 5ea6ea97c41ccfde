// The view of a capture: what it holds and when, its findings, and files made of it. Of a running klamm: capturing.js.

import { Capturing } from "./capturing.js";
import { Exports } from "./exports.js";
import { Findings } from "./findings.js";
import { Histogram } from "./histogram.js";
import { onOverview } from "./overview.js";
import { el, size } from "./page.js";
import { asLink, day, length, micros, moment, ofLink, query } from "./period.js";

const RECORDS = { blank: "blanked: no keys, values and headers of records", keep: "kept", hash: "hashed: equal ones stay equal" };
const plural = (count, word) => `${count.toLocaleString()} ${word}${count === 1 ? "" : "s"}`;

/** `list` is the view of exchanges, whose filter an export has. */
export const captures = (about, remember, list) => (about.kind === "live" ? new Capturing() : new Captures(about, remember, list));

class Captures {
  constructor(about, remember, list) {
    this.remember = remember;
    this.list = list;
    this.filter = {};
    this.facts = el("dl", { class: "facts" });
    this.problems = el("ul", { class: "problems", hidden: true });
    this.histogram = new Histogram({ changed: (period) => this._selected(period) });
    this.shown = el("a", { class: "button" });
    this.findings = new Findings();
    this.exports = new Exports({ wanted: () => this._wanted() });
    this.element = el(
      "div",
      { class: "page captures" },
      el("h2", {}, "Capture ", el("code", {}, about.name)),
      this.facts,
      this.problems,
      this.histogram.element,
      el("div", { class: "doings" }, this.shown),
      el("h2", {}, "Findings"),
      this.findings.element,
      el("h2", {}, "Export"),
      this.exports.element,
    );
    onOverview((overview) => this._tell(overview));
  }

  open(parameters) {
    this.histogram.open(ofLink(parameters));
    const list = this.list.wanted();
    this.filter = Object.fromEntries(["where", "hide"].map((name) => [name, parameters.get(name) ?? list[name]]));
    this._link();
    this.exports.tell();
    this.findings.open();
  }

  close() {
    this.findings.close();
  }

  _selected(period) {
    this.remember(asLink(period));
    this._link();
    this.exports.tell();
  }

  /** The filter of the link, or else of the list, and the time that is selected here. */
  _wanted() {
    return { ...this.filter, ...asLink(this.histogram.period) };
  }

  _link() {
    const period = this.histogram.period;
    this.shown.href = `#exchanges${query(asLink(period))}`;
    this.shown.textContent = period ? "show the exchanges of this time" : "show the exchanges";
  }

  _tell(overview) {
    const { problems = [], lost = {}, problem } = overview;
    if (overview.segments !== undefined) {
      const shown = Object.entries(facts(overview)).filter(([, text]) => text);
      this.facts.replaceChildren(...shown.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]).flat());
    }
    const missing = Object.entries(lost).map(([text, frames]) => [frames || !text ? `${plural(frames, "frame")} missing` : "", text].filter(Boolean).join(": "));
    const told = [problem, ...problems, ...missing].filter(Boolean);
    this.problems.hidden = !told.length;
    this.problems.replaceChildren(...told.map((text) => el("li", {}, text)));
  }
}

function facts(found) {
  const [since, until] = [micros(found.first), micros(found.last)];
  const days = day(since) === day(until) ? "" : `${day(until)} `;
  const { segments, growing, cut, counted } = found;
  const state = [growing ? `${growing.toLocaleString()} not sealed: it may grow` : "", cut ? `${cut.toLocaleString()} cut short: its klamm was killed` : ""];
  const of = [found.errors ? `${found.errors.toLocaleString()} with errors` : "", found.unanswered ? `${found.unanswered.toLocaleString()} without an answer` : ""];
  const soFar = counted ? "" : " so far";
  return {
    time: segments ? `${day(since)} ${moment(since)} to ${days}${moment(until)} (${length(until - since)})` : "",
    exchanges: [`${found.exchanges.toLocaleString()}${soFar}`, ...of].filter(Boolean).join(", "),
    frames: found.frames.toLocaleString(),
    connections: `${found.connections.toLocaleString()}${soFar}`,
    clusters: Object.entries(found.clusters).map(([name, id]) => (id ? `${name} (${id})` : name)).join(", "),
    files: [`${size(found.bytes)} in ${plural(segments, "segment")}`, ...state].filter(Boolean).join(", "),
    records: found.records.map((kept) => RECORDS[kept] ?? kept).join("; "),
  };
}
