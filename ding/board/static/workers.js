// Workers of a parallel run: their states, rates and waiting times.

import { bytes, count, duration, h, number } from "./dom.js";

export class WorkersPanel {
  constructor(runs) {
    this.runs = runs;
    this.element = h("div", { class: "workers" });
  }

  update() {
    const scrolled = this.element.querySelector(".scroll")?.scrollLeft ?? 0;
    this.element.replaceChildren(...this.runs.flatMap((run) => {
      const title = this.runs.length > 1 ? h("h2", {}, run.name) : "";
      if (run.facts.live) run.lastLive = run.facts.live;
      if (!run.lastLive) return [title, h("p", { class: "empty" }, why(run))];
      const over = run.facts.live ? "" : h("p", { class: "reason" }, "The run is over; this is how it was last.");
      return [title, over, ...panelOf(run.lastLive)];
    }));
    const table = this.element.querySelector(".scroll");
    if (table) table.scrollLeft = scrolled;
  }
}

function why(run) {
  if (run.facts.summary.status !== "running") return "The run is over: workers are shown while it runs.";
  return "No coordinator answers: a serial run has no workers, and a parallel one is being started.";
}

function waitsOf(worker) {
  const shares = Object.entries(worker.wait_shares ?? {}).filter(([, share]) => share >= 0.01).sort(([, a], [, b]) => b - a);
  if (shares.length === 0) return worker.waits_for || "–";
  return shares.map(([what, share]) => `${what} ${Math.round(100 * share)} %`).join(", ");
}

function panelOf(live) {
  const workers = Object.entries(live.workers ?? {}).sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
  const rate = live.data_rate ?? {};
  const facts = [
    ["Samples/s", number(rate.samples_per_s, 3)], ["Data/s", `${bytes(rate.bytes_per_s)}`],
    ["Goal", live.stop_value === null || live.stop_value === undefined ? "–" : number(live.stop_value)],
    ...Object.entries(live.policy ?? {}).flatMap(([, policy]) => [
      ["Policy lag", policy.lag_iters === null ? "–" : `${count(policy.lag_iters)} updates`], ["Policy age", duration(policy.age_s)]]),
  ];
  return [
    h("p", { class: "who" }, h("b", {}, "Who waits: "), live.waits || "no worker"),
    h("dl", { class: "facts" }, facts.map(([key, value]) => h("div", {}, h("dt", {}, key), h("dd", {}, value)))),
    h("div", { class: "scroll" }, h("table", { class: "plain" },
      h("caption", {}, "Workers"),
      h("thead", {}, h("tr", {}, ["Worker", "State", "For", "Rate", "CPU", "Memory", "GPU", "Waits for", "Task", "Address"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, workers.map(([name, worker]) => h("tr", {},
        h("th", { scope: "row" }, name),
        h("td", {}, h("span", { class: `dot ${stateClass(worker)}`, "aria-hidden": "true" }), ` ${worker.state}${worker.is_eval ? " (evaluation)" : ""}`),
        h("td", {}, duration(worker.since_s)),
        h("td", {}, rateOf(worker)),
        ...usageOf(worker.usage ?? {}).map((text) => h("td", {}, text)),
        h("td", {}, waitsOf(worker)),
        h("td", { class: "code" }, worker.task_id || "–"),
        h("td", { class: "code" }, worker.address || "–")))))),
    ...Object.entries(live.buffers ?? {}).map(([name, buffer]) => h("div", { class: "meter" },
      h("span", {}, `${name}: ${count(buffer.count)} of ${count(buffer.capacity)} samples, ${bytes(buffer.bytes)} in ${count(buffer.files)} files`),
      h("meter", { min: 0, max: buffer.capacity || 1, value: buffer.count, "aria-label": `Fill of ${name}` }),
      buffer.samples_per_insert?.reached ? h("small", {}, `${number(buffer.samples_per_insert.reached, 3)} of ${number(buffer.samples_per_insert.target, 3)} samples drawn per sample put in`) : null)),
    ...troubles(live),
  ];
}

function troubles(live) {
  const lines = [
    ...Object.entries(live.troubles ?? {}).map(([name, trouble]) => `${name}: ${trouble}`),
    ...(live.failures ?? []).map((f) => `${new Date(f.time * 1000).toLocaleTimeString("en-GB")} ${f.worker}${f.task ? `, task ${f.task}` : ""}: ${f.cause}`),
  ];
  return lines.length ? [h("h3", {}, "Troubles and failures"), h("ul", { class: "alert" }, lines.map((line) => h("li", {}, line)))] : [];
}

const rateOf = (worker) => {
  const rates = [];
  if (typeof worker.samples_per_s === "number") rates.push(`${number(worker.samples_per_s, 3)} samples/s`);
  if (typeof worker.iters_per_s === "number") rates.push(`${number(worker.iters_per_s, 3)} updates/s`);
  if (typeof worker.wait_share === "number") rates.push(`${Math.round(100 * worker.wait_share)} % waiting`);
  return rates.join(", ") || "–";
};

// CPU, memory and GPU usage of a worker's process.
function usageOf({ cpu_percent: cpu, memory_mb: memory, gpu_memory_mb: gpu }) {
  const percent = (value) => (typeof value === "number" ? `${Math.round(value)} %` : "");
  const size = (value) => (typeof value === "number" ? bytes(1e6 * value) : "");
  return [percent(cpu) || "–", size(memory) || "–", size(gpu) || "–"];
}

const stateClass = (worker) =>
  ["connecting", "gone"].includes(worker.state) ? "gone" : worker.waits_for ? "waits" : "works";
