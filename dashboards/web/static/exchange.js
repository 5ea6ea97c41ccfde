// One exchange: what is known of it, its bodies, and what can be done from there.

import { copying } from "./copying.js";
import { fates, lasted, unanswered } from "./fates.js";
import { ask, clock, el, named, told } from "./page.js";
import { side } from "./side.js";
import { waterfall } from "./waterfall.js";

/** `narrow` adds a condition to the filter, `follow` puts it in its place; `trying` makes forms of rules.
 * `neighbours(key, exchange)`: the rows before and after on its connection; `open(key)` shows another exchange;
 * `watch(look)` calls it when rows come, until it gives true; `comparing` makes the comparison with another. */
export async function details(key, { narrow, follow, close, neighbours, watch, open, trying, comparing }) {
  const path = `/api/exchanges/${encodeURIComponent(key)}`;
  let found;
  try {
    found = await ask(path);
  } catch (error) {
    return el("div", {}, el("div", { class: "bar" }, closing(close)), el("p", { class: "reason" }, error.message));
  }
  const { exchange } = found;
  const sides = el("div", { class: "sides", tabindex: "-1" });
  let answer = null;
  const fill = (shown) => {
    const inside = sides.contains(document.activeElement);
    const how = { records: shown.records, content: told(async () => fill(await ask(`${path}?records=true`))) };
    answer = side("answer", shown.response, exchange.response_bytes, how);
    sides.replaceChildren(side("request", shown.request, exchange.request_bytes, how), answer);
    if (inside) {
      sides.focus(); // the button that was pressed is gone
    }
  };
  fill(found);
  const toAnswer = () => {
    answer.tabIndex = -1;
    answer.focus({ preventScroll: true });
    answer.scrollIntoView();
  };
  return el(
    "div",
    {},
    el("div", { class: "bar" }, el("h2", { tabindex: "-1" }, named(exchange)), el("button", { onclick: toAnswer }, "to the answer"), closing(close)),
    el("div", { class: "overview" }, facts(found, (name) => answer.errors?.(name) ?? []), timing(key, exchange, { neighbours, watch, open })),
    following(found.follow, narrow, follow),
    copying(path),
    failing(path, trying),
    comparing.element(key, found, () => open(key)),
    sides,
  );
}

/** The rows around an exchange may come after it. */
function timing(key, exchange, { neighbours, watch, open }) {
  const place = el("div");
  let shown = null;
  const look = () => {
    const { before, after } = neighbours(key, exchange);
    const keys = `${before?.key} ${after?.key}`;
    if (keys !== shown) {
      shown = keys;
      place.replaceChildren(waterfall(exchange, { before, after }, open));
    }
    return Boolean(after);
  };
  if (!look()) {
    watch(look);
  }
  return place;
}

const closing = (close) => el("button", { class: "close", onclick: close, "aria-label": "close" }, "×");

/** The name of an error leads to the field with its code, and when it is pressed again to the next one. */
function error([name, count], errorsOf) {
  const text = count > 1 ? `${name} x${count}` : name;
  let next = 0;
  const show = () => {
    const found = errorsOf(name);
    found[next % found.length]();
    next += 1;
  };
  return errorsOf(name).length ? el("button", { class: "leads", title: "show the field in the answer", onclick: show }, text) : text;
}

/** `errorsOf(name)`: a function for each field of the answer with this error, which shows it. */
function facts({ exchange, meanings }, errorsOf) {
  const errors = Object.entries(exchange.errors ?? {}).map((one) => error(one, errorsOf));
  const topics = Object.entries(exchange.topics ?? {}).map(([name, parts]) => (parts.length ? `${name} [${parts.join(", ")}]` : name));
  const words = {
    time: clock(exchange.time),
    client: exchange.client_id,
    from: exchange.connection,
    principal: exchange.principal,
    broker: [exchange.cluster, exchange.broker].filter(Boolean).join(" / "),
    connection: String(exchange.connection_id ?? ""),
    topics: topics.join(", "),
    group: exchange.group,
    [exchange.unanswered ? "waited" : "took"]: lasted(exchange) === undefined ? null : `${lasted(exchange).toFixed(3)} ms`,
    "answered by": exchange.unanswered ? null : exchange.changed ? "broker, changed by klamm" : exchange.origin,
    "no answer": exchange.unanswered,
    klamm: fates(exchange).join(", "),
    rules: (exchange.rules ?? []).join(", "),
    errors: errors.flatMap((one, index) => (index ? [", ", one] : [one])),
  };
  const shown = Object.entries(words).filter(([, text]) => text?.length);
  const meant = Object.entries(meanings ?? {}).map(([name, meaning]) => el("dd", { class: "meaning" }, errors.length > 1 ? `${name}: ${meaning}` : meaning));
  return el("dl", { class: "facts" }, shown.map(([name, text]) => [el("dt", {}, name), el("dd", { class: name }, text)]), meant);
}

/** For each condition a button that sets the filter, and one that adds to it. */
function following(conditions, narrow, follow) {
  return el(
    "div",
    { class: "doings", role: "group", "aria-label": "follow" },
    el("span", {}, "follow"),
    conditions.map(({ name, where }) =>
      el(
        "span",
        { class: "pair" },
        el("button", { title: where, onclick: () => follow(where) }, `this ${name}`),
        el("button", { title: `and ${where}`, "aria-label": `add this ${name} to the filter`, onclick: () => narrow(where) }, "+"),
      ),
    ),
  );
}

/** A rule out of an exchange: the next ones like this one fail, or whatever the form says. */
function failing(path, trying) {
  const place = el("div");
  const open = told(async (event) => {
    if (event.target.open && !place.childElementCount) {
      const form = trying.form();
      await form.fill(await ask(`${path}/rule`));
      place.append(form.element);
    }
  });
  return el("details", { class: "failing", ontoggle: open }, el("summary", {}, trying.live ? "fail, delay or pause the next ones like this" : "a rule for exchanges like this"), place);
}
