"""Returns of configs over seeds: stored as small JSON files, drawn and put into a table.

    python benchmarks/returns.py configs/cartpole/cartpole_c51_config.py --seeds 0-4
    python benchmarks/returns.py --draw                # pictures and the two pages, of all files
    python benchmarks/returns.py --zoo                 # train the policies of the zoo, and its page
    python benchmarks/returns.py configs/mujoco/hopper_sac_config.py --peer sb3 --env-step 100000

Each run is the command ``ding`` in a separate process. It ends where the config's ``stop_value``
is reached, or at the limit. ``docs/returns/<config>.json`` holds every evaluation; a seed that is
run again replaces the stored one; ``--from FOLDER`` stores an existing run, even one
that has not ended. The first paragraph of a config's docstring should name the published return and
its source: it becomes the table's last column. ``--peer sb3`` trains SB3 with the config's
hyperparameters (PPO, SAC and TD3) in a separate virtual environment, and stores
``docs/returns/sb3_<config>.json``. Drawing needs matplotlib (``pip install .[bench]``).
``--zoo`` keeps the best checkpoints (``zoo.py``), of all configs of the zoo but MuJoCo's if none
are named.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
from bisect import bisect_right
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from statistics import median
from typing import Any

import _compared_returns
import zoo
from _peers import peer_python

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_LIMIT = 200_000
#: Modes that train on data, of policies whose mode is not ``serial_offline``.
MODES = {"bc": "serial_bc", "dt": "serial_dt"}
_writing = threading.Lock()


def main() -> None:
    args = _arguments()
    sys.path.insert(0, str(ROOT))
    args.out.mkdir(parents=True, exist_ok=True)
    jobs = [(path, seed) for path in args.configs for seed in args.seeds]
    failed = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        runs = {pool.submit(run, *job, args): job for job in jobs}
        for done in as_completed(runs):
            path, seed = runs[done]
            result = done.result()
            print(f"{path.stem}, seed {seed}: {_words(result)}", flush=True)
            if "failed" in result:
                failed += 1
            else:
                store(args.out, path, result, args.peer)
    if args.zoo or args.draw:
        args.out.with_name("zoo.md").write_text(zoo.page(args.out))
    if args.draw:
        results = [json.loads(file.read_text()) for file in sorted(args.out.glob("*.json"))]
        pictures = draw(results, args.out)
        page = args.out.with_suffix(".md")
        page.write_text(_page(results, pictures, args.out.name))
        print(page.read_text())
    if failed:
        sys.exit(f"{failed} of {len(jobs)} runs failed")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("configs", nargs="*", type=Path, help="config files")
    parser.add_argument("--seeds", type=_seeds, default=range(5), metavar="A-B|A,B,...")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "returns")
    parser.add_argument("--env-step", type=int, default=DEFAULT_LIMIT, help="limit of a run")
    parser.add_argument("--train-iter", type=int, help="limit in updates, of offline runs alone")
    parser.add_argument("--mode", help="of ding -m: serial_offline for data sets")
    parser.add_argument("--set", action="append", default=[], help="as that of ding")
    parser.add_argument("--from", dest="folder", type=Path, help="folder of the run to store")
    parser.add_argument("--peer", choices=["sb3"], help="train this library instead")
    parser.add_argument("--zoo", action="store_true", help="keep the best checkpoints")
    parser.add_argument("--draw", action="store_true", help="draw pictures and the table")
    args = parser.parse_args()
    if args.zoo and not args.configs:
        args.configs = [path for name, path in zoo.CONFIGS.items() if name not in zoo.LEAST]
    if not args.configs and not args.draw:
        parser.error("give configs to run, --zoo or --draw")
    if args.zoo and (others := {path.resolve() for path in args.configs} - {*zoo.CONFIGS.values()}):
        parser.error(f"not of the zoo: {', '.join(map(str, others))}; add it to zoo.py")
    if missing := [str(path) for path in args.configs if not path.is_file()]:
        parser.error(f"no such config: {', '.join(missing)}")
    return args


def _seeds(text: str) -> list[int]:
    first, dash, last = text.partition("-")
    return [*range(int(first), int(last) + 1)] if dash else [int(seed) for seed in text.split(",")]


# ---------------------------------------------------------------------- running


def run(path: Path, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Train once; returns what is stored of it, or ``{'failed': reason}``."""
    if args.folder is not None:
        return _read_run(args.folder, seed, args.set)
    if args.peer is not None:
        return _run_sb3(path, seed, args)
    with tempfile.TemporaryDirectory() as folder:
        exp = Path(folder) / "run"
        command = [sys.executable, "-m", "ding.entry.cli", "--quiet", "-c", str(path.resolve())]
        command += ["-s", str(seed), "--exp-name", str(exp)]
        command += ["-m", args.mode] if args.mode else []
        if args.mode not in {"serial_offline", *MODES.values()}:
            command += ["--env-step", str(args.env_step)]
        if args.train_iter:
            command += ["--train-iter", str(args.train_iter)]
        for setting in args.set:
            command += ["--set", setting]
        path_list = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        env = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": os.pathsep.join(path_list)}
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        if done.returncode:
            return {"failed": done.stderr.strip()[-2000:] or f"status {done.returncode}"}
        if args.zoo:
            with _writing:  # runs that are done at the same time
                print(f"{path.stem}, seed {seed}: {zoo.keep(exp, path, seed)}", flush=True)
        return _read_run(exp, seed, args.set)


