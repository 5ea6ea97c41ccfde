// Lanes of marks over time: a picture beside the names of the lanes, with keys and a text for every mark.

import { Anchor } from "./anchor.js";
import { AXIS, HEIGHT, lasting } from "./drawing.js";
import { Keys } from "./keys.js";
import { Marks, placeOf, rowsOf } from "./marks.js";
import { clock, el } from "./page.js";
import { Picture } from "./picture.js";
import { Pointing } from "./pointing.js";

const SPARE = 2; // rows of names above and below
const EDGE = 10; // pixels beside a view in which marks are still seen
const LEAST_S = 1e-4; // that a view shows
const FOLLOWED_S = 60; // that are shown of a running klamm at first
const MARGIN = 0.03; // of a view, beside all marks
const FRAME_MS = 100; // between two pictures that follow the clock
const ORDER_MS = 1000; // between two orders of the lanes

/** `kinds`: by kind {name, shape, tone, other?, routine?, alarm?}. `opened(lane, mark, byKey)` is told of what is
 * chosen, `moved()` of another view of time. `live`: time goes on. */
export class Timeline {
  constructor(kinds, { label, live, opened, moved }) {
    Object.assign(this, { kinds, live, opened, moved });
    this.marks = new Marks(kinds);
    this.hidden = new Set(); // kinds
    this.closed = new Set(); // groups
    this.rows = [];
    this.search = "";
    this.lane = null; // the chosen one
    this.mark = null; // of it
    this.to = Date.now() / 1000;
    this.from = this.to - FOLLOWED_S;
    this.follow = live ? "now" : "fit"; // or ""
    this.period = null; // of a capture: {from, to}
    this.unread = []; // parts of the time that were not read
    this.shownBeside = null; // the mark whose text stands beside the timeline
    this.pool = [];
    this.names = el("div", { class: "names" });
    this.option = el("div", { id: "mark-none", class: "told unseen", role: "option", "aria-selected": "true" });
    this.hint = el("div", { class: "told", "aria-hidden": "true", hidden: true });
    this.picture = new Picture(this);
    this.space = el("div", { class: "lane-space" }, this.names, el("div", { class: "drawn" }, this.picture.canvas));
    this.scroller = el("div", { class: "lanes", role: "listbox", tabindex: "0", "aria-label": label }, this.space);
    this.empty = el("p", { class: "nothing", role: "status" });
    this.element = el("div", { class: "timeline" }, this.scroller, this.option, this.hint, this.empty);
    this.scroller.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    this.anchor = new Anchor(this);
    this.pointing = new Pointing(this);
    this.keys = new Keys(this);
  }

  clear() {
    this.marks.clear();
    this.lane = this.mark = this.order = null;
    this.rows = [];
    this.draw();
  }

  add(items) {
    this.marks.add(items);
    const { last } = this.marks;
    if (items.length && last > this.now()) {
      this.setClock(last);
    }
    this.draw();
  }

  /** The clock of the marks is at `time`, in seconds since 1970. */
  setClock(time) {
    this.heard = { time, since: performance.now() };
  }

  /** Now, by the clock of the marks: that of this page may be another. */
  now() {
    const { time, since } = this.heard ?? { time: Date.now() / 1000, since: performance.now() };
    return time + (performance.now() - since) / 1000;
  }

  resume() {
    this.timer ??= setInterval(() => this.follow === "now" && this.draw(), FRAME_MS);
    this.picture.renew();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
  }

  /** Lanes whose names have this text. */
  find(text) {
    this.search = text;
    this.order = null;
    this.draw();
  }

  /** Show or hide a kind of marks. */
  toggle(kind) {
    if (!this.hidden.delete(kind)) {
      this.hidden.add(kind);
    }
    this.draw();
  }

  /** Show or hide the lanes of a group. */
  fold({ group }) {
    if (!this.closed.delete(group)) {
      this.closed.add(group);
    }
    this.order = null;
    this.draw();
  }

  view(from, to) {
    this.from = from;
    this.to = from + Math.max(LEAST_S, to - from);
    this.draw();
  }

  setFollow(follow) {
    this.follow = follow;
    this.moved();
    this.draw();
  }

  /** By a part of what is shown. */
  pan(part) {
    const by = (this.to - this.from) * part;
    this.follow = "";
    this.view(this.from + by, this.to + by);
    this.moved();
  }

