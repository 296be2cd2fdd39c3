// Which keys of the configs matter, for the trials of a sweep or any runs: parallel coordinates and a scatter.

import { h, number, setText, svg } from "./dom.js";
import { fetchConfigs, fetchImportance, fetchRuns } from "./data.js";
import { columnOf, plainValue } from "./columns.js";
import { filterOf } from "./filter.js";

const RESULTS = [["last_return", "last return"], ["best_return", "best return"], ["envstep", "env steps"], ["seconds", "seconds"]];
const MOST_AXES = 8, MOST_TICKS = 7;
// From low to high: ever lighter, and visible on light and dark.
const SCALE = [[104, 70, 160], [62, 110, 170], [33, 150, 145], [94, 201, 98], [235, 205, 40]];

const address = (id) => `#/runs/${encodeURIComponent(id)}`;

export class KeysView {
  constructor(query) {
    this.search = h("input", { type: "search", placeholder: "Runs: words, status:converged lr>1e-4  ( / )", "aria-label": "Filter runs", value: query.get("q") ?? "", oninput: () => this.changed() });
    this.result = h("select", { "aria-label": "Result", onchange: () => this.changed() }, RESULTS.map(([name, title]) => h("option", { value: name }, title)));
    this.result.value = query.get("y") ?? "last_return";
    if (!this.result.value) this.result.value = "last_return";
    this.key = query.get("x") ?? "";
    this.total = h("span", { class: "total", role: "status" });
    this.note = h("p", { class: "empty", hidden: true });
    this.list = h("tbody");
    this.lines = h("div", { class: "drawing" });
    this.scatter = h("div", { class: "drawing" });
    this.scatterTitle = h("h3");
    this.under = h("p", { class: "under", role: "status" });
    this.ranges = new Map();
    this.content = h("div", { class: "keys-view" },
      h("figure", { class: "card wide" }, h("figcaption", {}, h("h3", {}, "Settings and results"), h("small", {}, "a line is a run; drag along an axis to keep a part, click it to keep all")), this.lines, this.under),
      h("section", { class: "card" }, h("h3", {}, "Importance"), h("table", { class: "importance" }, this.list)),
      h("figure", { class: "card" }, h("figcaption", {}, this.scatterTitle), this.scatter));
    this.element = h("div", {}, h("a", { class: "back", href: "#/" }, "← all runs"), h("h1", {}, "Which settings matter"),
      h("div", { class: "tools" }, this.search, h("label", {}, "result ", this.result), this.total), this.note, this.content);
    this.sized = new ResizeObserver(() => this.draw());
    this.sized.observe(this.lines);
  }

  close() {
    this.sized.disconnect();
  }

  themed() {
    this.draw();
  }

  changed() {
    this.shown = undefined;
    this.update();
  }

  async update() {
    const { runs } = await fetchRuns();
    const ids = runs.map(({ id }) => id).join("\n");
    if (ids !== this.ids) this.configs = await fetchConfigs();
    this.ids = ids;
    const result = this.result.value;
    const { holds } = filterOf(this.search.value);
    const kept = runs.filter((run) => holds(run, this.configs[run.id]));
    this.runs = kept.filter((run) => typeof run[result] === "number");
    const shown = JSON.stringify([this.search.value, result, this.runs.map((run) => [run.id, run[result]])]);
    if (shown === this.shown) return;
    this.shown = shown;
    if (this.element.isConnected) this.keepAddress();
    this.keys = this.runs.length > 1 ? (await fetchImportance(Object.fromEntries(this.runs.map((run) => [run.id, run[result]])))).keys : [];
    setText(this.total, `${this.runs.length} runs` + (kept.length > this.runs.length ? `, ${kept.length - this.runs.length} without a result left out` : ""));
    this.note.hidden = this.runs.length > 1 && this.keys.length > 0;
    this.content.hidden = !this.note.hidden;
    setText(this.note, this.runs.length < 2 ? "Fewer than two runs with a result fit the filter." : "The configs of these runs do not differ.");
    if (!this.keys.some(({ key }) => key === this.key)) this.key = this.keys[0]?.key ?? "";
    this.showList();
    this.draw();
  }

