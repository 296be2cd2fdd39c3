// Filters the runs by words and by conditions on facts of a run and keys of its config:
// `status:failed seed:3 lr>1e-4 -smoke`.

const SHORT = { lr: "learning_rate", env: "env_id" };

export const endOf = (run) => [run.reason, run.problem].filter(Boolean).join("; ");

// Parses the text of a filter to {holds(run, config), needsConfigs}.
export function filterOf(text) {
  const conditions = text.toLowerCase().split(/\s+/).filter(Boolean).map(condition);
  return {
    needsConfigs: conditions.some(({ needsConfigs }) => needsConfigs),
    holds: (run, config) => conditions.every(({ holds }) => holds(run, config)),
  };
}

function condition(token) {
  const negated = token.startsWith("-") && token.length > 1;
  const text = negated ? token.slice(1) : token;
  const [, name, sign, wanted] = /^([\w.]+)(:|=|>=|<=|>|<)(.+)$/.exec(text) ?? [];
  const fits = name === undefined ? (run) => textOf(run).includes(text)
    : (run, config) => valuesOf(run, config, SHORT[name] ?? name).some((value) => compares(value, sign, wanted));
  return { needsConfigs: name !== undefined, holds: (run, config) => fits(run, config) !== negated };
}

const textOf = (run) => `${run.id} ${run.status} seed ${run.seed} ${endOf(run)}`.toLowerCase();

function valuesOf(run, config, name) {
  const facts = { status: run.status, seed: run.seed, name: run.folder, group: run.name, best: run.best_return, last: run.last_return,
    steps: run.envstep, updates: run.train_iter, seconds: run.seconds, host: run.host, end: endOf(run) };
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
