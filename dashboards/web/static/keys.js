// Keys of a timeline: from mark to mark, from lane to lane, through time, and to what went wrong.

import { placeOf } from "./marks.js";

const PAGE = 10; // lanes
const PART = 0.1; // of a view

export class Keys {
  constructor(timeline) {
    this.timeline = timeline;
    timeline.scroller.addEventListener("keydown", (event) => this._key(event));
  }

  _key(event) {
    const { timeline } = this;
    if (event.target !== timeline.scroller || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const { lane } = timeline;
    const keys = {
      ArrowRight: () => (event.shiftKey ? timeline.pan(PART) : this._step(1)),
      ArrowLeft: () => (event.shiftKey ? timeline.pan(-PART) : this._step(-1)),
      ArrowDown: () => this._row(1),
      ArrowUp: () => this._row(-1),
      PageDown: () => this._row(PAGE),
      PageUp: () => this._row(-PAGE),
      Home: () => this._step(-Infinity),
      End: () => this._step(Infinity),
      Enter: () => lane && timeline.opened(lane, timeline.mark, true),
      " ": () => lane && timeline.fold(lane),
      "+": () => timeline.zoom(0.5),
      "-": () => timeline.zoom(2),
      0: () => timeline.setFollow("fit"),
      f: () => timeline.live && timeline.setFollow("now"),
      n: () => this.problem(1),
      p: () => this.problem(-1),
      Escape: () => timeline.choose(null, null),
    };
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  }

  _shown(lane) {
    return lane.marks.filter(({ kind }) => !this.timeline.hidden.has(kind));
  }

  /** To the next mark of the lane, or to its end. */
  _step(by) {
    const { timeline } = this;
    const lane = timeline.lane ?? timeline.rows[0];
    if (!lane) {
      return;
    }
    const marks = this._shown(lane);
    const outside = by > 0 ? placeOf(marks, timeline.from) - 1 : placeOf(marks, timeline.to);
    const at = timeline.mark ? marks.indexOf(timeline.mark) : outside;
    this._go(lane, marks[Math.min(marks.length - 1, Math.max(0, at + by))]);
  }

  /** To another lane, and its mark nearest in time. */
  _row(by) {
    const { timeline } = this;
    const { rows } = timeline;
    const at = timeline.lane ? rows.indexOf(timeline.lane) : by > 0 ? -1 : rows.length;
    const lane = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
    if (!lane) {
      return;
    }
    const marks = this._shown(lane);
    const time = timeline.mark?.begin ?? timeline.middle();
    const after = placeOf(marks, time);
    const [before, next] = [marks[after - 1], marks[after]];
    this._go(lane, !before || (next && next.begin - time < time - before.begin) ? next : before);
  }

  /** To the next error or alarm in time, on any lane that is listed. */
  problem(by) {
    const { timeline } = this;
    const found = timeline.rows.flatMap((lane) => this._shown(lane).filter((mark) => timeline.marks.rank(mark)));
    found.sort((one, other) => one.begin - other.begin);
    const { mark } = timeline;
    const at = found.indexOf(mark);
    const after = found.findIndex(({ begin }) => begin >= (mark?.begin ?? -Infinity));
    const before = found.findLastIndex(({ begin }) => begin <= (mark?.begin ?? Infinity));
    const next = found[at >= 0 ? at + by : by > 0 ? after : before];
    if (next) {
      this._go(next.lane, next);
    }
  }

  _go(lane, mark) {
    this.timeline.choose(lane, mark ?? null);
    this.timeline.reveal();
  }
}
