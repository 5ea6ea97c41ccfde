// A part of a capture's time: {since, until} in whole microseconds since 1970, null where it is open.

import { clock } from "./page.js";

const US = 1e6; // of a second
const MS = 1000; // microseconds

export const micros = (seconds) => Math.round(seconds * US);
const whole = (text) => (text !== null && text !== "" && Number.isFinite(Number(text)) ? micros(Number(text)) : null);

/** As a link has it; null without one. */
export function ofLink(parameters) {
  const [since, until] = ["since", "until"].map((name) => whole(parameters.get(name)));
  return since === null && until === null ? null : { since, until };
}

/** The parameters of a link; empty without a period. */
export function asLink(period) {
  const text = (us) => (us === null || us === undefined ? "" : (us / US).toFixed(6));
  return { since: text(period?.since), until: text(period?.until) };
}

/** The exchanges of a list, {where, hide, since, until} as in its link, as this server takes them. */
export function asWish({ where, hide, since, until }) {
  const number = (text) => (text ? Number(text) : null);
  return { where: where || null, hide: hide ? hide.split(",") : [], since: number(since), until: number(until) };
}

export const same = (one, other) => one?.since === other?.since && one?.until === other?.until;

/** The query of a link, of what is not empty, with its question mark. */
export function query(parameters) {
  const text = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value)).toString();
  return text ? `?${text}` : "";
}

const two = (number) => String(number).padStart(2, "0");

export function day(us) {
  const at = new Date(us / MS);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** A time with as many digits as steps of this length need. */
export function moment(us, step = MS) {
  const text = clock(us / US);
  if (step < MS) {
    return `${text.slice(0, 8)}.${String(us % US).padStart(6, "0")}`;
  }
  return step % US ? text : text.slice(0, 8);
}

/** A time with all of its digits, and no more. */
export const exact = (us) => moment(us, [US, MS].find((unit) => us % unit === 0) ?? 1);

export function length(us) {
  const seconds = us / US;
  if (seconds < 1) {
    return us < MS ? `${us} µs` : `${(us / MS).toFixed(us < 10 * MS ? 1 : 0)} ms`;
  }
  if (seconds < 120) {
    return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  }
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** As a field for a local date and time has it, and back; null for what is none. */
export const asField = (us) => `${day(us)}T${clock(us / US)}`;
export const ofField = (text) => (text && Number.isFinite(Date.parse(text)) ? Date.parse(text) * MS : null);
