// Mouse, wheel and fingers on a timeline: choose, move, zoom.

import { AXIS, isWide } from "./drawing.js";

const NEAR = 7; // pixels between the pointer and a mark
const STILL = 4; // pixels that a press may move
const TWISTY = 24; // pixels of a group's name that fold it
const ZOOM = 1.0015; // for a pixel of the wheel

export class Pointing {
  constructor(timeline) {
    this.timeline = timeline;
    this.fingers = new Map();
    this.pressed = null;
    const { scroller } = timeline;
    scroller.addEventListener("wheel", (event) => this._wheel(event), { passive: false });
    scroller.addEventListener("pointerdown", (event) => this._down(event));
    scroller.addEventListener("pointermove", (event) => this._over(event));
    scroller.addEventListener("pointerleave", () => this._leave());
    scroller.addEventListener("pointerup", (event) => this._up(event));
    scroller.addEventListener("pointercancel", (event) => this._up(event));
  }

  /** With Ctrl, or on the axis, it zooms; with Shift, or sideways, it moves in time; else the lanes scroll. */
  _wheel(event) {
    const { timeline } = this;
    const { x, y } = this._place(event);
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.ctrlKey || event.metaKey || (y < AXIS && !sideways)) {
      event.preventDefault();
      timeline.zoom(ZOOM ** event.deltaY, timeline.timeAt(Math.max(0, x)));
    } else if (sideways) {
      event.preventDefault();
      timeline.pan((event.deltaX || event.deltaY) / timeline.width);
    }
  }

  /** Of an event, counted from the left upper corner of the picture. */
  _place(event) {
    const box = this.timeline.scroller.getBoundingClientRect();
    return { x: event.clientX - box.left - this.timeline.left, y: event.clientY - box.top };
  }

  _leave() {
    this.timeline.anchor.pointer = null;
    this.timeline.hintAt(null);
  }

  _down(event) {
    const place = this._place(event);
    this.timeline.anchor.pointer = place.y;
    if (event.button || place.x > this.timeline.width) {
      return;
    }
    this.fingers.set(event.pointerId, place);
    const { from, to } = this.timeline;
    this.pressed = { ...place, from, to, apart: this._apart(), moved: false };
  }

  /** The pixels between two fingers, and their middle. */
  _apart() {
    const [one, other] = [...this.fingers.values()];
    return other ? { width: Math.max(10, Math.abs(one.x - other.x)), middle: (one.x + other.x) / 2 } : null;
  }

  _over(event) {
    const place = this._place(event);
    const { pressed, timeline } = this;
    timeline.anchor.pointer = place.y;
    if (!pressed || !this.fingers.has(event.pointerId)) {
      timeline.hintAt(place.x < 0 ? null : this._near(timeline.laneAt(place.y), place.x));
      return;
    }
    this.fingers.set(event.pointerId, place);
    const apart = this._apart();
    if (!pressed.moved && !apart && Math.abs(place.x - pressed.x) < STILL) {
      return;
    }
    if (!pressed.moved) {
      pressed.moved = true;
      timeline.scroller.setPointerCapture(event.pointerId);
      timeline.hintAt(null);
    }
    this._drag(place, apart);
  }

  _drag(place, apart) {
    const { pressed, timeline } = this;
    const scale = (pressed.to - pressed.from) / timeline.width;
    timeline.follow = "";
    if (apart && pressed.apart) {
      const stays = pressed.from + pressed.apart.middle * scale;
      const factor = pressed.apart.width / apart.width;
      timeline.view(stays - (stays - pressed.from) * factor, stays + (pressed.to - stays) * factor);
    } else if (!apart) {
      const by = (pressed.x - place.x) * scale;
      timeline.view(pressed.from + by, pressed.to + by);
    }
  }

  _up(event) {
    const { pressed, timeline } = this;
    this.fingers.delete(event.pointerId);
    this.pressed = null;
    if (pressed?.moved) {
      timeline.moved();
    } else if (pressed && event.type === "pointerup") {
      this._press(this._place(event));
    }
  }

  _press({ x, y }) {
    const { timeline } = this;
    const lane = timeline.laneAt(y);
    if (lane && !lane.member && x < TWISTY - timeline.left) {
      timeline.fold(lane);
    } else if (lane) {
      timeline.choose(lane, x < 0 ? null : this._near(lane, x));
      timeline.opened(timeline.lane, timeline.mark);
    }
  }

  /** The mark at a place: points before what lasts, and of points the nearest. */
  _near(lane, x) {
    const { timeline } = this;
    let best = null;
    for (const { mark, end, look } of lane ? timeline.inSight(lane) : []) {
      const left = timeline.xOf(mark.begin);
      const right = isWide(look.shape) ? timeline.xOf(end) : left;
      const away = Math.max(left - x, x - right, 0);
      const behind = { band: 2 * NEAR, bar: NEAR / 2 }[look.shape] ?? 0;
      const worse = away + behind - timeline.marks.rank(mark) / 10;
      if (away <= NEAR && (!best || worse <= best.worse)) {
        best = { mark, worse };
      }
    }
    return best?.mark ?? null;
  }
}
