// Elements, requests and messages. Text from the wire becomes text nodes only, never markup.

/** An element with attributes, listeners (on...), and children: elements, texts, or nothing. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) {
      made.addEventListener(name.slice(2), value);
    } else if (value !== false && value !== null && value !== undefined) {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

const AGAIN_MS = 1000;
const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** JSON of this server. A GET that gets no answer is sent once more: browsers end requests when the network of the
 * machine changes. Throws an Error with the reason for people. */
export async function ask(path, { method = "GET", body } = {}) {
  const headers = method === "GET" ? {} : { "Content-Type": "application/json" };
  const send = () => fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  let answer;
  try {
    answer = await (method === "GET" ? send().catch(() => later(AGAIN_MS).then(send)) : send());
  } catch {
    throw new Error("klamm web does not answer: is it still running?");
  }
  const text = await answer.text();
  const value = text ? JSON.parse(text) : null;
  if (!answer.ok) {
    const mistakes = (value?.mistakes ?? []).map(({ path: where, reason }) => (where ? `${where}: ${reason}` : reason));
    throw new Error(mistakes.join("\n") || value?.error || `status ${answer.status}`);
  }
  return value;
}

/** The lines of an endless answer, each as JSON, until `signal`. Throws as `ask` does. */
export async function* lines(path, signal, { method = "GET", body } = {}) {
  const headers = method === "GET" ? {} : { "Content-Type": "application/json" };
  const answer = await fetch(path, { signal, method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!answer.ok) {
    const problem = await answer.json();
    throw Object.assign(new Error(problem.error), { refused: true });
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    const whole = (pending + value).split("\n");
    pending = whole.pop();
    for (const line of whole) {
      if (line) {
        yield JSON.parse(line);
      }
    }
  }
}

/** Tell the user, for some seconds. */
export function tell(text) {
  const place = document.getElementById("message");
  place.textContent = text;
  place.hidden = false;
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => (place.hidden = true), 8000);
}

/** What was told is of no interest any more. */
export function untell() {
  document.getElementById("message").hidden = true;
}

/** A listener that tells what went wrong instead of losing it. */
export const told = (act) => async (...given) => {
  untell();
  try {
    await act(...given);
  } catch (error) {
    tell(error.message);
  }
};

const UNITS = ["B", "KiB", "MiB", "GiB"];

/** The API and version of an exchange; an answer without its request has neither, and `api` says so. */
export const named = ({ api, version }) => (version < 0 ? api : `${api} v${version}`);

/** A number of something, such as "1 exchange". */
export const counted = (number, word) => `${number.toLocaleString()} ${word}${number === 1 ? "" : "s"}`;

export function size(bytes) {
  if (bytes === null || bytes === undefined) {
    return "";
  }
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return power ? `${(bytes / 1024 ** power).toFixed(1)} ${UNITS[power]}` : `${bytes} B`;
}

export function clock(seconds) {
  const at = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  const ms = String(at.getMilliseconds()).padStart(3, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${ms}`;
}

/** A text as it is written in an expression. */
export const quoted = (text) => JSON.stringify(text);

/** Read a stream for as long as `signal` lets: its lines go to `take`. Where this server went away it is read
 * again, after `again()`; not where `once`, after its end. `away` is told that it went, `refused` why it refused. */
export async function stream(path, signal, { take, refused, away, again, once }) {
  while (!signal.aborted) {
    try {
      for await (const line of lines(path(), signal)) {
        take(line);
      }
      if (once) {
        return;
      }
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      if (error.refused) {
        refused(error.message);
        return;
      }
      away("klamm web does not answer: is it still running?");
    }
    await later(AGAIN_MS);
    again?.();
  }
}

/** A view that looks again each so many ms while it is open. It has `_look()`. */
export class Watching {
  constructor(ms) {
    this.ms = ms;
    this.timer = null;
  }

  open() {
    this.timer ??= setInterval(() => this._look(), this.ms);
    this._look();
  }

  close() {
    clearInterval(this.timer);
    this.timer = null;
  }
}