  /** Around a time, which stays where it is; a view that follows keeps its end. */
  zoom(factor, around = this.middle()) {
    const stays = this.follow === "now" ? this.to : around;
    this.follow = this.follow === "now" ? "now" : "";
    this.view(stays - (stays - this.from) * factor, stays + (this.to - stays) * factor);
    this.moved();
  }

  /** Of the view, or the chosen mark if it is in sight. */
  middle() {
    const { mark, from, to } = this;
    return mark && mark.begin >= from && mark.begin <= to ? mark.begin : (from + to) / 2;
  }

  xOf(time) {
    return ((time - this.from) / (this.to - this.from)) * this.width;
  }

  timeAt(x) {
    return this.from + (x / this.width) * (this.to - this.from);
  }

  laneAt(y) {
    return y < AXIS ? undefined : this.rows[Math.floor((y - AXIS + this.scroller.scrollTop) / HEIGHT)];
  }

  lookOf(mark) {
    return this.kinds[mark.kind] ?? this.kinds.other;
  }

  /** The end of a mark. A band that is open goes on as long as its lane is heard of, anything else until now. */
  endOf(mark) {
    if (!mark.open) {
      return mark.end;
    }
    const heard = this.lookOf(mark).shape === "band";
    return Math.max(mark.end, heard ? mark.lane.last : this.live ? this.now() : this.bounds().to);
  }

  /** The marks of a lane in sight, with their ends and looks. */
  *inSight({ marks, longest }) {
    const edge = (this.to - this.from) * (EDGE / this.width);
    const first = marks.some(({ open }) => open) ? 0 : placeOf(marks, this.from - longest - edge);
    for (let at = first; at < marks.length && marks[at].begin <= this.to + edge; at += 1) {
      const mark = marks[at];
      const end = this.endOf(mark);
      if (end >= this.from - edge && !this.hidden.has(mark.kind)) {
        yield { mark, end, look: this.lookOf(mark) };
      }
    }
  }

  /** From the first to the last mark; of a capture that was read in part, all of its time. */
  bounds() {
    const { first, last } = this.marks;
    if (this.period && this.unread.length) {
      return this.period;
    }
    return first <= last ? { from: first, to: this.live ? this.now() : last } : { from: this.from, to: this.to };
  }

  /** Draw at the next frame, however often it is asked. */
  draw() {
    if (!this.waiting && this.element.isConnected) {
      this.waiting = requestAnimationFrame(() => {
        this.waiting = null;
        this._draw();
      });
    }
  }

  _draw() {
    this._range();
    this._order();
    this.anchor.stretch();
    this.left = this.names.offsetWidth;
    this.width = Math.max(1, this.scroller.clientWidth - this.left);
    this.height = Math.max(1, this.scroller.clientHeight);
    this.top = this.scroller.scrollTop;
    this._names();
    this.picture.draw();
    this._tell();
    this.empty.hidden = this.rows.length > 0;
  }

  _range() {
    if (this.follow === "now") {
      const to = this.now();
      this.from += to - this.to;
      this.to = to;
    } else if (this.follow === "fit") {
      const { from, to } = this.bounds();
      const margin = (to - from) * MARGIN || 1;
      this.from = from - margin;
      this.to = to + margin;
    }
  }

  /** Lanes keep their places for a while, whatever happens on them. */
  _order() {
    const { marks, order } = this;
    const at = performance.now();
    if (order && order.revision === marks.revision) {
      return;
    }
    if (order && this.rows.length && at - order.at < ORDER_MS) {
      this.later ??= setTimeout(() => this.draw(), ORDER_MS);
      return;
    }
    this.later = null;
    this.order = { revision: marks.revision, at };
    const held = this.anchor.held();
    this.rows = rowsOf(marks.lanes, { text: this.search, closed: this.closed, still: this.live });
    this.anchor.hold(held);
  }

  _names() {
    const above = Math.max(0, Math.floor(this.top / HEIGHT) - SPARE);
    const shown = Math.max(0, Math.min(this.rows.length - above, Math.ceil(this.height / HEIGHT) + 2 * SPARE));
    while (this.pool.length < shown) {
      const cells = [el("b"), el("small"), el("span", { class: "sums" })];
      const name = el("div", { class: "name" }, cells);
      name.cells = cells;
      this.pool.push(name);
      this.names.append(name);
    }
    while (this.pool.length > shown) {
      this.pool.pop().remove();
    }
    this.pool.forEach((name, index) => this._name(name, this.rows[above + index], above + index));
  }

