// Curves of all scalars of one or several runs, drawn with uPlot.

import { h, number, setText, svg } from "./dom.js";
import { fetchMean, groupBy, smooth } from "./data.js";

// Ten colours and four line styles: twenty pairs that also differ in greyscale.
export const COLOURS = ["#3b6ef5", "#e8710a", "#12a36d", "#c2438f", "#8559e0", "#0f9fb5", "#d43f3a", "#9a7d0a", "#5f6f81", "#7a4a21"];
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];
export const lineOf = (i) => ({ colour: COLOURS[i % COLOURS.length], dash: DASHES[i % DASHES.length] });

const HEIGHT = 250, AXIS_WIDTH = 62, AXIS_HEIGHT = 46, MOST_KEYS = 8, MOST_GOALS = 3;

let library;
// Loaded with the first curve, not with the list.
function loadLibrary() {
  library ??= new Promise((resolve, reject) => {
    document.head.append(h("link", { rel: "stylesheet", href: "static/uplot.css" }));
    const script = h("script", { src: "static/uplot.js" });
    script.onload = () => resolve(window.uPlot);
    script.onerror = () => {
      library = undefined;
      script.remove();
      reject(new Error("the server did not send the library that draws curves"));
    };
    document.head.append(script);
  });
  return library;
}

const TITLES = {
  "evaluator/reward_mean": "Return in evaluations",
  "evaluator/return_mean": "Return in evaluations",
  "collector/reward_mean": "Return in training",
  "collector/return_mean": "Return in training",
  "collector_greedy/reward_mean": "Return in training, greedy",
  "learner/total_loss_avg": "Loss",
  "collector/avg_envstep_per_sec": "Collection speed",
  "learner/q_value_avg": "Q value",
  "learner/cur_lr_avg": "Learning rate",
  "learner/train_time_avg": "Time of an update",
  "collector/eps": "Exploration rate ε",
  "buffer/staleness_avg": "Age of samples",
  "usage/cpu_percent": "CPU",
  "usage/memory_mb": "Memory",
  "usage/gpu_memory_mb": "GPU memory",
};
const MAIN = ["evaluator/reward_mean", "evaluator/return_mean", "collector/reward_mean", "collector/return_mean"];
const SECTIONS = [
  ["Overview", (tag) => MAIN.includes(tag) || /^(evaluator_.*\/reward_mean|learner\/.*(loss|q_value|entropy)(_avg)?|collector\/.*envsteps?_per_s(ec)?|(?!collector_greedy).*\beps(ilon)?)$/.test(tag)],
  ["Learner", (tag) => tag.startsWith("learner")],
  ["Collector", (tag) => tag.startsWith("collector")],
  ["Evaluator", (tag) => tag.startsWith("evaluator")],
  ["Buffer", (tag) => tag.startsWith("buffer")],
  ["Machine", (tag) => tag.startsWith("usage/")],
  ["Other", () => true],
];
const UNITS = [
  [/(reward|return)_std/, "standard deviation of returns"], [/(reward|return)/, "return"],
  [/envsteps?_per_s/, "env steps / s"], [/samples?_per_s/, "samples / s"], [/episodes?_per_s/, "episodes / s"],
  [/(updates|iters?)_per_s/, "updates / s"], [/(time|duration|age_s)/, "seconds"], [/loss/, "loss"], [/lr/, "learning rate"],
  [/eps(ilon)?$/, "ε"], [/staleness/, "updates"], [/priority/, "priority"], [/use_/, "times used"],
  [/cpu_percent/, "% of a core"], [/_mb$/, "MB"], [/per_episode/, "per episode"], [/envstep|step_count/, "env steps"], [/episode_count/, "episodes"], [/sample_count/, "samples"], [/train_iter/, "updates"],
];
const EDGE = { stroke: null, spanGaps: true, points: { show: false } }; // edge of a band
const AXES = { step: "environment steps", iter: "updates" };

export const titleOf = (tag) => {
  if (TITLES[tag]) return TITLES[tag];
  const name = tag.slice(tag.indexOf("/") + 1).replace(/_avg$/, "").replace(/_/g, " ").replace(/^cur /, "");
  return name.charAt(0).toUpperCase() + name.slice(1);
};
const unitOf = (tag) => (UNITS.find(([pattern]) => pattern.test(tag.slice(tag.indexOf("/") + 1))) ?? [0, "value"])[1];

