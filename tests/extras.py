"""Each extra installed alone in a fresh environment, and its smallest example.

    python tests/extras.py             # all: half an hour, and some GB that are removed again
    python tests/extras.py mujoco ray  # some; "core" is the package without an extra

The environment of the tests has nearly all extras, so that it cannot show that one of them lacks a
package that another one brings. Prints a row for each; exits with 1 if one failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUN = "ding train CartPole-v1 dqn --env-step 200 --exp-name run"


def trains(env: str, policy: str = "ppo", manager: str = "base", **env_cfg: object) -> str:
    """A few steps in a built-in environment, whose config names nothing else."""
    env_cfg |= dict(collector_env_num=2, evaluator_env_num=1, n_evaluator_episode=1)
    collect = dict(n_sample=8)
    main = dict(exp_name="run", env=env_cfg, policy=dict(collect=collect))
    if policy == "ppo" and env == "petting_zoo":
        main["policy"] |= dict(multi_agent=True)  # type: ignore[operator]
    create = dict(env=dict(type=env), env_manager=dict(type=manager), policy=dict(type=policy))
    pipeline = "serial_pipeline_onpolicy" if policy == "ppo" else "serial_pipeline"
    return python(
        f"from ding.entry import {pipeline}\n"
        f"{pipeline}(({main!r}, {create!r}), seed=0, max_env_step=16)"
    )


def tracked(tracker: str, **options: object) -> str:
    main = dict(
        exp_name="run",
        trackers={tracker: options},
        env=dict(env_id="CartPole-v1", collector_env_num=2, evaluator_env_num=1),
    )
    create = dict(env=dict(type="cartpole"), policy=dict(type="dqn"))
    return python(
        "from ding.entry import serial_pipeline\n"
        f"serial_pipeline(({main!r}, {create!r}), seed=0, max_env_step=200)"
    )


def python(code: str) -> str:
    return f"python - <<'END'\n{code}\nEND"


PARALLEL = ROOT / "configs" / "cartpole" / "parallel" / "cartpole_dqn_config.py"
#: A line of shell for each extra.
EXAMPLES = {
    "core": f"{RUN} && ding eval run",
    "test": f"python -m pytest -q -c {ROOT}/pytest.ini {ROOT}/tests/rl_utils",
    "bench": f"python {ROOT}/benchmarks/returns.py --draw --out returns",
    "board": f"{RUN} && timeout 5 ding board run; test $? = 124",
    "docs": f"python -m mkdocs build -q -f {ROOT}/mkdocs.yml -d $PWD/site",
    "browser": python("import playwright.sync_api"),
    "types": python("import basedpyright"),
    "plot": f"{RUN} && ding plot run -o returns.png && test -s returns.png",
    "sweep": "echo 'policy.nstep: [1, 3]' > space.yaml && ding sweep -e CartPole-v1 -p dqn"
    " --env-step 200 --space space.yaml --trials 1",
    "onnx": f"{RUN} && " + python("import ding; ding.load('run').export('policy.onnx')"),
    "video": f"{RUN} && ding eval run --replay-path video && ls video/*.mp4",
    "box2d": trains("lunarlander"),
    "atari": trains("atari", env_id="PongNoFrameskip-v4", max_episode_steps=20),
    "mujoco": trains("mujoco", env_id="HalfCheetah-v5", max_episode_steps=20),
    "minigrid": trains("minigrid", env_id="MiniGrid-Empty-8x8-v0"),
    "envpool": trains("gymnasium", manager="env_pool", env_id="CartPole-v1"),
    "pettingzoo": trains("petting_zoo", env_family="mpe", env_id="simple_spread_v3"),
    "hdf5": python(
        "import numpy as np\n"
        "from ding.data import Columns, create_dataset, offline_data_save_type\n"
        "data = dict(obs=np.zeros((9, 2), np.float32), action=np.zeros(9, np.int64))\n"
        "offline_data_save_type(Columns(data), 'demo.pkl', data_type='hdf5')\n"
        "cfg = dict(data_path='demo_demos.hdf5', data_type='hdf5')\n"
        "print(len(create_dataset(dict(policy=dict(collect=cfg)))))"
    ),
    "minari": python(
        "import gymnasium, minari\n"
        "from easydict import EasyDict\n"
        "from ding.data import create_dataset\n"
        "env = minari.DataCollector(gymnasium.make('CartPole-v1'))\n"
        "for seed in range(3):\n"
        "    env.reset(seed=seed)\n"
        "    while not any(env.step(env.action_space.sample())[2:4]):\n"
        "        pass\n"
        "env.create_dataset('cartpole/test-v0')\n"
        "collect = dict(data_type='minari', data_path='cartpole/test-v0')\n"
        "print(len(create_dataset(EasyDict(policy=dict(collect=collect)))))"
    ),
    "ray": f"ding -m parallel -c {PARALLEL} --engine ray --exp-name run --train-iter 50",
    "tensorboard": f"{RUN} && tensorboard --inspect --logdir run",
    "wandb": tracked("wandb", project="cartpole", mode="offline"),
    "mlflow": tracked("mlflow", tracking_uri="sqlite:///mlflow.db"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("extras", nargs="*", help=f"of {', '.join(EXAMPLES)}; all by default")
    extras = parser.parse_args().extras or list(EXAMPLES)
    if unknown := set(extras) - EXAMPLES.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    failed = [extra for extra in extras if not passes(extra)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def passes(extra: str) -> bool:
    """Install an extra, run its example, and print what came of it."""
    with tempfile.TemporaryDirectory(prefix=f"extra_{extra}_") as folder:
        venv = Path(folder, "venv")
        what = str(ROOT) if extra == "core" else f"{ROOT}[{extra}]"
        install = (
            f"{sys.executable} -m venv {venv} && {venv}/bin/python -m pip install -q"
            f" -c {ROOT}/constraints.txt '{what}'"
        )
        steps = {"install": install, "example": EXAMPLES[extra]}
        environ = {**os.environ, "PATH": f"{venv}/bin:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        environ |= {"DING_CONSOLE": "plain", "MINARI_DATASETS_PATH": folder}
        environ.pop("PYTHONPATH", None)
        cells = [extra]
        for name, command in steps.items():
            begin = time.perf_counter()
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env=environ,
                text=True,
                timeout=1200,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            cells.append(f"{name} {time.perf_counter() - begin:.0f} s")
            if done.returncode:
                print(" | ".join([*cells, "**failed**"]), done.stdout[-3000:], sep="\n", flush=True)
                return False
    print(" | ".join([*cells, "passed"]), flush=True)
    return True


if __name__ == "__main__":
    main()
