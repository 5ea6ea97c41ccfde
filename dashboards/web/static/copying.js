// An exchange as text for other tools, on the clipboard; where the browser permits none, in a field to copy from.

import { ask, el, tell, told } from "./page.js";

const FORMS = [
  ["filter", "an expression for exchanges like this one"],
  ["rule", "a rule file that fails the next ones like this one"],
  ["test", "a pytest test with the fixture klamm"],
  ["decode", "a command line of klamm decode, with the bytes"],
  ["JSON", "as klamm tail --json -v prints it"],
];

/** Buttons that copy the exchange at `path` of the server. */
export function copying(path) {
  return el(
    "div",
    { class: "doings", role: "group", "aria-label": "copy as" },
    el("span", {}, "copy as"),
    FORMS.map(([form, title]) => el("button", { title, onclick: told(async () => copy((await ask(`${path}/copy/${form}`)).text)) }, form)),
  );
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    show(text);
    return;
  }
  const [line] = text.split("\n");
  tell(`copied: ${line.length > 100 ? `${line.slice(0, 100)}…` : line}`);
}

function show(text) {
  const field = el("textarea", { rows: "12", readonly: true, "aria-label": "text to copy" });
  field.value = text;
  const dialog = el("dialog", { class: "copy", onclose: () => dialog.remove() }, el("p", {}, "The browser permits no copying here: take it from this field."), field, el("button", { onclick: () => dialog.close() }, "close"));
  document.body.append(dialog);
  dialog.showModal();
  field.select();
}
