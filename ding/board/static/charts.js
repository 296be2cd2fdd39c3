// Curves of every scalar of one or several runs, drawn with plotly.

import { h, number, setText } from "./dom.js";
import { groupBy, meanOf, smooth } from "./data.js";

export const COLOURS = ["#3b6ef5", "#e8710a", "#12a36d", "#c2438f", "#8559e0", "#0f9fb5", "#d43f3a", "#9a7d0a", "#5f6f81", "#7a4a21"];

let library;
// Large, so it is fetched when the first curve is drawn, not with the list.
function plotly() {
  library ??= new Promise((resolve, reject) => {
    const script = h("script", { src: "plotly.js" });
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      library = undefined;
      script.remove();
      reject(new Error("curves need plotly on the server: pip install 'ding[board]'"));
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
  "learner/total_loss_avg": "Loss",
  "collector/avg_envstep_per_sec": "Collection speed",
  "learner/q_value_avg": "Q value",
  "learner/cur_lr_avg": "Learning rate",
  "learner/train_time_avg": "Time of an update",
  "collector/eps": "Exploration rate ε",
  "buffer/staleness_avg": "Age of samples",
};
const MAIN = ["evaluator/reward_mean", "evaluator/return_mean", "collector/reward_mean", "collector/return_mean"];
const SECTIONS = [
  ["Overview", (tag) => MAIN.includes(tag) || /^(learner\/.*(loss|q_value|entropy)(_avg)?|collector\/.*envsteps?_per_s(ec)?|.*\beps(ilon)?)$/.test(tag)],
  ["Learner", (tag) => tag.startsWith("learner")],
  ["Collector", (tag) => tag.startsWith("collector")],
  ["Evaluator", (tag) => tag.startsWith("evaluator")],
  ["Buffer", (tag) => tag.startsWith("buffer")],
  ["Other", () => true],
];
const UNITS = [
  [/(reward|return)_std/, "standard deviation of returns"], [/(reward|return)/, "return"],
  [/envsteps?_per_s/, "env steps / s"], [/samples?_per_s/, "samples / s"], [/episodes?_per_s/, "episodes / s"],
  [/(updates|iters?)_per_s/, "updates / s"], [/(time|duration|age_s)/, "seconds"], [/loss/, "loss"], [/lr/, "learning rate"],
  [/eps(ilon)?$/, "ε"], [/staleness/, "updates"], [/priority/, "priority"], [/use_/, "times used"],
  [/per_episode/, "per episode"], [/envstep|step_count/, "env steps"], [/episode_count/, "episodes"], [/sample_count/, "samples"], [/train_iter/, "updates"],
];
const AXES = { step: "environment steps", iter: "updates" };

export const titleOf = (tag) => {
  if (TITLES[tag]) return TITLES[tag];
  const name = tag.slice(tag.indexOf("/") + 1).replace(/_avg$/, "").replace(/_/g, " ").replace(/^cur /, "");
  return name.charAt(0).toUpperCase() + name.slice(1);
};
const unitOf = (tag) => (UNITS.find(([pattern]) => pattern.test(tag.slice(tag.indexOf("/") + 1))) ?? [0, "value"])[1];

export class Charts {
  // runs: [{name, colour, group, metrics}], of which `metrics` are filled later.
  constructor(runs) {
    this.runs = runs;
    this.cards = new Map();
    this.seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        target.isSeen = isIntersecting;
        if (isIntersecting) this.draw(target);
      }
    }, { rootMargin: "300px" });
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
    for (const card of this.cards.values()) if (card.drawn) window.Plotly.purge(card.plot);
  }

  update(changed) {
    const tags = new Set(this.runs.flatMap((run) => [...run.metrics.tags.keys()]));
    if (tags.size !== this.cards.size) this.arrange();
    if (changed) for (const card of this.cards.values()) {
      card.stale = true;
      if (card.isSeen) this.draw(card);
    }
  }

  arrange() {
    const rank = (tag) => (MAIN.indexOf(tag) + MAIN.length + 1) % (MAIN.length + 1);
    const tags = [...new Set(this.runs.flatMap((run) => [...run.metrics.tags.keys()]))]
      .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
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
    const wide = h("button", { type: "button", class: "quiet", title: "Wider", "aria-label": `Wider: ${titleOf(tag)}`, onclick: () => {
      card.classList.toggle("wide");
      if (card.drawn) window.Plotly.Plots.resize(plot);
    } }, "⤢");
    const last = h("b", { class: "last" });
    const card = h("figure", { class: "card" },
      h("figcaption", {}, h("h3", {}, titleOf(tag)), last, h("small", {}, tag), wide), plot);
    Object.assign(card, { tag, plot, last, stale: true, isSeen: false, drawn: false });
    this.cards.set(tag, card);
    this.seen.observe(card);
    return card;
  }

  themed() {
    this.update(true);
  }

  async draw(card) {
    if (!card.stale) return;
    card.stale = false;
    let Plotly;
    try {
      Plotly = await plotly();
    } catch (error) {
      this.note.hidden = false;
      setText(this.note, error.message);
      return;
    }
    if (!card.isConnected) return;
    const { traces, last, scale } = this.traces(card.tag);
    setText(card.last, last);
    card.plot.setAttribute("aria-label", `${titleOf(card.tag)} over ${this.axisTitle(scale)}, ${last ? `last ${last}` : "no values"}`);
    await Plotly.react(card.plot, traces, this.layout(card.tag, scale), { displayModeBar: false, responsive: true });
    card.drawn = true;
  }

  axisTitle(scale) {
    return AXES[this.axis.value] ?? `time (${scale.unit})`;
  }

  traces(tag) {
    const axis = this.axis.value, weight = Number(this.smoothing.value);
    const scale = axis === "time" ? timeScale(this.runs) : { by: 1, unit: "" };
    const curves = this.runs.map((run) => {
      const { x, y } = run.metrics.series(tag, axis);
      return { run, x: scale.by === 1 ? x : x.map((value) => value / scale.by), y };
    }).filter(({ x }) => x.length);
    const traces = [];
    for (const members of groupBy(curves, ({ run }) => run.group).values()) {
      if (this.mean.checked && members.length > 1) {
        traces.push(...meanTraces(members.map(({ x, y }) => ({ x, y: smooth(y, weight) })), members));
        continue;
      }
      for (const { run, x, y } of members) {
        const few = x.length < 40;
        if (weight) traces.push({ x, y, mode: "lines", line: { color: run.colour, width: 1 }, opacity: 0.25, hoverinfo: "skip", name: run.name });
        traces.push({ x, y: smooth(y, weight), mode: few ? "lines+markers" : "lines", name: run.name,
          line: { color: run.colour, width: 2 }, marker: { size: 4 }, hovertemplate: `%{y:.5~g}<extra>${plain(run.name)}</extra>` });
      }
    }
    const values = curves.length === 1 ? curves[0].y.filter((v) => v !== null) : [];
    return { traces, scale, last: values.length ? number(values[values.length - 1]) : "" };
  }

  layout(tag, scale) {
    const style = getComputedStyle(document.documentElement);
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => style.getPropertyValue(name).trim());
    const axis = (title) => ({ title: { text: title, font: { size: 12, color: soft }, standoff: 6 }, gridcolor: line, linecolor: line,
      zeroline: false, tickfont: { size: 11, color: soft }, automargin: true, separatethousands: true });
    return {
      margin: { l: 8, r: 12, t: 6, b: 8 }, height: 250, showlegend: false, hovermode: "x unified",
      paper_bgcolor: "transparent", plot_bgcolor: "transparent", font: { color: ink, family: "inherit", size: 12 },
      hoverlabel: { bgcolor: style.getPropertyValue("--card").trim(), bordercolor: line, font: { color: ink } },
      xaxis: { ...axis(this.axisTitle(scale)), rangemode: "tozero" },
      yaxis: { ...axis(unitOf(tag)), type: this.log.checked ? "log" : "linear" },
      uirevision: `${this.axis.value} ${this.log.checked}`, dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    };
  }
}

// Plotly reads a few tags in its texts.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

function meanTraces(curves, members) {
  const { x, mean, low, high } = meanOf(curves);
  const colour = members[0].run.colour;
  const name = `${members[0].run.title}: mean of ${members.length}`;
  return [
    { x, y: low, mode: "lines", line: { width: 0 }, hoverinfo: "skip" },
    { x, y: high, mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: `${colour}33`, hoverinfo: "skip" },
    { x, y: mean, mode: "lines", line: { color: colour, width: 2 }, name, hovertemplate: `%{y:.5~g}<extra>${plain(name)}</extra>` },
  ];
}

function timeScale(runs) {
  const longest = Math.max(0, ...runs.flatMap(({ metrics }) =>
    [...metrics.tags.keys()].slice(0, 40).map((tag) => metrics.series(tag, "time").x.at(-1) ?? 0)));
  if (longest < 300) return { by: 1, unit: "seconds" };
  return longest < 3 * 3600 ? { by: 60, unit: "minutes" } : { by: 3600, unit: "hours" };
}

