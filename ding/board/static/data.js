// Requests to the server, and a run's metrics as columns.

export class Gone extends Error {}

const PATIENCE = 15000;
// Maximum number of points of each curve that is sent to be averaged.
const MEAN_POINTS = 1000;

async function ask(path, parameters, more = {}) {
  let response;
  try {
    response = await fetch(`${path}?${new URLSearchParams(parameters)}`, {
      ...more,
      signal: AbortSignal.timeout(PATIENCE),
    });
  } catch (error) {
    throw new Gone("the server does not answer", { cause: error });
  }
  if (!response.ok) {
    const answer = await response.json().catch(() => ({}));
    throw new Error(answer.error ?? answer.message ?? response.statusText);
  }
  return response;
}

const send = (path, parameters, body) =>
  ask(path, parameters, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// Request the list while the rest of the page is loaded.
let early = location.hash.startsWith("#/runs/") ? null : ask("api/runs", {});
early?.catch(() => {}); // the list view reports the error

const known = { version: "", rows: new Map() };

// All runs, the newest first; only those that changed are sent.
export async function fetchRuns() {
  const answer = early ?? ask("api/runs", { since: known.version });
  early = null;
  const { version, ids, runs, ...facts } = await (await answer).json();
  known.version = version;
  for (const run of runs) known.rows.set(run.id, run);
  return { ...facts, runs: ids.map((id) => known.rows.get(id)) };
}

export const fetchConfigs = async () => (await ask("api/configs", {})).json();

export const fetchRun = async (id, more = {}) => (await ask("api/run", { id, ...more })).json();
// The interquartile mean over seeds with its bootstrap interval, computed by the server as in `ding plot`.
export async function fetchMean(curves) {
  const thin = curves.map(({ x, y, converged }) => {
    const kept = x.map((_, i) => i).filter((i) => y[i] !== null && Number.isFinite(x[i]));
    const every = Math.ceil(kept.length / MEAN_POINTS);
    const some = kept.filter((_, n) => n % every === 0 || n === kept.length - 1);
    return { x: some.map((i) => x[i]), y: some.map((i) => y[i]), converged };
  }).filter(({ x }) => x.length);
  return (await send("api/mean", {}, { curves: thin })).json();
}

export const videoAddress = (id, path) => `api/video?${new URLSearchParams({ id, path })}`;

export async function fetchLog(id, path, offset) {
  const response = await ask("api/log", offset === undefined ? { id, path } : { id, path, offset });
  return {
    text: await response.text(),
    offset: Number(response.headers.get("X-Offset")),
    size: Number(response.headers.get("X-Size")),
    restarted: response.headers.get("X-Restarted") === "1",
  };
}

// Many scalars are written twice, in `<group>_iter` by updates and in `<group>_step` by env steps.
// Here they are one tag, with a column of values for each kind of step. If one kind is missing, steps
// of the other kind are converted with the help of rows that were written at the same time.
export class Metrics {
  constructor(id) {
    this.id = id;
    this.reset();
  }

  reset() {
    this.offset = 0;
    this.tags = new Map();
    this.pairs = [];
    this.start = undefined;
    this.open = {};
    this.version = 0;
  }

  // Fetches new rows; returns whether there were any.
  async update() {
    const before = this.version;
    for (;;) {
      const response = await ask("api/metrics", { id: this.id, offset: this.offset });
      const text = await response.text();
      if (response.headers.get("X-Restarted") === "1") this.reset();
      const offset = Number(response.headers.get("X-Offset"));
      const moved = offset !== this.offset;
      this.offset = offset;
      this.add(text);
      if (!moved || offset >= Number(response.headers.get("X-Size"))) break;
    }
    return this.version !== before;
  }

  add(text) {
    for (const line of text.split("\n")) {
      if (line) this.addRow(JSON.parse(line));
    }
  }

  addRow({ time, step, ...values }) {
    if (!Number.isFinite(time)) return;
    this.start ??= time;
    this.version++;
    for (const [name, value] of Object.entries(values)) {
      const slash = name.indexOf("/");
      const group = slash < 0 ? "" : name.slice(0, slash);
      const kind = group.endsWith("_iter") ? "iter" : "step";
      const base = group.replace(/_(iter|step)$/, "");
      this.pair(base, kind, time, step);
      const tag = base ? `${base}/${name.slice(slash + 1)}` : name;
      if (!this.tags.has(tag)) this.tags.set(tag, {});
      const columns = (this.tags.get(tag)[kind] ??= { x: [], time: [], y: [] });
      // Workers of a parallel run write to one file: rows may be out of order.
      if (columns.x.length && step < columns.x[columns.x.length - 1]) columns.unsorted = true;
      columns.x.push(step);
      columns.time.push(time);
      columns.y.push(Number.isFinite(value) ? value : null);
    }
  }

  pair(base, kind, time, step) {
    const other = this.open[base];
    if (other && other.kind !== kind && other.time === time) {
      const [iter, envstep] = kind === "iter" ? [step, other.step] : [other.step, step];
      const last = this.pairs[this.pairs.length - 1];
      if (!last || (iter >= last[0] && envstep >= last[1] && iter + envstep > last[0] + last[1])) {
        this.pairs.push([iter, envstep]);
      }
    }
    this.open[base] = { kind, time, step };
  }

  // {x, y} of a tag over "step", "iter" or "time" (seconds since the first row).
  series(tag, axis) {
    const kinds = this.tags.get(tag);
    if (!kinds) return { x: [], y: [] };
    for (const columns of Object.values(kinds)) sortByStep(columns);
    if (axis === "time") {
      const columns = kinds.step ?? kinds.iter;
      return { x: columns.time.map((t) => t - this.start), y: columns.y };
    }
    if (kinds[axis]) return kinds[axis];
    const [from, columns] = Object.entries(kinds)[0];
    if (!this.pairs.length) return columns;
    const [a, b] = from === "iter" ? [0, 1] : [1, 0];
    const [own, other] = [a, b].map((kind) => this.pairs.map((pair) => pair[kind]));
    return { x: columns.x.map((x) => at({ x: own, y: other }, x)), y: columns.y };
  }
}

function sortByStep(columns) {
  if (!columns.unsorted) return;
  const order = columns.x.map((_, i) => i).sort((a, b) => columns.x[a] - columns.x[b] || a - b);
  for (const name of ["x", "time", "y"]) columns[name] = order.map((i) => columns[name][i]);
  columns.unsorted = false;
}

// Exponential moving average with bias correction.
export function smooth(values, weight) {
  if (!weight) return values;
  let mean = 0, total = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return mean / total;
  });
}

export function groupBy(items, key) {
  const groups = new Map();
  for (const item of items) groups.set(key(item), [...(groups.get(key(item)) ?? []), item]);
  return groups;
}

// Mean and standard deviation.
export function spreadOf(values) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return [mean, Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length)];
}

// The value of a curve at an x position, by linear interpolation.
function at({ x, y }, place) {
  let low = 0, high = x.length - 1;
  if (place <= x[0]) return y[0];
  if (place >= x[high]) return y[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] <= place) low = middle;
    else high = middle;
  }
  return y[low] + ((place - x[low]) / (x[high] - x[low] || 1)) * (y[high] - y[low]);
}