  _name(element, lane, row) {
    const sums = lane.member ? lane : lane.sums;
    const { "client id": client = "", host, rack, cluster } = lane.about;
    const more = lane.member ? [lane.label.startsWith(client) || client === lane.of ? "" : client, host, rack ? `rack ${rack}` : ""] : [cluster];
    const problems = [sums.errors ? `${sums.errors} ✕` : "", sums.alarms ? `${sums.alarms} ▲` : ""];
    const label = lane.member ? lane.label : `${this.closed.has(lane.name) ? "▸" : "▾"} ${lane.label}`;
    [label, more.filter(Boolean).join(" · "), problems.filter(Boolean).join(" ")].forEach((text, index) => {
      if (element.cells[index].textContent !== text) {
        element.cells[index].textContent = text;
      }
    });
    const about = [...Object.entries(lane.about).map(([name, text]) => `${name}: ${text}`), `${sums.errors} errors, ${sums.alarms} alarms`];
    entitle(element, [lane.label, ...about]);
    entitle(element.cells[1], [more.filter(Boolean).join(" · "), ...about]); // it is cut first
    element.dataset.lane = lane.label;
    element.className = `name${lane.member ? "" : " group"}${lane === this.lane ? " chosen" : ""}${sums.errors ? " failed" : ""}`;
    element.style.transform = `translateY(${AXIS + row * HEIGHT}px)`;
  }

  choose(lane, mark) {
    this.lane = lane;
    this.mark = mark;
    this.hint.hidden = true;
    this.draw();
  }

  /** What is chosen comes into sight. */
  reveal() {
    const row = this.rows.indexOf(this.lane);
    const { scroller, mark } = this;
    if (row >= 0) {
      const y = row * HEIGHT;
      const sight = scroller.clientHeight - AXIS - HEIGHT;
      scroller.scrollTop = Math.min(Math.max(scroller.scrollTop, y - sight), y);
    }
    if (mark && (mark.begin < this.from || mark.begin > this.to)) {
      const half = (this.to - this.from) / 2;
      this.follow = "";
      this.view(mark.begin - half, mark.begin + half);
      this.moved();
    }
    this.draw();
  }

  /** The text of a mark under the pointer. */
  hintAt(mark) {
    this.hint.hidden = !mark || mark === this.mark;
    if (!this.hint.hidden) {
      this._words(this.hint, mark);
      this._beside(this.hint, mark);
    }
  }

  /** The chosen mark, or the chosen lane, as the option that screen readers read. */
  _tell() {
    const { lane, mark, option, scroller } = this;
    const at = mark ? lane.marks.indexOf(mark) : -1;
    option.id = `mark-${lane ? this.rows.indexOf(lane) : "none"}-${at}`;
    if (mark) {
      this._words(option, mark);
      this._beside(option, mark);
    } else {
      option.replaceChildren(lane ? `${lane.label}, ${lane.marks.length} marks` : "no mark is chosen: the arrow keys choose one");
    }
    option.classList.toggle("unseen", !mark || mark === this.shownBeside || !this.rows.includes(lane));
    option.setAttribute("aria-setsize", String(Math.max(1, lane?.marks.length ?? 0)));
    option.setAttribute("aria-posinset", String(Math.max(1, at + 1)));
    scroller.setAttribute("aria-owns", option.id);
    scroller.setAttribute("aria-activedescendant", option.id);
  }

  _words(place, mark) {
    const begin = mark.open ? `since ${clock(mark.begin)}` : clock(mark.begin);
    const took = !mark.open && mark.end - mark.begin >= 0.001 ? `, ${lasting(mark.end - mark.begin)}` : "";
    place.replaceChildren(
      el("b", {}, this.lookOf(mark).name),
      el("small", {}, `${begin}${took} · ${mark.lane.label}`),
      el("span", { class: mark.error ? "failed" : null }, mark.text),
    );
  }

  /** Below the lane of a mark, or above it where there is no room. */
  _beside(place, mark) {
    const y = AXIS + this.rows.indexOf(mark.lane) * HEIGHT - this.scroller.scrollTop;
    const x = this.left + Math.min(Math.max(0, this.xOf(mark.begin)), this.width);
    place.style.left = `${Math.max(4, Math.min(x, this.left + this.width - place.offsetWidth - 4))}px`;
    const [below, above] = [y + HEIGHT + 3, y - place.offsetHeight - 3];
    place.style.top = `${below + place.offsetHeight > this.height && above > 0 ? above : below}px`;
  }
}

/** What the pointer tells; the same again would take it away. */
function entitle(element, words) {
  const text = words.filter(Boolean).join("\n");
  if (element.title !== text) {
    element.title = text;
  }
}
