// The capture of a running klamm: begin it, see it grow, end it, and what to do with it then.

import { ask, el, size, tell, told, Watching } from "./page.js";
import { day, length, micros, moment } from "./period.js";

const LOOK_MS = 1000;
const RECORDS = {
  blank: "blank records: sizes, counts and times only",
  keep: "keep records: klamm replay needs them",
  hash: "hash keys and values: equal ones stay equal",
};

export class Capturing extends Watching {
  constructor() {
    super(LOOK_MS);
    this.folder = el("input", { id: "capture-folder", required: true, spellcheck: "false", placeholder: "/var/tmp/traffic" });
    this.records = el("select", { id: "capture-records" }, Object.entries(RECORDS).map(([value, text]) => el("option", { value }, text)));
    this.filter = el("input", { id: "capture-filter", spellcheck: "false", placeholder: 'all, or an expression: client_id == "billing"' });
    this.beginning = el(
      "form",
      { onsubmit: told((event) => this._begin(event)) },
      el("label", { for: "capture-folder" }, "Folder, on the machine of klamm"),
      this.folder,
      el("label", { for: "capture-records" }, "Records"),
      this.records,
      el("label", { for: "capture-filter" }, "Only exchanges for which this holds"),
      this.filter,
      el("div", { class: "doings" }, el("button", {}, "begin the capture")),
    );
    this.state = el("p", { class: "state", role: "status" });
    this.facts = el("dl", { class: "facts" });
    this.end = el("button", { onclick: told(() => this._end()) }, "end the capture");
    this.running = el("div", {}, this.facts, el("div", { class: "doings" }, this.end));
    this.command = el("code", {});
    this.download = el("a", { class: "button", href: "/api/capture/archive", download: "" }, "download as a tar");
    this.install = el("code", {});
    this.lacking = el("p", { class: "reason" }, "Captures are read with pyarrow, which this klamm does not have. Install it first: ", this.install);
    this.files = el("p", { class: "of" });
    this.title = el("h2", {});
    this.after = el(
      "section",
      { "aria-label": "files of the capture" },
      this.title,
      el("p", {}, "To look at it, on the machine of klamm: ", this.command, " ", el("button", { onclick: told(() => this._copy()) }, "copy")),
      this.lacking,
      this.files,
      el("div", { class: "doings" }, this.download),
    );
    this.element = el("div", { class: "page captures" }, el("h2", {}, "Capture"), this.state, this.beginning, this.running, this.after);
    this._draw({ capture: null, files: null, install: "" });
  }

  async _look() {
    try {
      this._draw(await ask("/api/capture"));
    } catch (error) {
      this.state.textContent = error.message;
    }
  }

  async _begin(event) {
    event.preventDefault();
    const wish = { folder: this.folder.value, records: this.records.value, filter: this.filter.value.trim() || null };
    await ask("/api/klamm/v1/capture", { method: "POST", body: wish });
    await this._look();
  }

  async _end() {
    await ask("/api/klamm/v1/capture", { method: "DELETE", body: {} });
    await this._look();
  }

  async _copy() {
    await navigator.clipboard.writeText(this.command.textContent);
    tell(`copied: ${this.command.textContent}`);
  }

  /** `capture` is the one that runs, `files` those of this one or the last; null where there is none. `install`: what
   * is to be done before captures can be opened. */
  _draw({ capture, files, install }) {
    this.install.textContent = install;
    this.lacking.hidden = !install;
    this.beginning.hidden = Boolean(capture);
    this.running.hidden = !capture;
    this.state.textContent = capture ? `klamm captures into ${capture.folder}` : "klamm captures nothing now.";
    this.state.classList.toggle("problem", Boolean(capture?.failing));
    if (capture) {
      const shown = Object.entries(facts(capture)).filter(([, text]) => text);
      this.facts.replaceChildren(...shown.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]).flat());
    }
    this.after.hidden = !files;
    this.title.textContent = capture ? "Its files" : "The capture that ended last";
    if (files) {
      this._files(files, Boolean(capture));
    }
  }

  _files({ folder, segments }, running) {
    const bytes = segments.reduce((sum, one) => sum + one.bytes, 0);
    const sealed = segments.length ? `${segments.length.toLocaleString()} sealed segment${segments.length === 1 ? "" : "s"}, ${size(bytes)}.` : "No segment is sealed yet.";
    const more = running ? " A segment is sealed at 64 MiB, after 5 minutes, and when the capture ends; only sealed ones are downloaded." : "";
    this.command.textContent = `klamm web ${shell(folder)} --listen 127.0.0.1:0`; // the usual port is that of this page
    this.files.textContent = `${sealed}${more}`;
    this.download.hidden = !segments.length;
  }
}

function facts(capture) {
  const since = micros(capture.since);
  const losses = [capture.dropped_bytes ? `${size(capture.dropped_bytes)} found no room` : "", capture.lost_frames ? `${capture.lost_frames.toLocaleString()} frames are known to be missing` : ""];
  return {
    since: `${day(since)} ${moment(since, 1e6)} (${length(Math.max(0, micros(Date.now() / 1000) - since))})`,
    rows: capture.rows.toLocaleString(),
    written: size(capture.written_bytes),
    waiting: size(capture.waiting_bytes),
    dropped: losses.filter(Boolean).join(", ") || "nothing",
    records: capture.records,
    filter: capture.filter ?? "all exchanges",
    disk: capture.failing ? `failed: ${capture.last_error}` : capture.failures ? `failed ${capture.failures.toLocaleString()} times, last: ${capture.last_error}` : "",
  };
}

/** A word as a shell takes it. */
const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);
