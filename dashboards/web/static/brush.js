// The selection of a part of the time on a plot, by pointer and by keys. Times are microseconds, on whole steps.

import { same } from "./period.js";

const EDGE = 8; // pixels beside an edge of the selection that take hold of it
const SETTLED_MS = 250; // after the last key, until the selection counts

/** `steps()`: {first, step, count}; `moved(period)` is told of each move, `changed(period)` of what is selected. */
export class Brush {
  constructor(element, { steps, moved, changed }) {
    this.element = element;
    this.steps = steps;
    this.moved = moved;
    this.changed = changed;
    this.period = null;
    element.addEventListener("pointerdown", (event) => this._down(event));
    element.addEventListener("pointermove", (event) => this.dragging && this._drag(event));
    element.addEventListener("pointerup", () => this._up());
    element.addEventListener("pointercancel", () => this._cancel());
    element.addEventListener("keydown", (event) => this._key(event));
  }

  /** Select, without a word to `changed`. */
  set(period) {
    clearTimeout(this.timer);
    this.period = period;
    this.moved(period);
  }

  /** The selection with both ends; null without one. */
  get bounds() {
    const { first, step, count } = this.steps();
    const end = first + step * count;
    return this.period && { since: this.period.since ?? first, until: this.period.until ?? end };
  }

  /** The number of the step under the pointer. */
  place(event) {
    const { count } = this.steps();
    return Math.min(count - 1, Math.max(0, Math.floor(this._share(event) * count)));
  }

  _share(event) {
    const box = this.element.getBoundingClientRect();
    return (event.clientX - box.left) / box.width;
  }

  _down(event) {
    const { count } = this.steps();
    if (event.button || !count) {
      return;
    }
    this.element.setPointerCapture(event.pointerId);
    this.dragging = { from: this.place(event), before: this.period, ...this._held(event) };
    if (this.dragging.kind === "new") {
      this._drag(event);
    }
  }

  /** Which part of the selection a press takes hold of. */
  _held(event) {
    const { bounds } = this;
    if (!bounds) {
      return { kind: "new" };
    }
    const { first, step, count } = this.steps();
    const box = this.element.getBoundingClientRect();
    const at = (us) => box.left + (box.width * (us - first)) / (step * count);
    const near = (us) => Math.abs(event.clientX - at(us)) <= EDGE;
    if (near(bounds.until)) {
      return { kind: "until", bounds };
    }
    if (near(bounds.since)) {
      return { kind: "since", bounds };
    }
    return event.clientX > at(bounds.since) && event.clientX < at(bounds.until) ? { kind: "whole", bounds } : { kind: "new" };
  }

  _drag(event) {
    const { first, step } = this.steps();
    const { kind, from, bounds } = this.dragging;
    const to = this.place(event);
    const [low, high] = [Math.min(from, to), Math.max(from, to) + 1].map((place) => first + place * step);
    const period = {
      new: () => ({ since: low, until: high }),
      since: () => ({ since: Math.min(first + to * step, bounds.until - step), until: bounds.until }),
      until: () => ({ since: bounds.since, until: Math.max(first + (to + 1) * step, bounds.since + step) }),
      whole: () => this._shifted(bounds, (to - from) * step),
    }[kind]();
    this._move(period);
  }

  _up() {
    if (!this.dragging) {
      return;
    }
    const { before } = this.dragging;
    this.dragging = null;
    if (!same(before, this.period)) {
      this.changed(this.period);
    }
  }

  _cancel() {
    if (this.dragging) {
      this._move(this.dragging.before);
      this.dragging = null;
    }
  }

  /** The same length, as far as there is room. */
  _shifted({ since, until }, by) {
    const { first, step, count } = this.steps();
    const room = Math.max(first - since, Math.min(first + step * count - until, by));
    return { since: since + room, until: until + room };
  }

  /** Both ends moved outwards by so much, or inwards; within the plot, and a step apart. */
  _widened({ since, until }, before, after) {
    const { first, step, count } = this.steps();
    const [low, high] = [Math.max(first, since - before), Math.min(first + step * count, until + after)];
    return high - low < step ? { since, until } : { since: low, until: high };
  }

  _key(event) {
    const { first, step, count } = this.steps();
    if (!count || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const end = first + step * count;
    const bounds = this.bounds;
    const begin = { ArrowRight: { since: first, until: first + step }, ArrowLeft: { since: end - step, until: end } };
    const acts = {
      ArrowRight: () => (event.shiftKey ? this._widened(bounds, 0, step) : this._shifted(bounds, step)),
      ArrowLeft: () => (event.shiftKey ? this._widened(bounds, step, 0) : this._shifted(bounds, -step)),
      ArrowUp: () => this._widened(bounds, step, step),
      ArrowDown: () => this._widened(bounds, -step, -step),
      Home: () => this._shifted(bounds, first - bounds.since),
      End: () => this._shifted(bounds, end - bounds.until),
      Escape: () => null,
    };
    const period = bounds ? acts[event.key]?.() : begin[event.key];
    if (period === undefined || (event.key === "Escape" && !bounds)) {
      return;
    }
    event.preventDefault();
    this._move(period);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.changed(this.period), SETTLED_MS);
  }

  _move(period) {
    this.period = period;
    this.moved(period);
  }
}
