// Looks at klamm that go on whichever view is open: the hits of rules, and how many frames wait.

import { ask } from "./page.js";

const LOOK_MS = 1000;

/** `hits` is given the hits by rule, `paused` a number, or null while klamm does not tell. */
export function counting({ hits, paused }) {
  setInterval(async () => {
    try {
      const found = await ask("/api/hits");
      if (found.hits) {
        hits(found.hits);
      }
      paused(found.paused);
    } catch {
      paused(null); // the stream of exchanges says that this server is away
    }
  }, LOOK_MS);
}
