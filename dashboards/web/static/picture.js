// The picture of a timeline: the lanes in sight with their marks, and the axis of time.

import { AXIS, HEIGHT, glyph, isWide, palette, sized, times, unread } from "./drawing.js";
import { el } from "./page.js";

const LEAST = 2; // pixels of a part that was not read
const BAND_TEXT = 70; // pixels of a band that has room for its text
const BEYOND = 20; // pixels out of sight that are drawn

export class Picture {
  constructor(timeline) {
    this.timeline = timeline;
    this.canvas = el("canvas", { "aria-hidden": "true" });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.renew());
  }

  /** With the colours of now. */
  renew() {
    this.colours = null;
    this.timeline.draw();
  }

  draw() {
    const { kinds, element, rows, width, height, top } = this.timeline;
    const tones = Object.values(kinds).flatMap(({ tone, other }) => [tone, other].filter(Boolean));
    this.colours ??= palette(element, new Set(tones));
    this.font = getComputedStyle(element).fontFamily;
    const pen = sized(this.canvas, width, height);
    const first = Math.max(0, Math.floor(top / HEIGHT));
    const last = Math.min(rows.length, Math.ceil((top + height) / HEIGHT));
    const marked = times(this.timeline.from, this.timeline.to, width);
    this._ground(pen, marked);
    for (let row = first; row < last; row += 1) {
      this._row(pen, rows[row], AXIS + row * HEIGHT - top);
    }
    this._axis(pen, marked);
  }

  /** What was not read, and lines for the times of the axis. */
  _ground(pen, marked) {
    const { timeline } = this;
    for (const { from, to } of timeline.unread) {
      const x = Math.max(0, timeline.xOf(from));
      const end = Math.min(timeline.width, timeline.xOf(to ?? timeline.now()));
      if (end > x) {
        unread(pen, this.colours, { x, y: AXIS, width: Math.max(LEAST, end - x), height: timeline.height });
      }
    }
    pen.fillStyle = this.colours.line;
    for (const { time } of marked) {
      pen.fillRect(Math.round(timeline.xOf(time)), AXIS, 1, timeline.height);
    }
  }

  _axis(pen, marked) {
    const { timeline, colours } = this;
    pen.fillStyle = colours.paper;
    pen.fillRect(0, 0, timeline.width, AXIS);
    pen.font = `12px ${this.font}`;
    pen.textBaseline = "middle";
    for (const { time, text } of marked) {
      const x = Math.round(timeline.xOf(time));
      pen.fillStyle = colours.line;
      pen.fillRect(x, AXIS - 6, 1, 6);
      pen.fillStyle = colours.faint;
      pen.fillText(text, x + 4, AXIS / 2);
    }
    pen.fillStyle = colours.line;
    pen.fillRect(0, AXIS - 1, timeline.width, 1);
  }

  _row(pen, lane, y) {
    const { timeline, colours } = this;
    const chosen = lane === timeline.lane;
    if (!lane.member || chosen) {
      pen.globalAlpha = 0.6;
      pen.fillStyle = chosen ? colours.chosen : colours.panel;
      pen.fillRect(0, y, timeline.width, HEIGHT);
      pen.globalAlpha = 1;
    }
    pen.fillStyle = colours.line;
    pen.fillRect(0, y + HEIGHT - 1, timeline.width, 1);
    this._lane(pen, lane, y);
    if (timeline.mark?.lane === lane) {
      this._ring(pen, timeline.mark, y);
    }
  }

  /** What lasts lies below points. Points at one place that look the same are drawn once. */
  _lane(pen, lane, y) {
    const points = [];
    for (const found of this.timeline.inSight(lane)) {
      if (found.look.shape === "band") {
        this._band(pen, found, y);
      } else if (found.look.shape === "bar") {
        this._glyph(pen, found, y);
      } else {
        points.push(found);
      }
    }
    let before = "";
    for (const found of points) {
      const { mark } = found;
      const now = `${Math.round(this.timeline.xOf(mark.begin))} ${mark.kind} ${Boolean(mark.error)}`;
      if (now !== before) {
        this._glyph(pen, found, y);
        before = now;
      }
    }
  }

  /** Left edge and width in pixels, not far out of sight. */
  _extent({ mark, end }) {
    const { timeline } = this;
    const x = Math.max(-BEYOND, timeline.xOf(mark.begin));
    return { x, width: Math.min(timeline.width + BEYOND, timeline.xOf(end)) - x };
  }

  _glyph(pen, found, y) {
    glyph(pen, this.colours, found.look, { ...this._extent(found), y, failed: Boolean(found.mark.error) });
  }

  /** With its text where there is room. Neighbours differ. */
  _band(pen, { mark, end, look }, y) {
    const tone = look.other && mark.epoch % 2 ? look.other : look.tone;
    const extent = this._extent({ mark, end });
    this._glyph(pen, { mark, end, look: { ...look, tone } }, y);
    if (extent.width > BAND_TEXT) {
      pen.save();
      pen.beginPath();
      pen.rect(extent.x, y, extent.width, HEIGHT);
      pen.clip();
      pen.font = `10px ${this.font}`;
      pen.textBaseline = "top";
      pen.fillStyle = this.colours.faint;
      pen.fillText(mark.text, Math.max(0, extent.x) + 4, y + 3);
      pen.restore();
    }
  }

  _ring(pen, mark, y) {
    const { timeline } = this;
    const wide = isWide(timeline.lookOf(mark).shape);
    const x = Math.max(2, timeline.xOf(mark.begin)) - (wide ? 2 : 8);
    const end = Math.min(timeline.width - 2, timeline.xOf(timeline.endOf(mark)));
    pen.strokeStyle = this.colours.accent;
    pen.lineWidth = 2;
    pen.strokeRect(x, y + 2, wide ? Math.max(6, end - x + 2) : 16, HEIGHT - 4);
  }
}