def _run_sb3(path: Path, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    from ding.config import compile_config, read_config

    main_config, create_config = read_config(str(path))
    cfg = compile_config(
        main_config, create_cfg=create_config, seed=seed, auto=True, save_cfg=False
    )
    learn, collect, model = cfg.policy.learn, cfg.policy.collect, cfg.policy.model
    evaluator = cfg.policy.eval.evaluator
    # Evaluations are counted in updates there, in env steps here.
    on_policy = "epoch_per_collect" in learn
    updates = (
        learn.epoch_per_collect / learn.batch_size
        if on_policy
        else learn.update_per_collect / collect.n_sample
    )
    sizes = model.get("encoder_hidden_size_list") or [model.actor_head_hidden_size]
    job = {
        "policy": create_config.policy.type,
        "seed": seed,
        "env": cfg.env,
        "frame_stack": cfg.env.get("frame_stack"),
        "learn": learn,
        "collect": collect,
        "hidden": [sizes[0], model.actor_head_hidden_size],
        "random_collect_size": cfg.policy.get("random_collect_size", 0),
        "buffer_size": cfg.policy.other.get("replay_buffer", {}).get("replay_buffer_size"),
        "eval_every": round(evaluator.eval_freq / updates),
        "episodes": cfg.env.n_evaluator_episode,
        "goal": cfg.env.get("stop_value"),
        "env_step": args.env_step,
    }
    command = [peer_python("peers"), str(ROOT / "benchmarks" / "_sb3_returns.py")]
    done = subprocess.run(
        command,
        input=json.dumps(job, default=str),
        env={"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return {"failed": done.stderr.strip()[-2000:] or f"status {done.returncode}"}
    result = json.loads(done.stdout.splitlines()[-1])
    returns = result["evaluations"]["return"]
    facts = {"best_return": max(returns), "last_return": returns[-1]}
    return {"seed": seed, "settings": [], "commit": None, **facts, **result}


def _read_run(exp: Path, seed: int, settings: list[str]) -> dict[str, Any]:
    record = json.loads((exp / "run.json").read_text())
    evaluations = _evaluations(exp / "metrics.jsonl")
    return {
        "seed": seed,
        "status": record["status"],
        "env_steps": record.get("envstep", evaluations["env_step"][-1]),
        "updates": record.get("train_iter", evaluations["update"][-1]),
        "seconds": None if record["seconds"] is None else round(record["seconds"], 1),
        "best_return": max(evaluations["return"]),
        "last_return": evaluations["return"][-1],
        "settings": settings,
        "versions": record["versions"],
        "commit": (record["git"] or {}).get("commit"),
        "evaluations": evaluations,
    }


def _evaluations(metrics: Path) -> dict[str, list[float]]:
    """Env steps, updates and mean return of a run's evaluations, a list each."""
    columns: dict[str, list[float]] = {"env_step": [], "update": [], "return": []}
    for line in metrics.read_text().splitlines():
        row = json.loads(line)
        if "evaluator_iter/reward_mean" in row:
            columns["update"].append(row["step"])
            columns["return"].append(float(f"{row['evaluator_iter/reward_mean']:.6g}"))
        elif "evaluator_step/reward_mean" in row:
            columns["env_step"].append(row["step"])
    return columns


def store(out: Path, path: Path, result: dict[str, Any], peer: str | None = None) -> None:
    """Put a run into its config's file, in place of one of the same seed."""
    from ding.config import read_config

    main_config, create_config = read_config(str(path))
    prefix = "" if peer is None else f"{peer}_"
    file = out / f"{prefix}{path.stem.removesuffix('_config')}.json"
    runs = json.loads(file.read_text())["runs"] if file.exists() else []
    runs = [*(other for other in runs if other["seed"] != result["seed"]), result]
    facts = {
        "config": str(path.resolve().relative_to(ROOT)),
        "policy": create_config.policy.type,
        "env": main_config.env.get("env_id") or create_config.env.type,
        "goal": main_config.env.get("stop_value"),
        "peer": peer,
    }
    head = "".join(f'"{key}": {json.dumps(value)},\n' for key, value in facts.items())
    rows = [json.dumps(other) for other in sorted(runs, key=lambda other: other["seed"])]
    file.write_text("{" + head + '"runs": [\n' + ",\n".join(rows) + "\n]}\n")


def _words(result: dict[str, Any]) -> str:
    shown = ("failed", "status", "env_steps", "updates", "seconds", "best_return", "last_return")
    return ", ".join(f"{key} {result[key]}" for key in shown if key in result)


# ---------------------------------------------------------------------- pictures and table


def draw(results: list[dict[str, Any]], out: Path) -> dict[str, str]:
    """A picture per environment: median and range over the seeds. Returns file names by env."""
    import matplotlib

    matplotlib.use("svg")
    # The same curves make the same file.
    matplotlib.rcParams.update({"svg.hashsalt": "returns", "svg.fonttype": "none"})
    from matplotlib import pyplot

    by_env: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        by_env[result["env"]].append(result)
    files = {}
    for env, configs in by_env.items():
        figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
        for config in configs:
            steps, middle, low, high = band(config["runs"])
            style = "--" if config.get("peer") else "-"
            label = _label(config, configs)
            (line,) = axes.plot(steps, middle, style, linewidth=1.3, label=label)
            axes.fill_between(steps, low, high, alpha=0.15, color=line.get_color(), linewidth=0)
        for goal in {config["goal"] for config in configs if config["goal"] is not None}:
            axes.axhline(goal, color="grey", linestyle=":", linewidth=1)
        offline = all(_axis(config["runs"]) == "update" for config in configs)
        axes.set_xlabel("updates" if offline else "env steps")
        axes.set_ylabel("mean return of an evaluation")
        axes.set_title(f"{env}: median and range over seeds")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="x-small", ncols=2)
        files[env] = f"{env.replace('/', '_')}.svg"
        figure.savefig(out / files[env], metadata={"Date": None})
        pyplot.close(figure)
    return files


def band(runs: list[dict[str, Any]]) -> tuple[list[float], list[float], list[float], list[float]]:
    """Steps, and the runs' median, least and greatest return there.

    A run that has ended keeps its last return, one without an evaluation so far its first.
    """
    axis = _axis(runs)
    curves = [(run["evaluations"][axis], run["evaluations"]["return"]) for run in runs]
    steps = sorted({step for at, _ in curves for step in at})
    columns = [[values[max(bisect_right(at, s) - 1, 0)] for at, values in curves] for s in steps]
    return steps, [median(c) for c in columns], [min(c) for c in columns], [max(c) for c in columns]


def _axis(runs: list[dict[str, Any]]) -> str:
    """Unit of the curves' x axis: updates, where nothing is collected."""
    return "env_step" if any(run["env_steps"] for run in runs) else "update"


def _label(config: dict[str, Any], others: list[dict[str, Any]]) -> str:
    """The policy, or the config's name where others have the same policy."""
    kind = config["policy"], config.get("peer")
    alone = sum((other["policy"], other.get("peer")) == kind for other in others) == 1
    name = config["policy"] if alone else Path(config["config"]).stem.removesuffix("_config")
    return f"SB3: {name}" if config.get("peer") else name


HEADER = """\
| config | policy | goal | reached | env steps to the goal: median [min .. max] | best return: \
median [min .. max] | last return: median | seconds: median | commit | paper | the config says |
|---|---|---|---|---|---|---|---|---|---|---|"""


def _page(results: list[dict[str, Any]], pictures: dict[str, str], folder: str) -> str:
    published = _compared_returns.PUBLISHED
    parts = [
        "# Returns over seeds",
        f"`python benchmarks/returns.py --draw` makes this page from the runs in [`{folder}/`]"
        f"({folder}). A run ends at the first evaluation whose mean return reaches the goal. For a "
        "seed that does not reach it, the steps of the whole run are counted (≥). *Seconds* are "
        "wall time on one core of a shared machine. Offline runs always use their whole data set. "
        "Runs marked † were made before a change in how gymnasium's environments are seeded; the "
        "same seeds give other runs now. Dashed curves are SB3's, with the hyperparameters of the "
        "config.",
        "## Next to SB3",
        "SB3 2.9 on the same machine, with the same simulator and the config's hyperparameters. "
        "The return of a run at an env step is the mean of its evaluations over the last tenth of "
        "the steps up to it. The number after the interval is the number of seeds.",
        _compared_returns.peer_table(results),
        "Where all our seeds reach the goal, the table compares the env steps to it; for a run "
        "that does not reach it, all steps are counted.",
        _compared_returns.goal_table(results),
        "## Next to published returns",
        "Published returns at the same number of steps, averaged in the same way: "
        f"[{published['source']}]({published['url']}). Hyperparameters of PPO "
        "and TD3 differ; SAC uses learning rates of 1e-3 and a fixed temperature on both sides.",
        _compared_returns.published_table(results),
    ]
    for env, file in pictures.items():
        shown = [result for result in results if result["env"] == env]
        parts += [f"## {env}", f"![returns of {env}]({folder}/{file})"]
        parts += ["\n".join([HEADER, *map(_row, shown)])]
        parts += ["```sh\n" + "\n".join(map(_command, shown)) + "\n```"]
    return "\n\n".join(parts) + "\n"


def _command(result: dict[str, Any]) -> str:
    """What makes the runs again."""
    runs = result["runs"]
    seeds = [run["seed"] for run in runs]
    is_range = len(seeds) > 1 and seeds == list(range(seeds[0], seeds[-1] + 1))
    words = ["python benchmarks/returns.py", result["config"], "--seeds"]
    words.append(f"{seeds[0]}-{seeds[-1]}" if is_range else ",".join(map(str, seeds)))
    if _axis(runs) == "update":
        words.append(f"--mode {MODES.get(result['policy'], 'serial_offline')}")
    elif max(run["env_steps"] for run in runs) > 1.1 * DEFAULT_LIMIT:
        # Runs end at the first round of steps beyond the limit, or before it at the goal.
        limit = max(run["env_steps"] for run in runs)
        unit = 10 ** (len(str(limit)) - 2)
        limit += 0 if any(run["status"] == "finished" for run in runs) else unit
        words.append(f"--env-step {limit // unit * unit}")
    words += [f"--peer {result['peer']}"] if result.get("peer") else []
    words += [f"--set {text}" for text in sorted({t for run in runs for t in run["settings"]})]
    return " ".join(words)


def _row(result: dict[str, Any]) -> str:
    runs = result["runs"]
    axis, key = ("", "env_steps") if _axis(runs) == "env_step" else (" updates", "updates")
    reached = [run["status"] == "converged" for run in runs]
    steps = [run[key] for run in runs]
    best = [run["best_return"] for run in runs]
    seconds = [run["seconds"] for run in runs if run["seconds"] is not None]
    sign = "" if all(reached) else "≥ "
    peer = result.get("peer")
    versions = sorted({f"SB3 {run['versions']['stable-baselines3']}" for run in runs if peer})
    name = f"[{Path(result['config']).stem.removesuffix('_config')}](../{result['config']})"
    cells = [
        f"SB3 on {name}" if peer else name,
        result["policy"],
        "-" if result["goal"] is None else f"{result['goal']:g}",
        f"{sum(reached)} of {len(runs)}",
        f"{sign}{median(steps):,.0f} [{min(steps):,} .. {max(steps):,}]{axis}",
        f"{median(best):.4g} [{min(best):.4g} .. {max(best):.4g}]",
        f"{median(run['last_return'] for run in runs):.4g}",
        f"{median(seconds):.0f}" if seconds else "-",
        ", ".join(versions) if peer else zoo.commits([run["commit"] for run in runs]),
        _paper(result["policy"]),
        "the config's hyperparameters" if peer else _about(ROOT / result["config"]),
    ]
    return "| " + " | ".join(cells) + " |"


def _paper(policy: str) -> str:
    from ding.utils import POLICY_REGISTRY

    return getattr(POLICY_REGISTRY.get(policy), "paper", "")


def _about(path: Path) -> str:
    """The first paragraph of a config's docstring, as one line."""
    text = ast.get_docstring(ast.parse(path.read_text())) or "" if path.exists() else ""
    return " ".join(text.partition("\n\n")[0].split())


if __name__ == "__main__":
    main()
