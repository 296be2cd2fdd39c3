"""The zoo: policies that come with the package, made by ``returns.py --zoo`` (``make zoo``).

Of the runs of a config the zoo has the best checkpoint of the one that returns most over
``EPISODES`` fresh episodes, and no less than the goal: ``ding/zoo/<name>.pth.tar``, weights alone,
and ``<name>.yaml``, what acting needs of the config and what is known of the policy.
``docs/zoo.md`` lists them.
"""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median, pstdev
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ZOO = ROOT / "ding" / "zoo"
#: Configs by the names of their policies in the zoo.
CONFIGS = {
    f"{env}_{policy}": ROOT / "configs" / env / f"{env}_{policy}_config.py"
    for env, policies in {
        "cartpole": (
            *("a2c", "acer", "c51", "impala", "mdqn", "pg", "ppg", "ppo", "ppo_offpolicy"),
            *("ppo_pg", "qrdqn", "rainbow", "sql", "sqn"),
        ),
        "pendulum": ("bdq", "d4pg", "ddpg", "ppo", "sac", "td3"),
        "bitflip": ("dqn",),
        "matrix_game": ("qmix",),
        "lunarlander": ("dqn", "ppo", "cont_sac", "cont_td3"),
    }.items()
    for policy in policies
}
#: The least return of policies whose configs name a ``stop_value`` beyond what is reached.
LEAST = {
    "halfcheetah_ppo": 5000,
    "halfcheetah_sac": 5000,
    "halfcheetah_td3": 5000,
    "hopper_ppo": 3000,
    "hopper_sac": 2500,
    "hopper_td3": 2500,
    "swimmer_ppo": 40,
    "walker2d_ppo": 4000,
}
CONFIGS |= {name: ROOT / f"configs/mujoco/{name}_config.py" for name in LEAST}
#: Of two configs of DQN the one that is trained until CartPole counts as solved.
CONFIGS["cartpole_dqn"] = ROOT / "configs/cartpole/cartpole_dqn_475_config.py"
EPISODES, SEED = 100, 10_000
MOST_BYTES = 500_000
_OF_LEARNING = ("learn", "collect", "eval", "other")


def keep(exp: Path, config: Path, seed: int) -> str:
    """Put the best policy of a run into the zoo if it returns more than the one that is there.

    Args:
        exp: The run's folder.
        config: File of its config, one of `CONFIGS`.
        seed: That of the run.

    Returns:
        A sentence on what was done.
    """
    from ding.config import read_config, save_config
    from ding.config.save import plain
    from ding.entry.application_entry import evaluate
    from ding.utils import read_file, save_file

    name = next(name for name, path in CONFIGS.items() if path == config.resolve())
    main, create = (plain(part) for part in read_config(str(config)))
    state = _small(read_file(str(exp / "ckpt" / "ckpt_best.pth.tar")))
    many = {"n_evaluator_episode": EPISODES, "evaluator_env_num": 20}
    judged = {**main, "env": {**main["env"], **many}}
    returns = evaluate((judged, create), SEED, state_dict=state)
    record = json.loads((exp / "run.json").read_text())
    facts = {
        "config": str(config.resolve().relative_to(ROOT)),
        "policy": create["policy"]["type"],
        "env": main["env"].get("env_id") or create["env"]["type"],
        "goal": LEAST.get(name, main["env"]["stop_value"]),
        "episodes": EPISODES,
        "mean": float(f"{mean(returns):.5g}"),
        "std": float(f"{pstdev(returns):.3g}"),
        "seed": seed,
        "env_steps": record["envstep"],
        "commit": (record["git"] or {}).get("commit"),
    }
    if facts["mean"] < facts["goal"]:
        return f"not in the zoo: {name} with {facts['mean']:g}, which misses {facts['goal']:g}"
    before = _facts().get(name)
    if before is not None and before["mean"] >= facts["mean"]:
        return f"the zoo keeps {name} with {before['mean']:g}, this one has {facts['mean']:g}"
    ZOO.mkdir(exist_ok=True)
    path = ZOO / f"{name}.pth.tar"
    save_file(str(path), state)
    if path.stat().st_size > MOST_BYTES:
        path.unlink()
        return f"not in the zoo: {name} has more than {MOST_BYTES} bytes"
    whole = {"zoo": facts, "main_config": acting_part(main), "create_config": create}
    save_config(whole, str(ZOO / f"{name}.yaml"), "yaml")
    return f"in the zoo: {name} with {facts['mean']:g} over {EPISODES} episodes"


def acting_part(main: dict[str, Any]) -> dict[str, Any]:
    """A main config without how it learns: that is in the config that the facts name."""
    policy = {key: main["policy"][key] for key in main["policy"] if key not in _OF_LEARNING}
    return {**main, "policy": policy}