// `usage/cpu_percent/collector0` is a curve in the card of `usage/cpu_percent`.
const cardOf = (tag) => (tag.startsWith("usage/") ? tag.split("/", 2).join("/") : tag);
const partsOf = (run, card) => [...run.metrics.tags.keys()].filter((tag) => cardOf(tag) === card);

export class Charts {
  // runs: [{name, colour, group, metrics}]; `metrics` are filled later.
  constructor(runs) {
    this.runs = runs;
    this.cards = new Map();
    this.seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        target.isSeen = isIntersecting;
        if (isIntersecting) this.draw(target);
      }
    }, { rootMargin: "300px" });
    this.sized = new ResizeObserver((entries) => {
      for (const { target } of entries) target.card.drawn?.setSize({ width: target.clientWidth, height: HEIGHT });
    });
    const kept = JSON.parse(localStorage.getItem("curves") ?? "{}");
    const redraw = () => {
      localStorage.setItem("curves", JSON.stringify(
        { axis: this.axis.value, smoothing: this.smoothing.value, log: this.log.checked }));
      this.update(true);
    };
    this.axis = h("select", { "aria-label": "Horizontal axis", onchange: redraw },
      h("option", { value: "step" }, "env steps"), h("option", { value: "iter" }, "updates"), h("option", { value: "time" }, "time"));
    this.axis.value = kept.axis ?? "step";
    this.smoothing = h("input", { type: "range", min: 0, max: 0.98, step: 0.02, value: kept.smoothing ?? 0, oninput: redraw });
    this.log = h("input", { type: "checkbox", checked: kept.log, onchange: redraw });
    const groups = new Set(runs.map((run) => run.group));
    this.mean = h("input", { type: "checkbox", onchange: redraw, checked: groups.size < runs.length });
    this.filter = h("input", { type: "search", placeholder: "Filter curves  ( / )", "aria-label": "Filter curves", oninput: () => this.arrange() });
    this.note = h("p", { class: "note", hidden: true });
    this.sections = SECTIONS.map(([title], i) => {
      const cards = h("div", { class: "cards" });
      const section = h("details", { class: "section", open: i === 0 }, h("summary", {}, h("h2", {}, title), h("span", { class: "n" })), cards);
      section.cards = cards;
      return section;
    });
    this.element = h("div", {},
      h("div", { class: "tools" },
        h("label", {}, "x ", this.axis),
        h("label", { class: "slide" }, "smoothing ", this.smoothing),
        h("label", { class: "check" }, this.log, " log y"),
        groups.size < runs.length ? h("label", { class: "check" }, this.mean, " mean over seeds") : null,
        this.filter),
      this.note, ...this.sections);
    this.arrange();
  }

  close() {
    this.seen.disconnect();
    this.sized.disconnect();
    for (const card of this.cards.values()) card.drawn?.destroy();
  }

  // The tags that have cards; figures of several workers share one card.
  tags() {
    return new Set(this.runs.flatMap((run) => [...run.metrics.tags.keys()].map(cardOf)));
  }

  update(changed) {
    const tags = this.tags();
    if (tags.size !== this.cards.size) this.arrange();
    if (changed) for (const card of this.cards.values()) {
      card.stale = true;
      if (card.isSeen) this.draw(card);
    }
  }

  arrange() {
    const rank = (tag) => (MAIN.indexOf(tag) + MAIN.length + 1) % (MAIN.length + 1);
    const tags = [...this.tags()].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const sorted = SECTIONS.map(() => []);
    for (const tag of tags) {
      const text = `${tag} ${titleOf(tag)}`.toLowerCase();
      const card = this.card(tag);
      if (words.every((word) => text.includes(word))) sorted[SECTIONS.findIndex(([, has]) => has(tag))].push(card);
    }
    this.sections.forEach((section, i) => {
      section.hidden = sorted[i].length === 0;
      setText(section.querySelector(".n"), `${sorted[i].length}`);
      if (words.length) section.open = true;
      const now = [...section.cards.children];
      if (now.length !== sorted[i].length || now.some((card, n) => card !== sorted[i][n])) section.cards.replaceChildren(...sorted[i]);
    });
    this.note.hidden = tags.length > 0;
    setText(this.note, "No numbers yet: curves appear with the first row of metrics.jsonl.");
  }

  card(tag) {
    if (this.cards.has(tag)) return this.cards.get(tag);
    const plot = h("div", { class: "plot", role: "img" });
    const button = (sign, title, onclick) => h("button", { type: "button", class: "quiet", title, "aria-label": `${title}: ${titleOf(tag)}`, onclick }, sign);
    const last = h("b", { class: "last" }), keys = h("ul", { class: "keys" });
    const card = h("figure", { class: "card" },
      h("figcaption", {}, h("h3", {}, titleOf(tag)), last, h("small", {}, tag),
        button("csv", "Save the values", () => saveCsv(card)), button("png", "Save the picture", () => savePicture(card)),
        button("⤢", "Wider", () => card.classList.toggle("wide"))), plot, keys);
    Object.assign(card, { tag, plot, last, keys, stale: true, isSeen: false, drawn: null });
    plot.card = card;
    this.cards.set(tag, card);
    this.seen.observe(card);
    this.sized.observe(plot);
    return card;
  }

  themed() {
    this.update(true);
  }

  async draw(card) {
    if (!card.stale) return;
    card.stale = false;
    let uPlot, curves;
    const axis = this.axis.value;
    const scale = axis === "time" ? timeScale(this.runs) : { by: 1, unit: "" };
    try {
      [uPlot, curves] = await Promise.all([loadLibrary(), this.curves(card.tag, axis, scale)]);
    } catch (error) {
      card.stale = true;
      this.note.hidden = false;
      setText(this.note, error.message);
      return;
    }
    if (!card.isConnected) return;
    const values = this.runs.length === 1 && curves.filter(({ faint }) => !faint).length === 1 ? curves[0].y.filter((value) => value !== null) : [];
    const last = values.length ? number(values[values.length - 1]) : "";
    setText(card.last, last);
    card.plot.setAttribute("aria-label", `${titleOf(card.tag)} over ${this.axisTitle(scale)}, ${last ? `last ${last}` : "no values"}`);
    card.curves = curves;
    card.titles = [this.axisTitle(scale), unitOf(card.tag)];
    const data = joined(uPlot, curves, this.log.checked);
    const form = JSON.stringify([card.titles, this.log.checked, document.documentElement.dataset.theme,
      matchMedia("(prefers-color-scheme: dark)").matches, curves.map(({ name, colour, low, faint, x }) => [name, colour, Boolean(low), faint, x.length < 40])]);
    if (card.drawn && form === card.form) {
      card.drawn.setData(data, !card.zoomed);
    } else {
      card.drawn?.destroy();
      card.drawn = new uPlot(this.options(card), data, card.plot);
      card.drawn.over.addEventListener("dblclick", () => { card.zoomed = false; });
      card.zoomed = false;
      card.form = form;
    }
    showKeys(card);
  }

  axisTitle(scale) {
    return AXES[this.axis.value] ?? `time (${scale.unit})`;
  }

  // The curves of a tag: [{name, colour, dash, x, y, low, high, faint}].
  async curves(tag, axis, scale) {
    const weight = Number(this.smoothing.value);
    const found = this.runs.flatMap((run) => partsOf(run, tag).map((part) => {
      const { x, y } = run.metrics.series(part, axis);
      return { run, worker: part.slice(tag.length + 1), x: scale.by === 1 ? x : x.map((value) => value / scale.by), y };
    })).filter(({ x }) => x.length);
    if (found.some(({ worker }) => worker)) {
      return found.map(({ run, worker, x, y }, i) => ({ name: [this.runs.length > 1 ? run.name : "", worker].filter(Boolean).join(", "), ...lineOf(i), x, y: smooth(y, weight) }));
    }
    const curves = [];
    for (const members of groupBy(found, ({ run }) => run.group).values()) {
      const { colour, dash, title } = members[0].run;
      if (this.mean.checked && members.length > 1) {
        const mean = await fetchMean(members.map(({ run, x, y }) => ({ x, y: smooth(y, weight), converged: run.facts.summary.status === "converged" })));
        curves.push({ name: `${title} (${members.length} seeds)`, colour, dash, x: mean.x, y: mean.mean, low: mean.low, high: mean.high });
        continue;
      }
      for (const { run, x, y } of members) {
        const line = { name: run.name, colour: run.colour, dash: run.dash, x };
        if (weight) curves.push({ ...line, y, faint: true });
        curves.push({ ...line, y: smooth(y, weight) });
      }
    }
    return curves;
  }

  options(card) {
    const style = getComputedStyle(document.documentElement);
    const [soft, line] = ["--soft", "--line"].map((name) => style.getPropertyValue(name).trim());
    const font = `11px ${getComputedStyle(document.body).fontFamily}`;
    const axis = (label) => ({ label, stroke: soft, font, labelFont: font, labelSize: 16, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 } });
    const goals = card.tag.startsWith("evaluator/") && MAIN.includes(card.tag) ? goalsOf(this.runs) : [];
    const series = [{}], bands = [];
    for (const { colour, dash, y, low, faint } of card.curves) {
      series.push({ stroke: faint ? `${colour}40` : colour, width: faint ? 1 : 2, dash, spanGaps: true, points: { show: !faint && !low && y.length < 40, size: 5 } });
      if (low) {
        series.push(EDGE, EDGE);
        bands.push({ series: [series.length - 1, series.length - 2], fill: `${colour}33` }); // the upper edge first
      }
    }
    return {
      width: card.plot.clientWidth || 400, height: HEIGHT, series, bands, legend: { show: false }, cursor: { drag: { x: true, y: true, uni: 20 }, points: { size: 6 } },
      scales: {
        x: { time: false, range: (_, low, high) => (low === null ? [0, 1] : [Math.min(0, low), high > Math.min(0, low) ? high : low + 1]) },
        y: { distr: this.log.checked ? 3 : 1, range: this.log.checked ? undefined : (_, low, high) => withGoals(low, high, goals) },
      },
      axes: [{ ...axis(card.titles[0]), size: AXIS_HEIGHT - 16, values: (_, ticks) => ticks.map((tick) => number(tick)) },
        { ...axis(card.titles[1]), size: AXIS_WIDTH - 16, values: (_, ticks) => ticks.map((tick) => (tick === null ? null : number(tick, 3))) }],
      hooks: { draw: goals.map((goal) => (plot) => drawGoal(plot, goal, soft)), setCursor: [(plot) => showKeys(card, plot.cursor.idx)], setSelect: [(plot) => { card.zoomed ||= plot.select.width > 0; }] },
    };
  }
}

