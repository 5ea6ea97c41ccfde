// The page: its views, the links to them, and the state of the source.

import { captures } from "./captures.js";
import { Clusters } from "./cluster.js";
import { counting } from "./counting.js";
import { Exchanges } from "./exchanges.js";
import { groups } from "./groups.js";
import { Lanes } from "./lanes.js";
import { ask, clock, counted, el, tell, untell } from "./page.js";
import { Paused } from "./paused.js";
import { query } from "./period.js";
import { producers } from "./producers.js";
import { Rules } from "./rules.js";
import { sessions } from "./sessions.js";
import { Traffic } from "./traffic.js";

const source = document.getElementById("source");
const place = document.getElementById("view");
const tabs = document.getElementById("tabs");
const views = {};

function link() {
  const [name, query] = location.hash.slice(1).split("?");
  return { name: name || "exchanges", parameters: new URLSearchParams(query ?? "") };
}

/** Keep these parameters in the address, so that it can be given to others. `entry`: "back" leads to what it was. */
function remember(changes, entry = false) {
  const { name, parameters } = link();
  for (const [key, value] of Object.entries(changes)) {
    parameters.delete(key); // what changes comes last, so that a view's address has one order
    if (value) {
      parameters.set(key, value);
    }
  }
  const text = parameters.toString();
  const address = `#${name}${text ? `?${text}` : ""}`;
  if (entry) {
    history.pushState(null, "", address);
  } else {
    history.replaceState(null, "", address);
  }
  lead();
}

/** The links to the views. The part of a capture's time that is looked at goes along; the list is shown as it is. */
function lead() {
  const { parameters } = link();
  const along = Object.fromEntries(["since", "until"].map((name) => [name, parameters.get(name)]));
  for (const one of tabs.children) {
    const { name } = one.dataset;
    one.href = `#${name}${query({ ...views[name].address?.(), ...along })}`;
  }
}

function head(about) {
  return ({ state, problem }) => {
    const span = about.kind === "capture" && about.first ? `, ${clock(about.first)} to ${clock(about.last)}` : "";
    const where = about.kind === "live" ? `klamm at ${about.name}` : `capture ${about.name}${span}`;
    const more = about.kind === "capture" && state !== "reading" ? state : "";
    source.textContent = problem || [where, more].filter(Boolean).join(": ");
    source.classList.toggle("away", Boolean(problem));
  };
}

/** Go to the list, and mark what the rule would have done to it. */
async function tryOut(rule) {
  location.hash = views.exchanges.link();
  await views.exchanges.trying.of(rule);
}

/** The link to the paused frames has their number, if there are any. */
function waiting(link, number) {
  const title = number ? `${counted(number, "frame")} waiting for a decision` : "";
  if (link.title !== title) {
    link.title = title;
    link.replaceChildren(link.dataset.name, ...(number ? [" ", el("span", { class: "waiting" }, String(number))] : []));
  }
}

async function main() {
  const about = await ask("/api/about");
  const say = head(about);
  say({ state: "" });
  document.title = `klamm: ${about.name}`;
  const { apis, errors, noise } = await ask("/api/words");
  Object.assign(views, { exchanges: new Exchanges(about, say, remember, noise), traffic: new Traffic(about, remember) });
  for (const view of [groups, producers, sessions]) {
    views[view.name] = new Lanes(view, about, say, remember, views.exchanges);
  }
  if (about.kind === "live") {
    Object.assign(views, { rules: new Rules(tryOut), paused: new Paused(), clusters: new Clusters() });
  }
  views.captures = captures(about, remember, views.exchanges);
  for (const [id, names] of Object.entries({ apis, errors })) {
    document.body.append(el("datalist", { id }, names.map((name) => el("option", { value: name }))));
  }
  const links = Object.keys(views).map((name) => el("a", { href: `#${name}`, "data-name": name }, name));
  tabs.append(...links);
  if (about.kind === "live") {
    counting({ hits: (hits) => views.rules.count(hits), paused: (number) => waiting(links.find(({ dataset }) => dataset.name === "paused"), number) });
  }
  let shown = null;
  const show = () => {
    const { name, parameters } = link();
    const view = views[name] ?? views.exchanges;
    if (shown !== view) {
      shown?.close?.();
      untell();
      place.replaceChildren(view.element);
      shown = view;
    }
    links.forEach((one) => {
      if (one.dataset.name === name) {
        one.setAttribute("aria-current", "page");
      } else {
        one.removeAttribute("aria-current");
      }
    });
    lead();
    view.open(parameters);
  };
  addEventListener("hashchange", show);
  addEventListener("pointerdown", (event) => {
    document.querySelectorAll("details[name=menu][open]").forEach((menu) => (menu.open = menu.contains(event.target)));
  });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
      event.preventDefault();
      if (shown.search) {
        shown.search.focus();
        return;
      }
      location.hash = views.exchanges.link();
      views.exchanges.filter.input.focus();
    }
  });
  show();
}

main().catch((error) => tell(error.message));
