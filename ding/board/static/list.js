// The list of runs: filter, sort, group, select runs to compare.

import { h, number, setText } from "./dom.js";
import { Columns, STATUSES, cellOf, columnOf } from "./columns.js";
import { fetchConfigs, fetchRuns, groupBy, spreadOf } from "./data.js";
import { filterOf } from "./filter.js";

export const address = (ids, tab) =>
  `#/runs/${ids.map(encodeURIComponent).join(",")}${tab && tab !== "curves" ? `/${tab}` : ""}`;

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
    this.order = h("select", { "aria-label": "Sort by", class: "narrow", onchange: () => this.sortBy(this.order.value) });
    this.columns = new Columns(query.get("cols"), () => this.show());
    const group = h("input", { type: "checkbox", checked: this.grouped, onchange: () => {
      this.grouped = group.checked;
      localStorage.setItem("group", this.grouped ? "1" : "0");
      this.show();
    } });
    this.total = h("span", { class: "total", role: "status" });
    this.heads = new Map();
    this.head = h("tr");
    this.body = h("tbody");
    this.table = h("table", { class: "runs" }, h("thead", {}, this.head), this.body);
    this.compare = h("a", { class: "primary", href: "#/" });
    this.bar = h("div", { class: "pickbar", hidden: true }, this.compare,
      h("button", { type: "button", class: "quiet", onclick: () => this.pickNone() }, "Clear"));
    this.empty = h("p", { class: "empty", hidden: true });
    this.element = h("div", { class: "list" },
      h("h1", { class: "hidden" }, "Runs"),
      h("div", { class: "tools" }, this.search, this.status, this.order,
        h("label", { class: "check" }, group, " group by config"), this.columns.element, this.total),
      h("div", { class: "frame" }, this.table), this.empty, this.bar);
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

  // Configs are requested when a filter needs them, and again when the runs change.
  needConfigs() {
    const ids = this.runs.map((run) => run.id).join();
    if (this.configsOf === ids) return;
    this.configsOf = ids;
    fetchConfigs().then((configs) => {
      this.configs = configs;
      this.columns.offerConfigs(configs);
      this.show();
    }, () => { this.configsOf = undefined; });
  }

  // The URL contains the state of the view, so that it can be shared and restored.
  keepAddress() {
    const query = new URLSearchParams();
    for (const [name, value] of [["q", this.search.value], ["status", this.status.value],
      ["sort", this.sort === "started" ? "" : this.sort], ["reverse", this.reversed ? "1" : ""], ["group", this.grouped ? "1" : ""], ["cols", this.columns.text]]) {
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
    const { holds, needsConfigs } = filterOf(this.search.value);
    const { value, downwards, isFact } = columnOf(this.sort);
    if (needsConfigs || this.columns.needsConfigs || !isFact) this.needConfigs();
    const sign = (downwards ? -1 : 1) * (this.reversed ? -1 : 1);
    return this.runs
      .filter((run) => !this.status.value || run.status === this.status.value)
      .filter((run) => holds(run, this.configs?.[run.id]))
      .sort((a, b) => {
        const [x, y] = [a, b].map((run) => value(run, this.configs?.[run.id]));
        const [noX, noY] = [x === null || x === undefined, y === null || y === undefined];
        if (noX || noY) return noX - noY; // unknown values come last
        return sign * (typeof x === "string" || typeof y === "string" ? String(x).localeCompare(String(y), "en", { numeric: true }) : x - y);
      });
  }

  show() {
    if (this.element.isConnected) this.keepAddress();
    const runs = this.kept();
    const known = new Set(this.runs.map((run) => run.id));
    for (const id of this.picked) if (!known.has(id)) this.picked.delete(id);
    for (const id of this.rows.keys()) if (!known.has(id)) this.rows.delete(id);
    this.showHeads();
    for (const [key, head] of this.heads) {
      const order = columnOf(key).downwards !== this.reversed ? "descending" : "ascending";
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
      "No runs here yet. Start one: ding train CartPole-v1 dqn");
    this.showBar();
  }

  showHeads() {
    const shown = this.columns.shown();
    const keys = shown.map(({ key }) => key).join();
    if (this.headKeys === keys) return;
    this.headKeys = keys;
    this.shown = shown;
    this.rows.clear();
    this.heads = new Map(shown.map(({ key, title, isFact }) => [key, h("th", { scope: "col", class: isFact ? key : "value", title: isFact ? null : key },
      h("button", { type: "button", onclick: () => this.sortBy(key) }, title))]));
    this.head.replaceChildren(h("th", { scope: "col", class: "pick" }, h("span", { class: "hidden" }, "Pick")), ...this.heads.values());
    this.table.classList.toggle("chosen", this.columns.isChosen);
    const orders = [...shown, ...(shown.some(({ key }) => key === this.sort) ? [] : [columnOf(this.sort)])];
    this.order.replaceChildren(...orders.map(({ key, title }) => h("option", { value: key }, `sort: ${title.toLowerCase()}`)));
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
      const open = h("a", { href: address([run.id]), title: run.id }, run.id === "." ? run.name : run.id);
      row = h("tr", { class: "run" }, h("td", { class: "pick" }, pick), h("td", { class: "name", "data-title": "Run" }, open));
      row.addEventListener("click", (event) => {
        if (!event.target.closest("a, input, td.pick") && !getSelection().toString()) open.click();
      });
      row.parts = { box: pick, cells: new Map() };
      this.rows.set(run.id, row);
    }
    const { box, cells } = row.parts;
    box.checked = this.picked.has(run.id);
    const config = this.configs?.[run.id], facts = JSON.stringify([run, Boolean(config)]);
    const isSame = row.parts.facts === facts;
    row.parts.facts = facts;
    for (const column of this.shown.slice(1)) {
      if (isSame && !column.ages) continue;
      const cell = cellOf(column, run, config), before = cells.get(column.key);
      if (before?.innerHTML === cell.innerHTML) continue;
      cells.set(column.key, cell);
      if (before) before.replaceWith(cell);
      else row.append(cell);
    }
    return row;
  }

  groupRow(group, members, nth) {
    // Not by the best return: the maximum over many seeds and evaluations is biased.
    const last = members.map((run) => run.last_return).filter((value) => value !== null);
    const [mean, spread] = spreadOf(last);
    const closed = this.closedGroups.has(group);
    const facts = `${this.headKeys} ${closed} ${nth} ${members.map((run) => run.id)} ${mean} ${spread}`;
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
    const row = h("tr", { class: "group" }, h("td", { colspan: this.shown.length + 1 }, toggle, h("span", {}, words),
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
