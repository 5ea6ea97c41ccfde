// What a capture holds, told to each view that wants it: read once, ever more of it.

import { lines } from "./page.js";

const listeners = new Set();
let latest = null;
let reading = null;

/** Calls `listener` with each overview as overview.py gives it, or with {problem}. */
export function onOverview(listener) {
  listeners.add(listener);
  if (latest) {
    listener(latest);
  }
  reading ??= read();
}

async function read() {
  try {
    for await (const found of lines("/api/capture/overview")) {
      tell(found);
    }
  } catch (error) {
    tell({ ...latest, problem: error.refused ? error.message : "klamm web does not answer: is it still running?" });
  }
}

function tell(found) {
  latest = found;
  listeners.forEach((listener) => listener(found));
}
