// One run, or several side by side: curves, config, workers, logs, videos.

import { ago, badge, bytes, count, duration, h, number, setText } from "./dom.js";
import { Metrics, fetchLog, fetchRun, groupBy, videoAddress } from "./data.js";
import { Charts, lineOf, lineSample, stopValue } from "./charts.js";
import { address } from "./list.js";
import { WorkersPanel } from "./workers.js";

const TABS = ["curves", "config", "workers", "logs", "videos"];
const OVER = new Set(["converged", "finished", "interrupted", "failed", "killed"]);

export class RunView {
  constructor(ids, tab, state) {
    this.ids = ids;
    this.state = state;
    this.tab = TABS.includes(tab) ? tab : "curves";
    this.runs = ids.map((id, i) => ({ id, ...lineOf(i), metrics: new Metrics(id), facts: null, over: false }));
    this.head = h("div", { class: "head" });
    this.tabs = h("nav", { class: "tabs", "aria-label": "What to show of the run" },
      TABS.map((name) => h("a", { href: address(ids, name), "data-tab": name, "aria-current": name === this.tab ? "page" : null }, name)));
    this.panel = h("div", { class: "panel" });
    this.element = h("div", { class: "view" }, this.head, this.tabs, this.panel);
  }

  close() {
    this.charts?.close();
  }

  themed() {
    this.charts?.themed();
  }

  async update() {
    const first = !this.content;
    const asked = this.runs.filter((run) => !run.over || first);
    await Promise.all(asked.map(async (run) => {
      const facts = await fetchRun(run.id, first ? { config: 1 } : {});
      run.facts = { ...run.facts, ...facts };
      run.group = facts.summary.group;
      run.title ??= facts.summary.name;
      run.name ??= facts.summary.folder;
    }));
    if (first) {
      nameByDifference(this.runs);
      this.begin();
    }
    this.showHead();
    if (this.tab === "curves") {
      const changed = await Promise.all(asked.map((run) => run.metrics.update().catch((error) => {
        if (run.metrics.version || error.name === "Gone") throw error;
        return false; // no file yet
      })));
      this.charts.update(changed.some(Boolean));
    } else {
      await this.content.update?.();
    }
    // Update a run once more after its end, for the last rows.
    for (const run of asked) run.over = OVER.has(run.facts.summary.status) && (run.endSeen || !(run.endSeen = true));
  }

  begin() {
    const groups = [...new Set(this.runs.map((run) => run.group))];
    if (this.tab === "curves") {
      // One colour per config if means are shown, otherwise one per run.
      this.charts = new Charts(this.runs);
      this.content = this.charts;
      if (groups.length > 1 && groups.length < this.runs.length) {
        for (const run of this.runs) Object.assign(run, lineOf(groups.indexOf(run.group)));
      }
    } else {
      const panels = { config: ConfigPanel, workers: WorkersPanel, logs: LogsPanel, videos: VideosPanel };
      this.content = new panels[this.tab](this.runs);
    }
    this.panel.replaceChildren(this.content.element);
    if (this.ids.length === 1) setText(document.getElementById("where"), this.runs[0].facts.record.cwd ? `${this.runs[0].id}` : "");
    else setText(document.getElementById("where"), `${this.ids.length} runs`);
  }

  lost() {
    if (this.state.single && this.runs[0].facts && !this.head.querySelector(".alert")) {
      this.head.append(h("p", { class: "alert" },
        "The coordinator does not answer any more: its run has ended, or was stopped. The page shows its last state; " +
        "`ding board` on the run's folder shows how it ended."));
    }
  }

  failed(error) {
    if (!this.content) this.panel.replaceChildren(h("p", { class: "empty" }, error.message));
  }