// A shared x column and the columns of each curve; sets the index of each curve's first column.
function joined(uPlot, curves, isLog) {
  if (!curves.length) return [[]];
  let next = 1;
  return uPlot.join(curves.map((curve) => {
    const columns = curve.low ? [curve.y, curve.low, curve.high] : [curve.y];
    curve.column = next;
    next += columns.length;
    // A logarithmic axis cannot show values that are not positive.
    return [curve.x, ...(isLog ? columns.map((values) => values.map((value) => (value > 0 ? value : null))) : columns)];
  }));
}

export const stopValue = (config) => Number(config?.["env.stop_value"] ?? NaN);

// The stop values of the runs; empty if there are many different ones.
function goalsOf(runs) {
  const goals = [...new Set(runs.map((run) => stopValue(run.facts?.config)))].filter((goal) => Math.abs(goal) < 1e6);
  return goals.length <= MOST_GOALS ? goals : [];
}

function withGoals(low, high, goals) {
  if (low === null) return [0, 1];
  const span = high - low || Math.abs(high) || 1;
  for (const goal of goals) if (goal > high && goal - high < 2 * span) high = goal;
  return [low - 0.05 * span, high + 0.08 * span];
}

function drawGoal(plot, goal, colour) {
  const { left, top, width, height } = plot.bbox, y = plot.valToPos(goal, "y", true);
  if (y < top || y > top + height) return;
  const context = plot.ctx;
  context.save();
  context.strokeStyle = colour;
  context.setLineDash([4, 4]);
  context.beginPath();
  context.moveTo(left, y);
  context.lineTo(left + width, y);
  context.stroke();
  context.fillStyle = colour;
  context.textAlign = "left"; // on the left, curves are usually far below the goal
  context.textBaseline = "bottom";
  context.fillText(`goal ${number(goal)}`, left + 4, y - 2);
  context.restore();
}

