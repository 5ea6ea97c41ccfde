// An exchange beside another one, and its API beside another version of it.

import { ask, clock, el, named, told } from "./page.js";
import { changesTable } from "./side.js";

export class Comparing {
  constructor() {
    this.marked = null; // {key, words}
  }

  /** The section of an exchange: `found` as the server gave it. `again()` shows it anew. */
  element(key, { exchange }, again) {
    const place = el("div", { class: "compared", role: "status" });
    const words = `${named(exchange)} of ${clock(exchange.time)}`;
    const mark = () => {
      this.marked = { key, words };
      again();
    };
    const path = `/api/exchanges/${encodeURIComponent(key)}`;
    const other = this.marked && this.marked.key !== key ? this.marked : null;
    const show = told(async () => place.replaceChildren(...differences(await ask(`/api/exchanges/${encodeURIComponent(other.key)}/differences/${encodeURIComponent(key)}`), other.words, words)));
    const versions = told(async (to) => place.replaceChildren(...layouts(await ask(`${path}/versions${to === undefined ? "" : `?to=${to}`}`), exchange.api, versions)));
    return el(
      "section",
      { class: "comparing", "aria-label": "compare" },
      el(
        "div",
        { class: "doings" },
        el("span", {}, "compare"),
        other ? el("button", { onclick: show }, `with ${other.words}`) : null,
        this.marked?.key === key ? el("span", { class: "marked" }, "choose another exchange, to compare it with this one") : el("button", { onclick: mark }, other ? "mark this one instead" : "with another exchange"),
        el("button", { onclick: () => versions() }, "with another version of the API"),
      ),
      place,
    );
  }
}

function differences(found, one, other) {
  const heads = [one, other];
  const tables = [
    ["facts", found.facts],
    ["request", found.request],
    ["answer", found.response],
  ].map(([name, changes]) => (changes.length ? changesTable(changes, heads, `${name}: ${changes.length} ${changes.length === 1 ? "difference" : "differences"}`) : null));
  const shown = [...tables.filter(Boolean), ...found.unknown.map((text) => el("p", { class: "reason" }, text))];
  return shown.length ? shown : [el("p", {}, "nothing differs")];
}

const SIGNS = { added: "+", removed: "−", changed: "~" };

function layouts(found, api, versions) {
  const numbers = Array.from({ length: found.last - found.first + 1 }, (_, index) => found.first + index).filter((number) => number !== found.version);
  const choice = el("select", { "aria-label": "version", onchange: () => versions(Number(choice.value)) }, numbers.map((number) => el("option", { value: String(number) }, `version ${number}`)));
  choice.value = String(found.to);
  const table = (name, changes) =>
    el(
      "div",
      { class: "scrolled", tabindex: "0", role: "region", "aria-label": `${name} of version ${found.to}` },
      el("h4", {}, name),
      changes.length
        ? el(
            "table",
            { class: "layouts" },
            el("thead", {}, el("tr", {}, ["", "field", `version ${found.version}`, `version ${found.to}`].map((head) => el(head ? "th" : "td", head ? { scope: "col" } : {}, head)))),
            el("tbody", {}, changes.map((one) => el("tr", { class: one.what, "data-path": one.path }, el("td", { title: one.what }, SIGNS[one.what]), el("th", { scope: "row" }, one.path), el("td", {}, one.before || "not there"), el("td", {}, one.after || "not there")))),
          )
        : el("p", {}, "the same fields"),
    );
  return numbers.length ? [el("p", {}, `${api} v${found.version} beside `, choice), table("request", found.request), table("answer", found.response)] : [el("p", {}, `${api} has one version`)];
}