  showHead() {
    if (this.ids.length > 1) return this.showLegend();
    const { summary, record } = this.runs[0].facts;
    const shown = JSON.stringify([summary, record]);
    if (shown === this.shownHead) return undefined;
    this.shownHead = shown;
    const seconds = summary.seconds ?? (Date.now() - Date.parse(summary.started)) / 1000;
    const goal = stopValue(this.runs[0].facts.config);
    const facts = [
      ["Best return", number(summary.best_return)], ["Last return", number(summary.last_return)],
      ["Env steps", count(summary.envstep)], ["Updates", count(summary.train_iter ?? this.runs[0].facts.live?.train_iter)],
      ["Steps/s", count(summary.envstep / seconds)], ["Took", duration(seconds)],
      ["Goal", number(goal)], ...(summary.status === "running" ? [["Time left", duration(timeLeft(summary, goal, seconds))]] : []),
      ["Seed", `${summary.seed ?? "–"}`], ["Started", ago(summary.started)],
    ];
    const bad = ["failed", "killed", "unreadable"].includes(summary.status);
    const reason = summary.status === "killed" ? "its process ended without recording why; resume it with --resume" : summary.reason;
    this.head.replaceChildren(
      this.state.single ? null ?? "" : h("a", { class: "back", href: "#/" }, "← all runs"),
      h("h1", {}, summary.folder === "." ? summary.name : summary.folder, " ", badge(summary.status)),
      reason ? h("p", { class: bad ? "alert" : "reason" }, reason) : "",
      summary.problem ? h("p", { class: "alert" }, summary.problem) : "",
      h("dl", { class: "facts" }, facts.map(([key, value]) => h("div", {}, h("dt", {}, key), h("dd", {}, value)))),
      h("details", { class: "more" }, h("summary", {}, "Command, versions, machine"),
        h("pre", {}, [record.command, record.cwd && `in ${record.cwd}`, record.host && `${record.host}, ${record.platform}, ${record.cpus} CPUs`,
          Object.entries(record.versions ?? {}).map(([name, version]) => `${name} ${version}`).join(", "),
          record.git && `git ${JSON.stringify(record.git)}`, record.started && `started ${record.started}`, record.ended && `ended ${record.ended}`,
        ].filter(Boolean).join("\n"))));
    return undefined;
  }

  showLegend() {
    const shown = JSON.stringify(this.runs.map((run) => [run.colour, run.facts.summary]));
    if (shown === this.shownHead) return;
    this.shownHead = shown;
    this.head.replaceChildren(
      h("a", { class: "back", href: "#/" }, "← all runs"),
      h("h1", {}, `${this.runs.length} runs side by side`),
      h("ul", { class: "legend" }, this.runs.map(({ id, colour, dash, name, facts: { summary } }) => h("li", {},
        lineSample({ colour, dash }), h("a", { href: address([id]) }, name), badge(summary.status),
        h("span", { class: "n" }, `best ${number(summary.best_return)}`),
        h("a", { class: "remove", "aria-label": `Without ${name}`, href: address(this.ids.filter((other) => other !== id), this.tab) }, "×")))));
  }
}

// Estimate from the progress of the best return towards the goal; NaN without progress.
function timeLeft({ curve, best_return: best }, goal, seconds) {
  const share = ((best ?? NaN) - (curve[0]?.[1] ?? NaN)) / (goal - (curve[0]?.[1] ?? NaN));
  return share > 0 && share <= 1 ? (seconds * (1 - share)) / share : NaN;
}

const NAMED = 3;

// Names compared runs by their seed and by config values that differ among runs of the same name.
function nameByDifference(runs) {
  if (runs.length < 2) return;
  for (const members of groupBy(runs, (run) => run.title).values()) {
    const configs = members.map((run) => run.facts.config ?? {});
    const keys = [...new Set(configs.flatMap((config) => Object.keys(config)))]
      .filter((key) => !/(^|\.)(exp_name|seed|cfg_type)$/.test(key) && new Set(configs.map((config) => config[key])).size > 1);
    members.forEach((run, i) => {
      const facts = keys.slice(0, NAMED).map((key) => `${key.split(".").at(-1)} ${configs[i][key] ?? "none"}`);
      const { folder, seed } = run.facts.summary;
      run.name = [folder, ...facts, folder.endsWith(`seed${seed}`) ? "" : `seed ${seed ?? "?"}`].filter(Boolean).join(", ");
      run.title = [run.title, ...facts].join(", ");
    });
  }
}

class ConfigPanel {
  constructor(runs) {
    this.runs = runs;
    const several = runs.length > 1;
    this.filter = h("input", { type: "search", placeholder: "Filter keys and values  ( / )", "aria-label": "Filter config", oninput: () => this.show() });
    this.onlyDiffering = h("input", { type: "checkbox", checked: several, onchange: () => this.show() });
    this.body = h("tbody");
    this.note = h("p", { class: "empty", hidden: true });
    this.element = h("div", {},
      h("div", { class: "tools" }, this.filter, several ? h("label", { class: "check" }, this.onlyDiffering, " only what differs") : null),
      runs.filter((run) => run.facts.config_error).map((run) => h("p", { class: "alert" }, `${run.name}: ${run.facts.config_error}`)),
      h("div", { class: "scroll" }, h("table", { class: "config" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Key"),
          runs.map((run) => h("th", { scope: "col" }, several ? [lineSample(run), " ", run.name] : "Value")))), this.body)),
      this.note);
    this.show();
  }

  show() {
    const configs = this.runs.map((run) => run.facts.config ?? {});
    const keys = [...new Set(configs.flatMap((config) => Object.keys(config)))];
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = keys
      .map((key) => [key, configs.map((config) => config[key])])
      .filter(([key, values]) => words.every((word) => `${key} ${values}`.toLowerCase().includes(word)))
      .filter(([, values]) => !(this.runs.length > 1 && this.onlyDiffering.checked) || new Set(values).size > 1);
    this.body.replaceChildren(...rows.map(([key, values]) => h("tr", { class: new Set(values).size > 1 ? "differs" : null },
      h("th", { scope: "row" }, key), values.map((value) => h("td", {}, value ?? "–")))));
    this.note.hidden = rows.length > 0;
    setText(this.note, keys.length ? (words.length ? "No key fits the filter." : "The configs are the same.") : "There is no total_config.py.");
  }
}