  keepAddress() {
    const query = new URLSearchParams();
    for (const [name, value] of [["q", this.search.value], ["y", this.result.value === "last_return" ? "" : this.result.value], ["x", this.key]]) {
      if (value) query.set(name, value);
    }
    history.replaceState(null, "", `#/keys${query.size ? `?${query}` : ""}`);
  }

  showList() {
    this.list.replaceChildren(...this.keys.map(({ key, importance }) => h("tr", { "aria-selected": String(key === this.key) },
      h("th", { scope: "row" }, h("button", { type: "button", title: key, onclick: () => this.choose(key) }, key)),
      h("td", {}, h("meter", { min: 0, max: 1, value: importance, "aria-hidden": "true" })),
      h("td", {}, `${Math.round(100 * importance)} %`))));
  }

  choose(key) {
    this.key = key;
    this.keepAddress();
    this.showList();
    this.draw();
  }

  draw() {
    if (!this.keys?.length || this.content.hidden || !this.lines.clientWidth) return;
    const title = RESULTS.find(([name]) => name === this.result.value)[1];
    const result = axisOf(this.result.value, title, this.runs.map((run) => run[this.result.value]));
    const axes = this.keys.slice(0, MOST_AXES).map(({ key }) => this.axisOfKey(key)).reverse();
    const points = this.runs.map((run, i) => ({ run, at: [...axes, result].map((axis) => axis.at(axis.values[i])), colour: colourOf(result.at(result.values[i])) }));
    points.sort((a, b) => a.at.at(-1) - b.at.at(-1)); // the best are drawn last
    this.lines.replaceChildren(this.coordinates([...axes, result], points));
    const axis = this.axisOfKey(this.key);
    setText(this.scatterTitle, `${title} over ${this.key}`);
    this.scatter.replaceChildren(this.plot(axis, result));
  }

  axisOfKey(key) {
    return axisOf(key, columnOf(key).title, this.runs.map((run) => plainValue(this.configs[run.id]?.[key])));
  }

