// The list of runs: filter, sort, group, pick some to compare.

import { ago, badge, count, duration, h, number, setText, sparkline } from "./dom.js";
import { fetchConfigs, fetchRuns, groupBy, spreadOf } from "./data.js";

const STATUSES = ["running", "converged", "finished", "interrupted", "failed", "killed", "unreadable"];

const speed = (run) => {
  const seconds = run.status === "running" ? run.last_time - Date.parse(run.started) / 1000 : run.seconds;
  return run.envstep && seconds > 0 ? run.envstep / seconds : null;
};
const elapsed = (run) =>
  run.seconds ?? (run.status === "running" ? (Date.now() - Date.parse(run.started)) / 1000 : null);

const endOf = (run) => [run.reason, run.problem].filter(Boolean).join("; ");

// key, title, value to sort by, whether more is first
const COLUMNS = [
  ["name", "Run", (run) => run.folder, false],
  ["status", "Status", (run) => STATUSES.indexOf(run.status), false],
  ["seed", "Seed", (run) => run.seed, false],
  ["curve", "Last return", (run) => run.last_return, true],
  ["return", "Best return", (run) => run.best_return, true],
  ["steps", "Env steps", (run) => run.envstep, true],
  ["speed", "Steps/s", speed, true],
  ["time", "Took", elapsed, true],
  ["started", "Started", (run) => run.started, true],
  ["reason", "End", endOf, false],
];

export const address = (ids, tab) =>
  `#/runs/${ids.map(encodeURIComponent).join(",")}${tab && tab !== "curves" ? `/${tab}` : ""}`;

const SHORT = { lr: "learning_rate", env: "env_id" };

// `status:failed seed:3 lr>1e-4 -smoke`: words and conditions on facts of a run and keys of its config.
function condition(token) {
  const negated = token.startsWith("-") && token.length > 1;
  const text = negated ? token.slice(1) : token;
  const [, name, sign, wanted] = /^([\w.]+)(:|=|>=|<=|>|<)(.+)$/.exec(text) ?? [];
  const fits = name === undefined ? (run) => textOf(run).includes(text)
    : (run, config) => valuesOf(run, config, SHORT[name] ?? name).some((value) => compares(value, sign, wanted));
  return { needsConfig: name !== undefined, holds: (run, config) => fits(run, config) !== negated };
}

const textOf = (run) => `${run.id} ${run.status} seed ${run.seed} ${endOf(run)}`.toLowerCase();

function valuesOf(run, config, name) {
  const facts = { status: run.status, seed: run.seed, name: run.folder, group: run.name, best: run.best_return, last: run.last_return, steps: run.envstep, end: endOf(run) };
  if (name in facts) return [facts[name]];
  return Object.entries(config ?? {}).filter(([key]) => key.toLowerCase() === name || key.toLowerCase().endsWith(`.${name}`)).map(([, value]) => value);
}