class LogsPanel {
  constructor(runs) {
    this.runs = runs;
    this.choice = h("select", { "aria-label": "Log", onchange: () => this.open() });
    this.grep = h("input", { type: "search", placeholder: "Only lines with …  ( / )", "aria-label": "Filter lines", oninput: () => this.show() });
    this.text = h("pre", { class: "log", tabindex: 0, "aria-label": "Log" });
    this.note = h("span", { class: "total" });
    this.element = h("div", {}, h("div", { class: "tools" }, this.choice, this.grep, this.note), this.text);
    this.offset = undefined;
    this.lines = "";
  }

  async update() {
    const options = this.runs.flatMap((run) => run.facts.logs.map(({ path, size }) => [JSON.stringify([run.id, path]),
      `${this.runs.length > 1 ? `${run.name}: ` : ""}${path} (${bytes(size)})`, size]));
    const before = this.choice.value;
    this.choice.replaceChildren(...options.map(([value, title]) => h("option", { value }, title)));
    const first = options.find(([, , size]) => size > 0) ?? options[0];
    this.choice.value = before && options.some(([value]) => value === before) ? before : first?.[0] ?? "";
    if (!options.length) return setText(this.note, "This run has written no logs.");
    return this.follow();
  }

  async open() {
    this.offset = undefined;
    this.lines = "";
    await this.follow();
    this.text.scrollTop = this.text.scrollHeight;
  }

  async follow() {
    const chosen = this.choice.value;
    const fresh = this.offset === undefined;
    const piece = await fetchLog(...JSON.parse(chosen), this.offset);
    if (chosen !== this.choice.value) return;
    this.lines = (piece.restarted ? "" : this.lines) + piece.text;
    if (this.lines.length > 400000) this.lines = this.lines.slice(-300000);
    if (fresh) setText(this.note, piece.size > piece.text.length ? "the end of a longer file" : "");
    if (piece.text || fresh || piece.restarted) this.show(fresh);
    this.offset = piece.offset;
  }

  show(toEnd) {
    const atEnd = toEnd || this.text.scrollTop + this.text.clientHeight >= this.text.scrollHeight - 30;
    const wanted = this.grep.value.toLowerCase();
    // eslint-disable-next-line no-control-regex
    const lines = this.lines.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "").split("\n");
    setText(this.text, (wanted ? lines.filter((line) => line.toLowerCase().includes(wanted)) : lines).join("\n") || "(empty)");
    if (atEnd) this.text.scrollTop = this.text.scrollHeight;
  }
}

class VideosPanel {
  constructor(runs) {
    this.runs = runs;
    this.element = h("div", { class: "cards" });
    this.shown = "";
  }

  update() {
    const videos = this.runs.flatMap((run) => run.facts.videos.map((video) => ({ ...video, run })));
    const shown = videos.map(({ path, run }) => `${run.id}/${path}`).join("\n");
    if (shown === this.shown && shown) return;
    this.shown = shown;
    if (!videos.length) {
      this.element.replaceChildren(h("p", { class: "empty" }, "No videos in this run's folder. ",
        h("code", {}, "ding eval <run folder> --replay-path <run folder>/videos"), " makes some."));
      return;
    }
    this.element.replaceChildren(...videos.map(({ path, size, run }) => {
      const source = videoAddress(run.id, path);
      const media = path.toLowerCase().endsWith(".gif") ? h("img", { src: source, alt: path, loading: "lazy" })
        : h("video", { src: source, controls: true, preload: "metadata", muted: true, loop: true });
      return h("figure", { class: "card" }, media, h("figcaption", {}, h("small", {}, `${this.runs.length > 1 ? `${run.name}: ` : ""}${path}, ${bytes(size)}`)));
    }));
  }
}
