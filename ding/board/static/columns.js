// The columns of the list, which users select: facts of runs, and any key of their configs.

import { ago, badge, count, duration, h, number, sparkline } from "./dom.js";
import { endOf } from "./filter.js";

export const STATUSES = ["running", "converged", "finished", "interrupted", "failed", "killed", "unreadable"];
const MOST_OFFERED = 60;

const elapsed = (run) =>
  run.seconds ?? (run.status === "running" ? (Date.now() - Date.parse(run.started)) / 1000 : null);
const speed = (run) => {
  const seconds = run.status === "running" ? run.last_time - Date.parse(run.started) / 1000 : run.seconds;
  return run.envstep && seconds > 0 ? run.envstep / seconds : null;
};

const AGES = new Set(["time", "started", "ended"]); // they change with time
// key, title, value to sort by, content of a cell, whether larger values come first
const FACTS = [
  ["name", "Run", (run) => run.folder],
  ["status", "Status", (run) => STATUSES.indexOf(run.status), (run) => badge(run.status)],
  ["seed", "Seed", (run) => run.seed, (run) => `${run.seed ?? "–"}`],
  ["curve", "Last return", (run) => run.last_return, (run) => [
    sparkline(run.curve, `returns, the last one ${number(run.last_return)}`), h("span", {}, number(run.last_return, 3))], true],
  ["return", "Best return", (run) => run.best_return, (run) => number(run.best_return), true],
  ["steps", "Env steps", (run) => run.envstep, (run) => count(run.envstep), true],
  ["speed", "Steps/s", speed, (run) => count(speed(run)), true],
  ["time", "Took", elapsed, (run) => duration(elapsed(run)), true],
  ["started", "Started", (run) => run.started, (run) => ago(run.started), true],
  ["reason", "End", endOf, endOf],
  ["updates", "Updates", (run) => run.train_iter, (run) => count(run.train_iter), true],
  ["ended", "Ended", (run) => run.ended, (run) => ago(run.ended), true],
  ["host", "Host", (run) => run.host, (run) => run.host || "–"],
  ["group", "Group", (run) => run.group, (run) => run.group],
].map(([key, title, value, show, downwards = false]) => ({ key, title, value, show, downwards, isFact: true, ages: AGES.has(key) }));

const DEFAULT = ["name", "status", "seed", "curve", "return", "steps", "speed", "time", "started", "reason"];

// The value by which a config value, given as Python source, is sorted: a number or a text.
const plainValue = (text) => {
  if (text === undefined) return null;
  return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text.replace(/^'(.*)'$/, "$1");
};

const configColumn = (key) => ({
  key, title: key.split(".").at(-1), isFact: false, downwards: false,
  value: (run, config) => plainValue(config?.[key]),
  show: (run, config) => {
    const value = plainValue(config?.[key]);
    return typeof value === "number" ? number(value) : `${value ?? "–"}`;
  },
});

export const columnOf = (key) => FACTS.find((column) => column.key === key) ?? configColumn(key);

// The displayed columns; `keys` is null for the default ones.
export class Columns {
  constructor(text, changed) {
    this.keys = text ? ["name", ...text.split(",").filter((key) => key && key !== "name")] : null;
    this.changed = changed;
    this.search = h("input", { type: "search", placeholder: "Any key of the configs", "aria-label": "Search columns", oninput: () => this.offer() });
    this.choices = h("div", { class: "choices" });
    this.element = h("details", { class: "menu", ontoggle: () => { if (this.element.open) changed(); },
      onfocusout: ({ relatedTarget }) => { if (relatedTarget && !this.element.contains(relatedTarget)) this.element.open = false; } },
      h("summary", {}, "Columns"), h("div", { class: "sheet" }, this.search, this.choices,
        h("button", { type: "button", class: "quiet", onclick: () => this.choose(null) }, "The usual ones")));
    this.configs = {};
  }

  shown() {
    return (this.keys ?? DEFAULT).map(columnOf);
  }

  get isChosen() {
    return this.keys !== null;
  }

  get needsConfigs() {
    return this.element.open || (this.keys ?? []).some((key) => !columnOf(key).isFact);
  }

  get text() {
    return this.keys ? this.keys.slice(1).join() : "";
  }

  offerConfigs(configs) {
    this.configs = configs;
    this.offer();
  }

  // Keys that differ between runs come first, because users usually look for these.
  offer() {
    const wanted = this.search.value.toLowerCase();
    const values = new Map();
    for (const config of Object.values(this.configs)) {
      for (const [key, value] of Object.entries(config)) values.set(key, (values.get(key) ?? new Set()).add(value));
    }
    const differing = [...values.keys()].filter((key) => !key.includes(",")).sort((a, b) => (values.get(b).size > 1) - (values.get(a).size > 1));
    const now = this.keys ?? DEFAULT;
    const keys = [...FACTS.slice(1).map(({ key }) => key), ...now.filter((key) => !columnOf(key).isFact), ...differing];
    const found = [...new Set(keys)].filter((key) => `${key} ${columnOf(key).title}`.toLowerCase().includes(wanted));
    this.choices.replaceChildren(...found.slice(0, MOST_OFFERED).map((key) => {
      const box = h("input", { type: "checkbox", checked: now.includes(key), onchange: () => this.choose(box.checked ? withColumn(now, key) : now.filter((one) => one !== key)) });
      const { isFact, title } = columnOf(key);
      return h("label", {}, box, isFact ? title : h("code", {}, key));
    }), found.length > MOST_OFFERED ? h("small", {}, `and ${found.length - MOST_OFFERED} more: search`) : "");
  }

  choose(keys) {
    this.keys = keys;
    this.offer();
    this.changed();
  }
}

// The reason of the end stays last, because it takes the rest of the width.
function withColumn(keys, key) {
  return keys.at(-1) === "reason" ? [...keys.slice(0, -1), key, "reason"] : [...keys, key];
}

export function cellOf(column, run, config) {
  const content = column.show(run, config);
  const cell = h("td", { class: column.isFact ? column.key : "value", "data-title": column.title }, content);
  if (column.key === "reason") cell.title = content;
  if (!column.isFact) cell.title = config?.[column.key] ?? "";
  if (column.key === "started" || column.key === "ended") cell.title = run[column.key] ?? "";
  return cell;
}