function compares(value, sign, wanted) {
  const [a, b] = [Number(value), Number(wanted)];
  if (sign === ":" || sign === "=") {
    const plain = `${value ?? ""}`.toLowerCase().replace(/^['"]|['"]$/g, "");
    return value !== null && !Number.isNaN(a) && !Number.isNaN(b) ? a === b : plain.includes(wanted);
  }
  if (value === null || value === undefined || Number.isNaN(a) || Number.isNaN(b)) return false;
  return { ">": a > b, "<": a < b, ">=": a >= b, "<=": a <= b }[sign];
}

export class RunListView {
  constructor(query, state) {
    this.state = state;
    this.runs = [];
    this.rows = new Map();
    this.groupRows = new Map();
    this.picked = new Set();
    this.closedGroups = new Set();
    this.sort = query.get("sort") ?? "started";
    this.reversed = query.get("reverse") === "1";
    this.grouped = (query.get("group") ?? localStorage.getItem("group")) === "1";
    this.search = h("input", {
      type: "search", placeholder: "Filter: words, status:failed lr>1e-4 -smoke  ( / )", title: "Words, and conditions on status, seed, name, best, last, steps, end or any config key; - excludes",
      "aria-label": "Filter runs", value: query.get("q") ?? "", oninput: () => this.show(),
    });
    this.status = h("select", { "aria-label": "Status", onchange: () => this.show() },
      h("option", { value: "" }, "any status"), STATUSES.map((s) => h("option", { value: s }, s)));
    this.status.value = query.get("status") ?? "";
    this.order = h("select", { "aria-label": "Sort by", class: "narrow", onchange: () => this.sortBy(this.order.value) },
      COLUMNS.map(([key, title]) => h("option", { value: key }, `sort: ${title.toLowerCase()}`)));
    const group = h("input", { type: "checkbox", checked: this.grouped, onchange: () => {
      this.grouped = group.checked;
      localStorage.setItem("group", this.grouped ? "1" : "0");
      this.show();
    } });
    this.total = h("span", { class: "total", role: "status" });
    this.heads = new Map(COLUMNS.map(([key, title]) => [key,
      h("th", { scope: "col", class: key }, h("button", { type: "button", onclick: () => this.sortBy(key) }, title))]));
    this.body = h("tbody");
    this.compare = h("a", { class: "primary", href: "#/" });
    this.bar = h("div", { class: "pickbar", hidden: true }, this.compare,
      h("button", { type: "button", class: "quiet", onclick: () => this.pickNone() }, "Clear"));
    this.empty = h("p", { class: "empty", hidden: true });
    this.element = h("div", { class: "list" },
      h("h1", { class: "hidden" }, "Runs"),
      h("div", { class: "tools" }, this.search, this.status, this.order,
        h("label", { class: "check" }, group, " group by config"), this.total),
      h("table", { class: "runs" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "pick" }, h("span", { class: "hidden" }, "Pick")),
          ...this.heads.values())), this.body),
      this.empty, this.bar);
  }

  async update() {
    const answer = await fetchRuns();
    if (answer.single && answer.runs.length) {
      this.state.single = true;
      location.replace(address([answer.runs[0].id]));
      return;
    }
    this.runs = answer.runs;
    this.cut = answer.cut;
    setText(document.getElementById("where"), answer.root);
    this.show();
  }

  // Configs are asked for when a filter needs them, and again when there are other runs.
  needConfigs() {
    const ids = this.runs.map((run) => run.id).join();
    if (this.configsOf === ids) return;
    this.configsOf = ids;
    fetchConfigs().then((configs) => {
      this.configs = configs;
      this.show();
    }, () => { this.configsOf = undefined; });
  }

  // The address keeps what is shown, so that it can be shared and gone back to.
  keepAddress() {
    const query = new URLSearchParams();
    for (const [name, value] of [["q", this.search.value], ["status", this.status.value],
      ["sort", this.sort === "started" ? "" : this.sort], ["reverse", this.reversed ? "1" : ""], ["group", this.grouped ? "1" : ""]]) {
      if (value) query.set(name, value);
    }
    history.replaceState(null, "", `#/${query.size ? `?${query}` : ""}`);
  }

  sortBy(key) {
    this.reversed = this.sort === key && !this.reversed;
    this.sort = key;
    this.show();
  }

  pickNone() {
    this.picked.clear();
    this.show();
  }

  kept() {
    const conditions = this.search.value.toLowerCase().split(/\s+/).filter(Boolean).map(condition);
    if (conditions.some(({ needsConfig }) => needsConfig)) this.needConfigs();
    const [, , value, downwards] = COLUMNS.find(([key]) => key === this.sort);
    const sign = (downwards ? -1 : 1) * (this.reversed ? -1 : 1);
    return this.runs
      .filter((run) => !this.status.value || run.status === this.status.value)
      .filter((run) => conditions.every(({ holds }) => holds(run, this.configs?.[run.id])))
      .sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        const [noX, noY] = [x === null || x === undefined, y === null || y === undefined];
        if (noX || noY) return noX - noY; // what is not known comes last
        return sign * (typeof x === "string" ? String(x).localeCompare(String(y), "en", { numeric: true }) : x - y);
      });
  }

  show() {
    if (this.element.isConnected) this.keepAddress();
    const runs = this.kept();
    const known = new Set(this.runs.map((run) => run.id));
    for (const id of this.picked) if (!known.has(id)) this.picked.delete(id);
    for (const id of this.rows.keys()) if (!known.has(id)) this.rows.delete(id);
    for (const [key, head] of this.heads) {
      const [, , , downwards] = COLUMNS.find(([name]) => name === key);
      const order = downwards !== this.reversed ? "descending" : "ascending";
      if (key === this.sort) head.setAttribute("aria-sort", order);
      else head.removeAttribute("aria-sort");
    }
    this.order.value = this.sort;
    const wanted = [];
    if (this.grouped) {
      const names = new Map();
      for (const [group, members] of groupBy(runs, (run) => run.group)) {
        const nth = (names.get(members[0].name) ?? 0) + 1;
        names.set(members[0].name, nth);
        wanted.push(this.groupRow(group, members, nth));
        if (!this.closedGroups.has(group)) wanted.push(...members.map((run) => this.row(run)));
      }
    } else {
      wanted.push(...runs.map((run) => this.row(run)));
    }
    if (wanted.length !== this.body.children.length || wanted.some((row, i) => row !== this.body.children[i])) {
      const focused = document.activeElement;
      this.body.replaceChildren(...wanted);
      if (focused?.isConnected && this.body.contains(focused)) focused.focus();
    }
    const running = this.runs.filter((run) => run.status === "running").length;
    setText(this.total, `${runs.length === this.runs.length ? "" : `${runs.length} of `}${this.runs.length} runs` +
      `${running ? `, ${running} running` : ""}${this.cut ? " (too many folders: not all were looked into)" : ""}`);
    this.empty.hidden = runs.length > 0;
    setText(this.empty, this.runs.length ? "No run fits the filter." :
      "No runs here yet. Start one: ding -e CartPole-v1 -p dqn");
    this.showBar();
  }

  showBar() {
    this.bar.hidden = this.picked.size === 0;
    setText(this.compare, this.picked.size === 1 ? "Open 1 run" : `Compare ${this.picked.size} runs`);
    this.compare.href = address([...this.picked]);
  }

  row(run) {
    let row = this.rows.get(run.id);
    if (!row) {
      const pick = h("input", { type: "checkbox", "aria-label": `Pick ${run.id}`, onchange: () => {
        if (pick.checked) this.picked.add(run.id);
        else this.picked.delete(run.id);
        this.showBar();
      } });
      const columns = new Map(COLUMNS.map(([key, title]) => [key, h("td", { class: key, "data-title": title })]));
      const open = h("a", { href: address([run.id]), title: run.id }, run.id === "." ? run.name : run.id);
      columns.get("name").append(open);
      row = h("tr", { class: "run" }, h("td", { class: "pick" }, pick), ...columns.values());
      row.addEventListener("click", (event) => {
        if (!event.target.closest("a, input, td.pick") && !getSelection().toString()) open.click();
      });
      row.parts = { box: pick, cells: columns, shown: "" };
      this.rows.set(run.id, row);
    }
    const { box, cells } = row.parts;
    box.checked = this.picked.has(run.id);
    const facts = JSON.stringify(run);
    if (row.parts.shown !== facts) {
      row.parts.shown = facts;
      cells.get("status").replaceChildren(badge(run.status));
      setText(cells.get("seed"), `${run.seed ?? "–"}`);
      setText(cells.get("return"), number(run.best_return));
      cells.get("curve").replaceChildren(
        sparkline(run.curve, `return, mean of the last five ${number(run.last_return)}`), h("span", {}, number(run.last_return, 3)));
      setText(cells.get("steps"), count(run.envstep));
      setText(cells.get("speed"), count(speed(run)));
      setText(cells.get("reason"), endOf(run));
      cells.get("reason").title = endOf(run);
      cells.get("started").title = run.started ?? "";
    }
    setText(cells.get("time"), duration(elapsed(run)));
    setText(cells.get("started"), ago(run.started));
    return row;
  }

  groupRow(group, members, nth) {
    // Not by the best: that of many seeds and evaluations is luck, too.
    const last = members.map((run) => run.last_return).filter((value) => value !== null);
    const [mean, spread] = spreadOf(last);
    const closed = this.closedGroups.has(group);
    const facts = `${closed} ${nth} ${members.map((run) => run.id)} ${mean} ${spread}`;
    const before = this.groupRows.get(group);
    if (before?.shown === facts) return before;
    const toggle = h("button", { type: "button", class: "fold", "aria-expanded": String(!closed), onclick: () => {
      if (closed) this.closedGroups.delete(group);
      else this.closedGroups.add(group);
      this.show();
      this.groupRows.get(group)?.querySelector("button").focus();
    } }, closed ? "▸ " : "▾ ", `${members[0].name}${nth > 1 ? ` (config ${nth})` : ""}`);
    const words = `${members.length} ${members.length === 1 ? "run" : "runs"}` +
      (last.length ? `, last return ${number(mean, 3)}${last.length > 1 ? ` ± ${number(spread, 3)}` : ""}` : "");
    const row = h("tr", { class: "group" }, h("td", { colspan: COLUMNS.length + 1 }, toggle, h("span", {}, words),
      members.length > 1 ? h("a", { href: address(members.slice(0, 20).map((run) => run.id)) }, "compare") : null));
    row.shown = facts;
    this.groupRows.set(group, row);
    return row;
  }

  key(event) {
    const rows = [...this.body.querySelectorAll("tr.run")];
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    if (event.key === "ArrowDown" || event.key === "j") rows[Math.min(at + 1, rows.length - 1)]?.querySelector("a").focus();
    else if ((event.key === "ArrowUp" || event.key === "k") && at > 0) rows[at - 1].querySelector("a").focus();
    else if (event.key === "x" && at >= 0) rows[at].parts.box.click();
    else if (event.key === "c" && this.picked.size) location.hash = this.compare.hash;
    else return;
    event.preventDefault();
  }
}
