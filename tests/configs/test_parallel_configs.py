"""Every shipped parallel config compiles, gives its workers tasks, is a script, and reaches its
goal."""

import importlib.util
import json
import runpy
from pathlib import Path

import pytest

import ding.entry
from ding.config import compile_config_parallel, read_config_with_system
from ding.envs.env.base_env import get_vec_env_setting
from ding.worker import create_parallel_commander

CONFIGS = Path(__file__).parents[2] / "configs"
PATHS = sorted(CONFIGS.glob("*/parallel/*_config.py"))
EACH = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])


def read(path):
    if "box2d" in path.read_text() and importlib.util.find_spec("Box2D") is None:
        pytest.skip("LunarLander needs the extra [box2d]")
    return read_config_with_system(str(path))


def test_there_are_configs():
    assert {path.parent.parent.name for path in PATHS} >= {"cartpole", "coin_race", "lunarlander"}


@EACH
def test_compiles_into_tasks(path, tmp_path):
    main_config, create_config, system_config = read(path)
    assert main_config.exp_name == f"exp/{path.stem.removesuffix('_config')}" + (
        "" if path.stem.endswith("one_vs_one_config") else "_parallel"
    )
    main_config.exp_name = str(tmp_path / "run")
    cfg = compile_config_parallel(
        main_config, create_cfg=create_config, system_cfg=system_config, save_cfg=False
    )
    commander = create_parallel_commander(cfg.main)
    learner_task = commander.get_learner_task()
    collector_task = commander.get_collector_task()
    if collector_task["collector_cfg"]["eval_flag"]:  # some commanders begin with one
        collector_task = commander.get_collector_task()
    assert learner_task["buffer_id"] == collector_task["buffer_id"]
    sent = json.loads(json.dumps([learner_task, collector_task]))
    own = sent[1]["collector_cfg"]
    assert own["type"] == create_config.collector.type
    assert own["env"]["manager"]["type"] == create_config.env_manager.type
    if "eps" in main_config.policy.other:
        assert own["collect_setting"]["eps"] > 0.9
    env_cls, collector_cfgs, _ = get_vec_env_setting(own["env"])
    assert len(collector_cfgs) == main_config.env.collector_env_num
    assert env_cls(collector_cfgs[0]).observation_space.shape[-1:] == (
        main_config.policy.model.obs_shape,
    )


@EACH
def test_is_a_script(path, monkeypatch):
    started = []
    monkeypatch.setattr(ding.entry, "parallel_pipeline", lambda cfg, seed: started.append(cfg))
    script = runpy.run_path(str(path), run_name="__main__")
    names = ("main_config", "create_config", "system_config")
    assert started == [tuple(script[name] for name in names)]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["cartpole_dqn", "coin_race_dqn_one_vs_one"])
def test_reaches_its_goal(name, tmp_path, learned):
    (path,) = (path for path in PATHS if path.stem == f"{name}_config")
    main_config, create_config, system_config = read(path)
    ding.entry.parallel_pipeline((main_config, create_config, system_config), seed=learned.seed)
    record = json.loads((tmp_path / main_config.exp_name / "run.json").read_text())
    learned.is_true(record["status"] == "converged", f"{record}")
    assert record["best_return"] >= main_config.env.stop_value
