// A view with a timeline: its filter, its legend, and what is chosen beside it.

import { details } from "./exchange.js";
import { Filter } from "./filter.js";
import { Legend } from "./legend.js";
import { MOST } from "./marks.js";
import { clock, counted, el, stream } from "./page.js";
import { Timeline } from "./timeline.js";
import { inWords, partsOf } from "./unread.js";

const SETTLED_MS = 300; // after a move, until the address has it
const OWN = ["where", "lane", "kind", "exchange", "from", "to", "since", "until"]; // parameters of a link

/** `view`: {name, kinds, nothing, ofLane, ofGroup}. `head` shows the state of the source; `remember` keeps
 * parameters in the link; `list`: the view of exchanges. */
export class Lanes {
  constructor(view, about, head, remember, list) {
    Object.assign(this, { view, about, head, remember, list });
    this.live = about.kind === "live";
    this.filter = new Filter((text) => this._keep({ where: text }, true));
    this.timeline = new Timeline(view.kinds, {
      label: `${view.name}: marks by time`,
      live: this.live,
      opened: (lane, mark, byKey) => this._opened(lane, mark, byKey),
      moved: () => this._moved(),
    });
    this.search = el("input", { type: "search", "aria-label": "find lanes", placeholder: "find lanes", oninput: () => this._find() });
    this.count = el("p", { class: "count", role: "status", "aria-live": "off" });
    this.detail = el("section", { class: "detail", "aria-label": "chosen lane", hidden: true });
    this.legend = new Legend(this.timeline, this.live ? "not all exchanges are here" : "not read");
    const bar = el("div", { class: "bar" }, this.filter.element, this.search, this._buttons(), this.count);
    const split = el("div", { class: "split" }, this.timeline.element, this.detail);
    this.element = el("div", { class: "exchanges" }, bar, this.legend.element, split);
    this.kept = {};
  }

  _buttons() {
    const { timeline } = this;
    const button = (name, act, more = {}) => el("button", { onclick: act, ...more }, name);
    const there = (act) => () => {
      act();
      timeline.scroller.focus();
    };
    this.following = button("follow", () => timeline.setFollow(timeline.follow === "now" ? "" : "now"), { "aria-pressed": "true", title: "f" });
    this.part = button("read this part", () => this._keep({ since: timeline.from.toFixed(6), until: timeline.to.toFixed(6), from: "", to: "" }, true));
    this.whole = button("read all", () => this._keep({ since: "", until: "", from: "", to: "" }, true));
    return [
      this.live ? this.following : [this.part, this.whole],
      button("all", () => timeline.setFollow("fit"), { title: "show all of the time: 0" }),
      button("−", () => timeline.zoom(2), { "aria-label": "zoom out", title: "-" }),
      button("+", () => timeline.zoom(0.5), { "aria-label": "zoom in", title: "+" }),
      button("‹", there(() => timeline.keys.problem(-1)), { "aria-label": "previous problem", title: "previous problem: p" }),
      button("problem ›", there(() => timeline.keys.problem(1)), { "aria-label": "next problem", title: "next problem: n" }),
    ];
  }

  open(parameters) {
    const given = OWN.some((name) => parameters.has(name));
    const wanted = given || !this.running ? Object.fromEntries(OWN.map((name) => [name, parameters.get(name) ?? ""])) : this.kept;
    const again = !this.running || ["where", "since", "until"].some((name) => wanted[name] !== (this.kept[name] ?? ""));
    this.kept = { ...wanted };
    this.filter.show(wanted.where);
    this.timeline.resume();
    this.legend.draw();
    if (wanted.from && wanted.to) {
      this.timeline.follow = "";
      this.timeline.view(Number(wanted.from), Number(wanted.to));
    }
    this.wantedLane = wanted.lane;
    if (again) {
      this.restart();
    }
    this._keep({}, false);
    if (wanted.exchange && wanted.exchange !== this.shown) {
      this._show(wanted.exchange);
    }
    this._say();
  }

  close() {
    this.timeline.pause();
  }

  _find() {
    this.timeline.find(this.search.value);
    this._say();
  }

  /** Keeps these parameters, in the address too. */
  _keep(changes, again) {
    Object.assign(this.kept, changes);
    if (this.element.isConnected) {
      this.remember(this.kept);
    }
    if (again) {
      this.restart();
    }
  }

