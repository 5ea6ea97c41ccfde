// Draws marks and the axis of time on a canvas. Colours are those of the style sheet.

export const HEIGHT = 28; // pixels of a lane, as in timeline.css
export const AXIS = 26; // pixels
const LEAST = 3; // pixels of a bar
const POINT = 4; // half of a point's width
const TONES = ["ink", "faint", "line", "paper", "panel", "failed", "chosen", "accent"];

/** The colours of these elements, by the names of their tones: a style sheet decides, and follows the scheme. */
export function palette(place, tones) {
  const found = {};
  const probe = document.createElement("i");
  place.append(probe);
  for (const tone of [...TONES, ...tones]) {
    probe.className = `tone-${tone}`;
    found[tone] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

const SHAPES = {
  band(pen, x, width, y) {
    pen.globalAlpha = 0.3;
    pen.fillRect(x, y + 3, Math.max(1, width), HEIGHT - 6);
    pen.globalAlpha = 1;
    pen.fillRect(x, y + 3, 1, HEIGHT - 6);
  },
  bar(pen, x, width, y) {
    pen.fillRect(x, y + HEIGHT / 2 - 5, Math.max(LEAST, width), 10);
  },
  tick(pen, x, width, y) {
    pen.fillRect(x - 0.5, y + HEIGHT / 2 - 4, 1.5, 8);
  },
  dot(pen, x, width, y) {
    pen.beginPath();
    pen.arc(x, y + HEIGHT / 2, POINT - 0.5, 0, Math.PI * 2);
    pen.fill();
  },
  square(pen, x, width, y) {
    pen.fillRect(x - POINT + 0.5, y + HEIGHT / 2 - POINT + 0.5, 2 * POINT - 1, 2 * POINT - 1);
  },
  diamond(pen, x, width, y) {
    polygon(pen, x, y + HEIGHT / 2, [0, -6, 5, 0, 0, 6, -5, 0]);
  },
  triangle(pen, x, width, y) {
    polygon(pen, x, y + HEIGHT / 2, [-5, -5, 5, -5, 0, 6]);
  },
  cross(pen, x, width, y) {
    const middle = y + HEIGHT / 2;
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.moveTo(x - 5, middle - 5);
    pen.lineTo(x + 5, middle + 5);
    pen.moveTo(x + 5, middle - 5);
    pen.lineTo(x - 5, middle + 5);
    pen.stroke();
  },
};
const FAILED = { tick: "failedTick" };
SHAPES.failedTick = (pen, x, width, y) => pen.fillRect(x - 1, y + 5, 2.5, HEIGHT - 10);

function polygon(pen, x, y, [dx, dy, ...more]) {
  pen.beginPath();
  pen.moveTo(x + dx, y + dy);
  for (let at = 0; at < more.length; at += 2) {
    pen.lineTo(x + more[at], y + more[at + 1]);
  }
  pen.closePath();
  pen.fill();
}

export const isWide = (shape) => shape === "band" || shape === "bar";

/** A mark of this kind at a place; `width` of what lasts, in pixels. */
export function glyph(pen, colours, { shape, tone }, { x, width = 0, y, failed = false }) {
  const colour = failed ? colours.failed : colours[tone];
  pen.fillStyle = colour;
  pen.strokeStyle = colour;
  SHAPES[failed ? FAILED[shape] ?? shape : shape](pen, x, width, y);
}

/** The ground of what was not read. */
export function unread(pen, colours, { x, y, width, height }) {
  pen.fillStyle = colours.line;
  pen.globalAlpha = 0.5;
  pen.fillRect(x, y, width, height);
  pen.globalAlpha = 1;
}

/** A canvas of this size, sharp on this screen; its pen measures in pixels of the page. */
export function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];
const DAY = 86_400;
const APART = 90; // pixels between two texts

/** The times of an axis from `from` to `to`, each {time, text}; round ones of this place's clock. */
export function times(from, to, width) {
  const least = ((to - from) / Math.max(1, width)) * APART;
  const step = STEPS.find((one) => one >= least) ?? Math.ceil(least / DAY) * DAY;
  const shift = -new Date(from * 1000).getTimezoneOffset() * 60;
  const found = [];
  for (let count = Math.ceil((from + shift) / step); count * step - shift <= to; count += 1) {
    const time = count * step - shift;
    found.push({ time, text: clockOf(time, step) });
  }
  return found;
}

function clockOf(time, step) {
  const at = new Date(Math.round(time * 1000));
  const two = (number) => String(number).padStart(2, "0");
  if (step >= DAY) {
    return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  }
  const minutes = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (step >= 60) {
    return minutes;
  }
  const whole = `${minutes}:${two(at.getSeconds())}`;
  return step >= 1 ? whole : `${whole}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** A duration as people say it. */
export function lasting(seconds) {
  if (seconds < 1) {
    return `${(seconds * 1000).toPrecision(3)} ms`;
  }
  return seconds < 120 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
