"""Every shipped config compiles, runs for a moment, runs again as it was saved, and is a script."""

import importlib.util
import json
import re
import runpy
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import ding.entry
from ding.config import read_config
from ding.policy import get_policy_cls
from ding.utils import ENV_REGISTRY, save_file

CONFIGS = Path(__file__).parents[2] / "configs"
PATHS = sorted(p for p in CONFIGS.rglob("*_config.py") if p.parent.name != "parallel")
EACH = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
SAMPLES = 128
#: Environments whose episodes take long, or much work.
LONG = ("PongNoFrameskip-v4", "HalfCheetah-v5", "Hopper-v5")
#: Pipelines whose configs name an expert that is another config's run; their policies train
#: without one, too.
EXPERTS = ("serial_pipeline_dqfd", "serial_pipeline_r2d3")
#: What limits the pipelines that train on a data set.
LIMITS = {
    "serial_pipeline_offline": "max_train_iter",
    "serial_pipeline_dt": "max_train_iter",
    "serial_pipeline_bc": "max_iter",
}


def _slow_if_long(path):
    is_long = any(f'"{env_id}"' in path.read_text() for env_id in LONG)
    return pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if is_long else [])


def read(path):
    main_config, create_config = read_config(str(path))
    if "box2d" in path.read_text() and importlib.util.find_spec("Box2D") is None:
        pytest.skip("LunarLander needs the extra [box2d]")
    simulator = getattr(ENV_REGISTRY.get(create_config.env.type), "needs", None)
    if simulator is not None and not simulator.is_installed:
        pytest.skip(f"the extra [{simulator.extra}] is not installed")
    if main_config.env.get("env_id") in LONG:
        create_config.env_manager.type = "base"  # processes take their time to start
    return main_config, create_config


def pipeline_of(path):
    """The pipeline that a config runs as a script."""
    return re.findall(r"serial_pipeline\w*(?=\()", path.read_text())[-1]


def save_random_transitions(path, env_id, seed=0):
    rng, env = np.random.default_rng(seed), gymnasium.make(env_id)
    rows, (obs, _) = [], env.reset(seed=seed)
    for _ in range(SAMPLES):
        if isinstance(env.action_space, gymnasium.spaces.Box):
            action = rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        else:
            action = rng.integers(env.action_space.n)
        next_obs, reward, done, truncated, _ = env.step(action)
        row = {"obs": obs, "next_obs": next_obs, "action": np.array(action)}
        rows.append({**row, "reward": np.array([reward], np.float32), "done": done})
        obs = env.reset()[0] if done or truncated else next_obs
    save_file(str(path), rows)


def made_small(main_config, exp_name):
    main_config.exp_name = str(exp_name)
    main_config.env.update(evaluator_env_num=1, n_evaluator_episode=1, stop_value=float("inf"))
    if main_config.env.get("env_id") in LONG:
        main_config.env.update(max_episode_steps=SAMPLES, collector_env_num=2)
        main_config.policy.learn.batch_size = min(main_config.policy.learn.batch_size, SAMPLES)
    collect = main_config.policy.collect
    if "data_path" in collect:
        collect.data_path = str(exp_name.with_suffix(".pkl"))
        save_random_transitions(collect.data_path, main_config.env.env_id)
    elif "n_sample" in collect:
        collect.n_sample = min(collect.n_sample, SAMPLES)
    learn = main_config.policy.learn
    for repeats in ("update_per_collect", "epoch_per_collect"):
        if repeats in learn:
            learn[repeats] = min(learn[repeats], 2)
    if "learn_unroll_len" in main_config.policy:  # samples are sequences of many steps
        main_config.policy.learn.batch_size = collect.n_sample
    if "bco" in main_config:
        main_config.bco.alpha = 1.0  # as many steps before the first round as in it
    if "random_collect_size" in main_config.policy:
        main_config.policy.random_collect_size = SAMPLES
    return main_config


def test_there_are_configs():
    assert {path.parent.name for path in PATHS} >= {
        "cartpole",
        "coin_race",
        "lunarlander",
        "pendulum",
    }


@pytest.mark.parametrize("path", [_slow_if_long(path) for path in PATHS])
def test_runs_and_runs_again_as_saved(path, tmp_path):
    main_config, create_config = read(path)
    assert main_config.exp_name == f"exp/{path.stem.removesuffix('_config')}"
    name = pipeline_of(path)
    name = "serial_pipeline" if name in EXPERTS else name
    pipeline, offline = getattr(ding.entry, name), name in LIMITS
    limit = {LIMITS[name]: 4} if offline else {"max_env_step": 2 * SAMPLES}
    first = tmp_path / "first"
    pipeline((made_small(main_config, first), create_config), seed=0, **limit)
    again = read_config(str(first / "formatted_total_config.py"))
    again[0].exp_name = str(tmp_path / "again")
    pipeline(again, seed=0, **limit)
    ends = [json.loads((tmp_path / run / "run.json").read_text()) for run in ("first", "again")]
    assert ends[0]["envstep"] == ends[1]["envstep"]
    assert offline or ends[0]["envstep"] >= 2 * SAMPLES
    assert ends[0]["best_return"] == ends[1]["best_return"]
    assert ends[0]["train_iter"] == ends[1]["train_iter"] > 0


@EACH
def test_is_a_script(path, monkeypatch, tmp_path):
    started = []
    monkeypatch.chdir(tmp_path)
    if data := read_config(str(path))[0].policy.collect.get("data_path"):
        save_file(data, [])  # some collect theirs if it does not exist
    for name in (name for name in ding.entry.__all__ if name.startswith("serial_pipeline")):
        monkeypatch.setattr(
            ding.entry,
            name,
            lambda cfg, *expert, name=name, **options: started.append((name, *cfg)),
        )
    monkeypatch.setattr("sys.argv", [str(path)])
    script = runpy.run_path(str(path), run_name="__main__")
    policy = get_policy_cls(script["create_config"].policy)
    name = pipeline_of(path)
    assert started == [(name, script["main_config"], script["create_config"])]
    if name in ("serial_pipeline", "serial_pipeline_onpolicy"):  # what `ding -c` starts
        assert policy.default_config().on_policy == name.endswith("_onpolicy")
        assert not policy.pipeline