def _small(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """What acting needs of a checkpoint.

    Weights are in half precision where acting does not need them, which are a critic's, and
    everywhere if they are too large otherwise; networks that load them have single precision again.
    """
    weights = checkpoint["model"]
    small = {key: v.half() if key.startswith("critic") else v for key, v in weights.items()}
    if sum(value.nbytes for value in small.values()) > 0.95 * MOST_BYTES:
        small = {key: v.half() if v.is_floating_point() else v for key, v in weights.items()}
    kept = {key: checkpoint[key] for key in ("env_statistics",) if key in checkpoint}
    return {"model": small, **kept}


def _facts() -> dict[str, dict[str, Any]]:
    """What is known of the zoo's policies, by name."""
    from ding.config.read import read_config_directly

    files = sorted(ZOO.glob("*.yaml"))
    return {file.stem: read_config_directly(str(file))["zoo"] for file in files}


# ---------------------------------------------------------------------- the page

_INTRO = f"""\
# Zoo

Trained policies that are part of the package. `ding eval zoo:` lists them, `ding eval zoo:NAME`
evaluates one:

```sh
ding eval zoo:cartpole_dqn
ding eval zoo:cartpole_dqn --replay-path video    # with videos: pip install 'ding[video]'
ding eval zoo:pendulum_sac --episodes 20 -s 7
```

```python
import ding
import gymnasium

policy = ding.load("zoo:cartpole_dqn")
obs, _ = gymnasium.make("CartPole-v1").reset(seed=0)
print(policy.act(obs))
```

`ding eval` also takes the folder of a run.

*Return* is the mean and standard deviation of the bundled checkpoint (of the best seed) over
{EPISODES} episodes with other seeds than in training. *Last evaluations* shows what a single run of
the config is likely to return: the mean return of each seed's last evaluation. † marks configs with
runs from before a change in how gymnasium's environments are seeded. `make zoo` trains the policies
again and writes this page."""

_HEADER = """\
| policy | return | goal | seeds at the goal | last evaluations: median [min .. max] | commit | kB |
|---|---|---|---|---|---|---|"""

_OTHERS = """\
## Other configs

Their returns are in [Returns over seeds](returns.md).

| environment | policies |
|---|---|"""


def page(returns: Path) -> str:
    """The text of ``docs/zoo.md``.

    Args:
        returns: Folder of the runs' JSON files.
    """
    facts = _facts()
    rows = [_row(name, known, returns) for name, known in facts.items()]
    taken = {known["config"] for known in facts.values()}
    others: dict[str, list[str]] = {}
    for path in sorted((ROOT / "configs").glob("*/*_config.py")):
        relative = str(path.relative_to(ROOT))
        if relative not in taken:
            env = path.parent.name
            policy = path.stem.removesuffix("_config").removeprefix(f"{env}_")
            others.setdefault(env, []).append(f"[{policy}](../{relative})")
    lines = [f"| {env} | {', '.join(links)} |" for env, links in others.items()]
    return "\n\n".join([_INTRO, "\n".join([_HEADER, *rows]), "\n".join([_OTHERS, *lines])]) + "\n"


def _row(name: str, facts: dict[str, Any], returns: Path) -> str:
    file = returns / f"{Path(facts['config']).stem.removesuffix('_config')}.json"
    runs = json.loads(file.read_text())["runs"] if file.exists() else []
    last = [run["last_return"] for run in runs]
    reached = sum(run["best_return"] >= facts["goal"] for run in runs)
    spread = f"{median(last):.4g} [{min(last):.4g} .. {max(last):.4g}]" if last else "-"
    is_older = "†" in commits([run["commit"] for run in runs])
    cells = [
        f"[zoo:{name}](../{facts['config']})",
        f"{facts['mean']:.4g} ± {facts['std']:.3g}",
        f"{facts['goal']:g}",
        f"{reached} of {len(runs)}",
        spread + (" †" if is_older else ""),
        commits([facts["commit"]]),
        f"{(ZOO / f'{name}.pth.tar').stat().st_size / 1000:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


#: Where environments of gymnasium were seeded otherwise until then: other runs of the same seeds.
SEEDED_ANEW = "98a9826"


def commits(made: Sequence[str | None]) -> str:
    """Short names of commits; those from before `SEEDED_ANEW`, or not known, have a †."""
    words = []
    for commit in sorted({one or "" for one in made}):
        command = ["git", "merge-base", "--is-ancestor", SEEDED_ANEW, commit or "none"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True)
        words.append((commit[:7] or "not known") + ("" if done.returncode == 0 else " †"))
    return ", ".join(words)