  _moved() {
    this._say();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      const { follow, from, to } = this.timeline;
      this._keep(follow ? { from: "", to: "" } : { from: from.toFixed(6), to: to.toFixed(6) }, false);
    }, SETTLED_MS);
  }

  restart() {
    const { timeline, about, kept } = this;
    this.running?.abort();
    this.running = new AbortController();
    this.lost = { dropped: 0, unjudged: 0 };
    this.more = this.whole.hidden = this.begun = false;
    timeline.clear();
    timeline.unread = [];
    if (!this.live) {
      const bounds = { from: about.first, to: about.last };
      const read = { from: Number(kept.since || about.first), to: Number(kept.until || about.last) };
      timeline.period = bounds;
      timeline.unread = [{ from: bounds.from, to: read.from }, { from: read.to, to: bounds.to }].filter(({ from, to }) => to > from);
      this.whole.hidden = !kept.since;
      if (!kept.from) {
        timeline.follow = kept.since ? "" : "fit";
        timeline.view(read.from, read.to);
      }
    }
    this._read(this.running.signal);
    this._say();
  }

  _path() {
    const wanted = Object.entries({ where: this.filter.text, since: this.kept.since, until: this.kept.until, kept: this.live && "true" }).filter(([, text]) => text);
    return `/api/marks/${this.view.name}?${new URLSearchParams(wanted)}`;
  }

  /** Read until another filter is set. */
  _read(signal) {
    return stream(() => this._path(), signal, {
      take: (batch) => this._take(batch),
      refused: (reason) => this.filter.say(reason),
      away: (problem) => this.head({ problem }),
      again: () => this.timeline.clear(), // the server remembers nothing of before
      once: !this.live,
    });
  }

  _take(batch) {
    if (batch.state || batch.problem) {
      this.head(batch);
    }
    for (const name of ["dropped", "unjudged"]) {
      this.lost[name] += batch[name] ?? 0;
    }
    if (batch.now) {
      this.timeline.setClock(batch.now);
    }
    if (batch.missing) {
      this.timeline.unread = partsOf(batch.missing);
    }
    this.begun ||= Boolean(batch.missing || batch.marks?.length || batch.whole || batch.more);
    const items = batch.marks ?? [];
    this.timeline.add(items);
    if (batch.more) {
      this.more = true;
      const { last } = this.timeline.marks;
      this.timeline.unread.push({ from: last, to: Number(this.kept.until || this.about.last) });
    }
    this._choose(batch.whole || batch.more);
    this._say();
  }

  /** The lane and the mark of the link, once they are there, or all is read. */
  _choose(all) {
    const { wantedLane, kept, timeline } = this;
    const lane = wantedLane && timeline.marks.lanes.get(wantedLane);
    const mark = lane?.marks?.find(({ key, kind }) => key === kept.exchange && kind === kept.kind) ?? null;
    if (lane && lane.marks.length && (mark || !kept.kind || all)) {
      this.wantedLane = "";
      timeline.choose(lane, mark);
      requestAnimationFrame(() => timeline.reveal());
      this._opened(lane, mark, false);
    }
  }

  _say() {
    const { marks, follow } = this.timeline;
    const words = [counted(marks.count, "mark")];
    if (marks.forgotten) {
      words.push(`the newest ${MOST.toLocaleString()} are kept: ${marks.forgotten.toLocaleString()} older ones are left out`);
    }
    if (this.more) {
      words.push("not all is read: choose a time, then “read this part”, or filter");
    }
    if (this.live && this.timeline.unread.length) {
      words.push(`not all exchanges are here ${inWords(this.timeline.unread)}`);
    }
    if (this.lost?.dropped) {
      words.push(`${counted(this.lost.dropped, "exchange")} left out: they came too fast`);
    }
    if (this.lost?.unjudged) {
      words.push(`${counted(this.lost.unjudged, "frame")} left out: the filter takes too much work on them`);
    }
    this.count.textContent = words.join(" · ");
    this.following.setAttribute("aria-pressed", String(follow === "now"));
    this.timeline.empty.textContent = this.search.value ? "no lane has this text" : this.begun ? this.view.nothing : "The exchanges that are there are being read.";
  }

  // What is chosen.

  _opened(lane, mark, byKey) {
    this._keep({ lane: lane.name, kind: mark?.kind ?? "", exchange: mark?.key ?? "" }, false);
    this._show(mark?.key ?? "", lane, mark, byKey);
  }

  async _show(key, lane = null, mark = null, byKey = false) {
    this.shown = key;
    this.detail.hidden = false;
    const close = () => this._shut();
    const go = (where) => {
      location.hash = listOf(where);
    };
    const { list } = this;
    const trying = Object.create(list.trying);
    trying.of = async (rule) => {
      location.hash = list.link();
      await list.trying.of(rule);
    };
    const exchange = key
      ? await details(key, {
          narrow: go,
          follow: go,
          close,
          neighbours: (of, exchange) => list.rows.neighbours(of, exchange),
          watch: () => {}, // the list of the other view goes on unseen
          open: (other) => this._show(other, lane, null),
          trying,
          comparing: list.comparing,
        })
      : null;
    if (this.shown === key) {
      this.timeline.shownBeside = mark;
      const top = lane ? this._card(lane, mark, key ? null : close) : null;
      this.detail.replaceChildren(...[top, exchange].filter(Boolean));
      if (byKey) {
        this.detail.tabIndex = -1;
        this.detail.focus();
      }
      this.timeline.draw();
    }
  }

  _shut() {
    this.shown = "";
    this.timeline.shownBeside = null;
    this.detail.hidden = true;
    this._keep({ lane: "", kind: "", exchange: "" }, false);
    this.timeline.scroller.focus();
    this.timeline.draw();
  }

  /** The lane and the mark, and the ways to their exchanges. */
  _card(lane, mark, close) {
    const head = this.timeline.marks.lanes.get(lane.group);
    const link = (name, where) => (where ? el("a", { class: "button", href: `#${listOf(where)}` }, name) : null);
    const facts = Object.entries(lane.about).map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]);
    const look = mark && (this.view.kinds[mark.kind] ?? this.view.kinds.other);
    return el(
      "div",
      { class: "card" },
      el("div", { class: "bar" }, el("h2", {}, lane.label), close ? el("button", { class: "close", onclick: close, "aria-label": "close" }, "×") : null),
      mark ? el("p", { class: mark.error ? "told-text failed" : "told-text" }, el("b", {}, `${look.name}, ${clock(mark.begin)}`), " ", mark.text) : null,
      el("dl", { class: "facts" }, facts),
      el("div", { class: "doings" }, lane.member ? link(this.view.ofLane, lane.where) : null, link(this.view.ofGroup, head?.where)),
    );
  }
}

/** The link to the exchanges for which `where` holds. */
const listOf = (where) => `exchanges?where=${encodeURIComponent(where)}`;