// The legend below a plot, with the last values or the values under the pointer.
function showKeys(card, at) {
  const curves = card.curves.filter(({ faint }) => !faint);
  if (curves.length < 2 && !curves[0]?.low) return card.keys.replaceChildren();
  const rows = curves.slice(0, MOST_KEYS).map((curve) =>
    h("li", { title: curve.name }, lineSample(curve), h("span", {}, curve.name), h("b", {}, valueAt(card.drawn.data[curve.column], at))));
  if (curves.length > MOST_KEYS) rows.push(h("li", {}, `and ${curves.length - MOST_KEYS} more: see the list above`));
  return card.keys.replaceChildren(...rows);
}

// The last value, or the last one up to an index: curves have values at different x positions.
function valueAt(values, index) {
  for (let i = index ?? values.length - 1; i >= 0; i--) if (typeof values[i] === "number") return number(values[i]);
  return "";
}

export function lineSample({ colour, dash }) {
  return svg("svg", { viewBox: "0 0 24 8", class: "line", "aria-hidden": "true" },
    svg("line", { x1: 0, y1: 4, x2: 24, y2: 4, stroke: colour, "stroke-width": 2.5, "stroke-dasharray": dash.join(" ") }));
}

function save(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const fileName = (card) => card.tag.replace(/[^\w.-]+/g, "_");

function saveCsv(card) {
  if (!card.curves?.length) return;
  const quoted = (text) => `"${text.replace(/"/g, '""')}"`;
  const rows = card.curves.filter(({ faint }) => !faint).flatMap(({ name, x, y, low, high }) =>
    x.map((place, i) => [quoted(name), place, y[i] ?? "", low?.[i] ?? "", high?.[i] ?? ""].join()));
  save(`${fileName(card)}.csv`, new Blob([["run", card.titles[0], "value", "low", "high"].join(), "\n", rows.join("\n"), "\n"], { type: "text/csv" }));
}

// The plot with its title and legend.
function savePicture(card) {
  if (!card.drawn) return;
  const { canvas } = card.drawn.ctx, ratio = devicePixelRatio, style = getComputedStyle(document.documentElement);
  const curves = card.curves.filter(({ faint }) => !faint), row = 18 * ratio, head = 26 * ratio;
  const picture = h("canvas", { width: canvas.width, height: head + canvas.height + row * (curves.length + 0.5) });
  const context = picture.getContext("2d");
  context.fillStyle = style.getPropertyValue("--card").trim();
  context.fillRect(0, 0, picture.width, picture.height);
  context.drawImage(canvas, 0, head);
  context.fillStyle = style.getPropertyValue("--ink").trim();
  context.font = `600 ${14 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
  context.fillText(titleOf(card.tag), 8 * ratio, 18 * ratio);
  context.font = `${12 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
  curves.forEach(({ name, colour, dash }, i) => {
    const y = head + canvas.height + row * (i + 0.7);
    context.strokeStyle = colour;
    context.lineWidth = 2.5 * ratio;
    context.setLineDash(dash.map((length) => length * ratio));
    context.beginPath();
    context.moveTo(8 * ratio, y - 4 * ratio);
    context.lineTo(32 * ratio, y - 4 * ratio);
    context.stroke();
    context.fillText(name, 40 * ratio, y);
  });
  picture.toBlob((blob) => save(`${fileName(card)}.png`, blob), "image/png");
}

function timeScale(runs) {
  const longest = Math.max(0, ...runs.flatMap(({ metrics }) =>
    [...metrics.tags.keys()].slice(0, 40).map((tag) => metrics.series(tag, "time").x.at(-1) ?? 0)));
  if (longest < 300) return { by: 1, unit: "seconds" };
  return longest < 3 * 3600 ? { by: 60, unit: "minutes" } : { by: 3600, unit: "hours" };
}