  coordinates(axes, points) {
    const width = this.lines.clientWidth, height = 320, top = 30, bottom = height - 14, left = 46, right = width - 74;
    const x = (i) => left + (i * (right - left)) / (axes.length - 1);
    const y = (at) => bottom - at * (bottom - top);
    const inside = ({ at }) => axes.every(({ key }, i) => !this.ranges.has(key) || (at[i] >= this.ranges.get(key)[0] && at[i] <= this.ranges.get(key)[1]));
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${points.length} runs over ${axes.map(({ title }) => title).join(", ")}` });
    for (const point of [...points.filter((one) => !inside(one)), ...points.filter(inside)]) {
      const line = svg("polyline", { points: point.at.map((at, i) => `${x(i).toFixed(1)},${y(at).toFixed(1)}`).join(" "), stroke: point.colour, class: inside(point) ? "line-of" : "line-of outside" });
      drawing.append(this.follow(line, point.run, axes));
    }
    axes.forEach((axis, i) => {
      const isLast = i === axes.length - 1;
      drawing.append(svg("text", { x: x(i), y: 12, class: "axis-title", "text-anchor": i === 0 ? "start" : isLast ? "end" : "middle", dx: i === 0 ? -left + 4 : isLast ? 70 : 0 }, shorten(axis.title, (right - left) / (axes.length - 1) / 8)),
        svg("line", { x1: x(i), x2: x(i), y1: top, y2: bottom, class: "axis" }));
      for (const [at, text] of axis.ticks) drawing.append(svg("text", { x: x(i) + 5, y: y(at) + 4, class: "tick" }, shorten(text, 14)));
      const range = this.ranges.get(axis.key);
      if (range) drawing.append(svg("rect", { x: x(i) - 6, width: 12, y: y(range[1]), height: y(range[0]) - y(range[1]), class: "range" }));
      const grip = svg("rect", { x: x(i) - 10, width: 20, y: top - 8, height: bottom - top + 16, class: "grip" });
      grip.addEventListener("pointerdown", (event) => this.brush(event, axis.key, drawing, (place) => Math.min(1, Math.max(0, (bottom - place) / (bottom - top)))));
      drawing.append(grip);
    });
    return drawing;
  }

  // Dragging along an axis keeps the runs in that part of it; a click keeps all again.
  brush(event, key, drawing, atOf) {
    const placeOf = ({ clientY }) => atOf(clientY - drawing.getBoundingClientRect().top);
    const from = placeOf(event), end = (last) => {
      const to = placeOf(last);
      if (Math.abs(to - from) < 0.02) this.ranges.delete(key);
      else this.ranges.set(key, [Math.min(from, to), Math.max(from, to)]);
      this.draw();
    };
    addEventListener("pointerup", end, { once: true });
    event.preventDefault();
  }

  plot(axis, result) {
    const width = this.scatter.clientWidth, height = 300, top = 12, bottom = height - 38, left = 56, right = width - 24;
    const x = (at) => left + at * (right - left), y = (at) => bottom - at * (bottom - top);
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${result.title} over ${axis.key}` },
      svg("line", { x1: left - 8, x2: right + 8, y1: bottom + 6, y2: bottom + 6, class: "axis" }),
      svg("line", { x1: left - 8, x2: left - 8, y1: top - 6, y2: bottom + 6, class: "axis" }));
    for (const [at, text] of axis.ticks) drawing.append(svg("text", { x: x(at), y: bottom + 20, class: "tick", "text-anchor": "middle" }, shorten(text, 12)));
    for (const [at, text] of result.ticks) drawing.append(svg("text", { x: left - 13, y: y(at) + 4, class: "tick", "text-anchor": "end" }, text));
    drawing.append(svg("text", { x: (left + right) / 2, y: height - 4, class: "tick", "text-anchor": "middle" }, `${axis.key}${axis.isLog ? " (log)" : ""}`));
    this.runs.forEach((run, i) => {
      const at = result.at(result.values[i]);
      const dot = svg("circle", { cx: x(axis.at(axis.values[i])), cy: y(at), r: 5, fill: colourOf(at), class: "dot-of" });
      drawing.append(this.follow(dot, run, [axis, result]));
    });
    return drawing;
  }

  // Shows which run is under the pointer, and opens it with a click.
  follow(mark, run, axes) {
    const i = this.runs.indexOf(run);
    const words = `${run.id}: ${axes.map(({ title, values }) => `${title} ${shown(values[i])}`).join(", ")}`;
    mark.append(svg("title", {}, words));
    mark.addEventListener("pointerenter", () => setText(this.under, words));
    mark.addEventListener("click", () => { location.hash = address(run.id); });
    return mark;
  }
}

const shown = (value) => (value === null ? "none" : typeof value === "number" ? number(value) : `${value}`);

const shorten = (text, most) => (text.length > most ? `${text.slice(0, Math.max(3, Math.floor(most) - 1))}…` : text);

// Places from 0 to 1: of numbers on a line, logarithmic if they span more than a factor of 30; of other values side by side.
function axisOf(key, title, values) {
  const distinct = [...new Set(values)];
  const places = new Map();
  const low = Math.min(...distinct), high = Math.max(...distinct);
  const isLine = distinct.every((value) => typeof value === "number") && high > low;
  const isLog = isLine && low > 0 && high / low > 30;
  const scale = isLog ? Math.log : (value) => value;
  const back = isLog ? Math.exp : (value) => value;
  if (!isLine) distinct.sort((a, b) => String(a).localeCompare(String(b), "en", { numeric: true }));
  distinct.forEach((value, i) => places.set(value, isLine ? (scale(value) - scale(low)) / (scale(high) - scale(low)) : distinct.length > 1 ? i / (distinct.length - 1) : 0.5));
  const marks = isLine && distinct.length > 5 ? [0, 0.25, 0.5, 0.75, 1].map((at) => [at, number(back(scale(low) + at * (scale(high) - scale(low))), 2)])
    : distinct.filter((_, i) => i % Math.ceil(distinct.length / MOST_TICKS) === 0).map((value) => [places.get(value), shown(value)]);
  return { key, title, values, isLog, ticks: marks, at: (value) => places.get(value) };
}

function colourOf(at) {
  const place = at * (SCALE.length - 1), i = Math.min(Math.floor(place), SCALE.length - 2);
  return `rgb(${SCALE[i].map((from, n) => Math.round(from + (place - i) * (SCALE[i + 1][n] - from))).join(" ")})`;
}
