"""How many env steps the shipped configs need to their goals, over several seeds.

    python benchmarks/learning.py                              # everything, two runs at a time
    python benchmarks/learning.py cartpole_ppo --seeds 0 1 2   # some of it
    python benchmarks/learning.py --table                      # what was measured so far

Each run is a process of its own and adds a line to ``benchmarks/results/learning.jsonl``; pairs
of config and seed that stand there are not run again. A run ends when the mean return of 20
evaluation episodes (all with different first states) reaches the goal, or at the step limit.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

HERE = Path(__file__).resolve().parent
CONFIGS = HERE.parent / "configs"
RESULTS = HERE / "results"
EVAL_EPISODES = 20
FRESH_EPISODES = 100
FRESH_SEED = 100_000


@dataclass(frozen=True)
class Goal:
    """A mean return that a config has to reach within a number of env steps."""

    config: str
    value: float
    max_env_step: int


GOALS = {
    "cartpole_dqn": Goal("cartpole/cartpole_dqn_config.py", 195, 100_000),
    "cartpole_dqn_475": Goal("cartpole/cartpole_dqn_475_config.py", 475, 100_000),
    "cartpole_dqn_per": Goal("cartpole/cartpole_dqn_per_config.py", 475, 100_000),
    "cartpole_ppo": Goal("cartpole/cartpole_ppo_config.py", 475, 100_000),
    "pendulum_ppo": Goal("pendulum/pendulum_ppo_config.py", -250, 300_000),
    "coin_race_ppo": Goal("coin_race/coin_race_ppo_config.py", 4.5, 200_000),
    "lunarlander_ppo": Goal("lunarlander/lunarlander_ppo_config.py", 200, 1_000_000),
    "lunarlander_dqn": Goal("lunarlander/lunarlander_dqn_config.py", 200, 500_000),
}


def main() -> None:
    args = _arguments()
    if args.one:
        name, seed = args.one
        print(json.dumps(run_one(name, int(seed))))
        return
    names = args.names or list(GOALS)
    results = RESULTS / "learning.jsonl"
    RESULTS.mkdir(exist_ok=True)
    if not args.table:
        measured = {(r["name"], r["seed"]) for r in _read(results)}
        todo = [(n, s) for s in args.seeds for n in names if (n, s) not in measured]
        with ThreadPoolExecutor(args.parallel) as pool, results.open("a") as file:
            for run in as_completed([pool.submit(_in_process, pair) for pair in todo]):
                if (result := run.result()) is not None:
                    print(json.dumps(result), file=file, flush=True)
                    print(_words(result), flush=True)
    print(table(r for r in _read(results) if r["name"] in names))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"configs, of {', '.join(GOALS)}; all by default")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--parallel", type=int, default=2, help="runs at a time")
    parser.add_argument("--table", action="store_true", help="run nothing, print the table")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "SEED"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    unknown = set(args.names) - set(GOALS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected some of {', '.join(GOALS)}")
    return args


def _in_process(pair: tuple[str, int]) -> dict[str, Any] | None:
    name, seed = pair
    log = RESULTS / f"learning_{name}_{seed}.log"
    with log.open("w") as errors:
        done = subprocess.run(
            [sys.executable, __file__, "--one", name, str(seed)],
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            text=True,
        )
    if done.returncode:
        print(f"{name}, seed {seed}: failed with status {done.returncode}, see {log}")
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_one(name: str, seed: int) -> dict[str, Any]:
    """Train once and judge the trained policy on first states that the run has not seen."""
    import ding.entry

    goal = GOALS[name]
    main_config, create_config = load(goal.config)
    main_config.exp_name = str(RESULTS / "learning" / f"{name}_{seed}_{int(time.time())}")
    main_config.env.stop_value = goal.value
    main_config.env.evaluator_env_num = EVAL_EPISODES
    main_config.env.n_evaluator_episode = EVAL_EPISODES
    on_policy = create_config.policy.type == "ppo"
    pipeline = ding.entry.serial_pipeline_onpolicy if on_policy else ding.entry.serial_pipeline
    start = time.perf_counter()
    policy = pipeline((main_config, create_config), seed=seed, max_env_step=goal.max_env_step)
    wall = time.perf_counter() - start
    end = json.loads((Path(main_config.exp_name) / "run.json").read_text())
    return {
        "name": name,
        "seed": seed,
        "reached": end["status"] == "converged",
        "envstep": end["envstep"],
        "train_iter": end["train_iter"],
        "wall": round(wall, 1),
        "best": end["best_return"],
        "fresh": fresh_return(policy, main_config.env, create_config.env),
    }


def load(config: str) -> tuple[Any, Any]:
    """``main_config`` and ``create_config`` of a shipped config."""
    from ding.config import read_config

    return read_config(str(CONFIGS / config))


def fresh_return(policy: Any, env_cfg: Any, env_type: Any) -> float | None:
    """Mean return of greedy actions in a gymnasium env stepped by hand; of games ``None``."""
    from ding.envs import GymnasiumEnv

    if env_type.type != "gymnasium":
        return None
    env = GymnasiumEnv(env_cfg)
    returns = []
    for episode in range(FRESH_EPISODES):
        env.seed(FRESH_SEED + episode, dynamic_seed=False)
        obs, done = env.reset(), False
        while not done:
            action = policy.eval_mode.forward({0: obs})[0]["action"]
            obs, _, done, info = env.step(action.numpy())
        returns.append(info["eval_episode_return"])
    env.close()
    return mean(returns)


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _words(result: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in result.items())


HEADER = """\
| config | goal | within | reached | env steps: median [min .. max] | wall time: median [max] | \
best return: median | return of 100 fresh episodes: median [min] |
|---|---|---|---|---|---|---|---|"""


def table(results: Iterable[dict[str, Any]]) -> str:
    """A row for each config; runs that missed the goal count with the step at which they ended."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        by_name.setdefault(result["name"], []).append(result)
    return "\n".join([HEADER, *(_row(n, by_name[n]) for n in GOALS if n in by_name)])


def _row(name: str, runs: list[dict[str, Any]]) -> str:
    goal = GOALS[name]
    steps, walls = [r["envstep"] for r in runs], [r["wall"] for r in runs]
    fresh = [r["fresh"] for r in runs if r["fresh"] is not None]
    cells = [
        name,
        f"{goal.value:g}",
        f"{goal.max_env_step:,}",
        f"{sum(r['reached'] for r in runs)} of {len(runs)}",
        f"{median(steps):,.0f} [{min(steps):,} .. {max(steps):,}]",
        f"{median(walls):.0f} s [{max(walls):.0f} s]",
        f"{median(r['best'] for r in runs):.4g}",
        f"{median(fresh):.4g} [{min(fresh):.4g}]" if fresh else "-",
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
