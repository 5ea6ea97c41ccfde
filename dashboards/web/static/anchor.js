// Keeps the lane that somebody looks at where it is on the screen, while lanes above it come and go.

import { AXIS, HEIGHT } from "./drawing.js";

export class Anchor {
  constructor(timeline) {
    this.timeline = timeline;
    this.pointer = null; // pixels from the upper edge to the pointer, null where it is elsewhere
    this.room = 0; // pixels that the lanes take at least: below them it may be empty
    timeline.scroller.addEventListener("scroll", () => (this.room = Math.min(this.room, this._sight().end)));
  }

  /** The lane, and its place in the picture in pixels; null where nobody looks at one. */
  held() {
    const { rows, scroller } = this.timeline;
    const lane = this._pointed() ?? this._chosen() ?? (scroller.scrollTop ? rows[Math.ceil(scroller.scrollTop / HEIGHT)] : null);
    return lane ? { lane, y: this._y(lane) } : null;
  }

  /** The lanes have their places; the one that was held has the same as before, if it is still there. */
  hold(held) {
    const { rows, scroller } = this.timeline;
    const there = held && rows.includes(held.lane);
    const top = there ? Math.max(0, rows.indexOf(held.lane) * HEIGHT - held.y) : scroller.scrollTop;
    this.room = there && top ? top + scroller.clientHeight : 0;
    this.stretch();
    if (scroller.scrollTop !== top) {
      scroller.scrollTop = top;
    }
  }

  /** Room for all lanes. */
  stretch() {
    const { rows, space } = this.timeline;
    space.style.height = `${Math.max(AXIS + rows.length * HEIGHT, this.room)}px`;
  }

  _pointed() {
    return this.pointer === null ? null : this.timeline.laneAt(this.pointer);
  }

  /** If it is in sight. */
  _chosen() {
    const { lane, rows } = this.timeline;
    const y = rows.includes(lane) ? this._y(lane) : -1;
    const { start, end } = this._sight();
    return y >= 0 && y < end - start - AXIS ? lane : null;
  }

  _y(lane) {
    return this.timeline.rows.indexOf(lane) * HEIGHT - this.timeline.scroller.scrollTop;
  }

  _sight() {
    const { scrollTop, clientHeight } = this.timeline.scroller;
    return { start: scrollTop, end: scrollTop + clientHeight };
  }
}
