// The parts of a timeline of which not all exchanges were read: {from, to} in seconds since 1970, `to` null for one that goes
// on. They are drawn grey.

import { clock } from "./page.js";

const TOLD = 3; // parts in words

const tenths = (time) => clock(time).slice(0, -2);

/** As the server tells them. */
export const partsOf = (missing) => missing.map(({ since, until }) => ({ from: since, to: until ?? null }));

/** The parts in words, such as "before 12:00:05.0, from 12:03:10.2 to 12:03:11.7"; the newest where there are many. */
export function inWords(parts) {
  const newest = parts.slice(-TOLD).map(({ from, to }) => {
    if (to === null) {
      return from ? `since ${tenths(from)}` : "until now";
    }
    return from ? `from ${tenths(from)} to ${tenths(to)}` : `before ${tenths(to)}`;
  });
  const more = parts.length - newest.length;
  return newest.join(", ") + (more ? `, and in ${more.toLocaleString()} earlier part${more === 1 ? "" : "s"}` : "");
}
