// Findings of klamm analyze: it is run by this server, and tells how far it is.

import { ask, el, quoted, tell, told } from "./page.js";
import { asLink, micros, moment, query } from "./period.js";

const LOOK_MS = 500;
const SEVERITIES = ["high", "medium", "low"];
const STATES = {
  never: () => "klamm analyze reads all of the capture with Spark and says what goes wrong between clients and brokers, with the setting to change. It takes a minute or more.",
  running: ({ step, done, of }) => (of ? `${step}: ${done} of ${of}` : step),
  done: ({ findings, more, began, ended }) =>
    `${findings ? `${findings.toLocaleString()} finding${findings === 1 ? "" : "s"}` : "nothing was found"}${more ? ` and ${more.toLocaleString()} more of the same kinds` : ""}, in ${Math.round(ended - began)} s`,
  failed: ({ problem }) => problem,
  cancelled: () => "cancelled",
};

export class Findings {
  constructor() {
    this.begin = el("button", { onclick: told(() => this._change("POST")) }, "look for problems");
    this.cancel = el("button", { onclick: told(() => this._change("DELETE")) }, "cancel");
    this.report = el("a", { class: "button", href: "/api/analysis/report", download: "klamm-report.html" }, "report with plots");
    this.progress = el("progress", { "aria-label": "progress of the analysis" });
    this.words = el("p", { class: "state", role: "status" });
    this.notes = el("ul", { class: "problems", hidden: true });
    this.list = el("div", {});
    this.element = el(
      "section",
      { class: "findings", "aria-label": "findings" },
      el("div", { class: "doings" }, this.begin, this.cancel, this.progress, this.report),
      this.words,
      this.notes,
      this.list,
    );
    this._draw({ phase: "never" });
  }

  open() {
    this.opened = true;
    this._look();
  }

  close() {
    this.opened = false;
    clearTimeout(this.timer);
  }

  async _change(method) {
    this._take(await ask("/api/analysis", { method, body: {} }));
  }

  async _look() {
    try {
      this._take(await ask("/api/analysis"));
    } catch (error) {
      this.words.textContent = error.message;
      this._again();
    }
  }

  _take(state) {
    this._draw(state);
    if (state.phase === "running") {
      this._again();
    } else if (state.phase !== "never" && state.ended !== this.ended) {
      this.ended = state.ended;
      told(() => this._fetch())();
    }
  }

  _again() {
    clearTimeout(this.timer);
    this.timer = this.opened ? setTimeout(() => this._look(), LOOK_MS) : null;
  }

  _draw(state) {
    const running = state.phase === "running";
    this.begin.hidden = running;
    this.begin.textContent = state.phase === "never" ? "look for problems" : "look again";
    this.cancel.hidden = this.progress.hidden = !running;
    if (state.of) {
      this.progress.max = state.of;
      this.progress.value = state.done;
    } else {
      this.progress.removeAttribute("value");
    }
    this.report.hidden = !state.report;
    this.words.textContent = STATES[state.phase](state);
    this.words.classList.toggle("problem", state.phase === "failed");
    this.notes.hidden = !state.notes?.length;
    this.notes.replaceChildren(...(state.notes ?? []).map((text) => el("li", {}, text)));
  }

  async _fetch() {
    const found = await ask("/api/findings");
    this.list.replaceChildren(...SEVERITIES.map((severity) => bySeverity(severity, found.filter((one) => one.severity === severity))).filter(Boolean));
  }
}

function bySeverity(severity, found) {
  if (!found.length) {
    return null;
  }
  const detectors = [...new Set(found.map(({ detector }) => detector))];
  return el("section", { class: "severity" }, el("h3", {}, el("span", { class: severity }, severity), ` ${found.length.toLocaleString()}`), detectors.map((name) => byDetector(found.filter(({ detector }) => detector === name))));
}

function byDetector(found) {
  const [{ title, detector, advice, settings }] = found;
  return el(
    "article",
    { "data-detector": detector },
    el("h4", {}, title, " ", el("code", {}, detector)),
    el("ul", {}, found.map(one)),
    settings.length ? el("p", { class: "change" }, "change ", settings.map((name, at) => [at ? ", " : "", el("code", {}, name)])) : null,
    el("p", { class: "advice" }, advice),
  );
}

function one({ clients, subject, what, count, first, last, where, since, until, evidence }) {
  const who = [...clients, subject].filter((name) => name !== null && name !== undefined).join(", ") || "(no client id)";
  const [from, to] = [micros(first), micros(last)];
  const times = `${count.toLocaleString()} time${count === 1 ? "" : "s"}, ${from === to ? `at ${moment(from)}` : `${moment(from)} to ${moment(to)}`}`;
  const [shown] = evidence;
  return el(
    "li",
    {},
    el("b", {}, who),
    el("p", {}, what),
    el("p", { class: "times" }, times),
    el(
      "div",
      { class: "doings" },
      el("a", { class: "button", href: link({ where, since, until }) }, "its exchanges"),
      evidence.map((each, at) => el("a", { class: "button", href: link(each) }, evidence.length > 1 ? `evidence ${at + 1}` : "evidence")),
      shown ? el("button", { onclick: told(() => copy(shown.show)), title: shown.show }, "copy the command") : null,
    ),
  );
}

/** To the list, with these exchanges only. */
function link({ where, since, until }) {
  const period = { since: micros(since), until: until === null ? null : micros(until) };
  return `#exchanges${query({ where: where ?? "", ...asLink(period) })}`;
}

async function copy(text) {
  await navigator.clipboard.writeText(text);
  tell(`copied: ${text}`);
}
