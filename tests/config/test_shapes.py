"""Shapes that a config leaves out come from the environments that it names."""

import copy
import pathlib

import numpy as np
import pytest
from easydict import EasyDict
from gymnasium import spaces

from ding.config import read_config, read_config_directly, read_config_with_system
from ding.config.check import Notes
from ding.config.compile import compile_run_config, complete_parallel
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.envs import BaseEnv, DingEnvWrapper
from ding.policy.fit import check_fit, model_shapes
from ding.utils.errors import ConfigError

CONFIGS = pathlib.Path(__file__).parents[2] / "configs"
SHAPES = {
    *("obs_shape", "action_shape", "agent_num", "agent_obs_shape", "global_obs_shape"),
    *("alone_obs_shape",),
}
# The simulators of some are extras; the network of another has sizes of other names.
PATHS = [
    path
    for path in sorted(CONFIGS.rglob("*_config.py"))
    if path.parent.name not in ("atari", "mujoco", "minigrid") and "_dt_" not in path.name
]


def completed(path, strip):
    """The compiled main config, and what was noted; perhaps without any shapes in the file."""
    parts = read_config_directly(str(path))
    parallel = "system_config" in parts
    read = read_config_with_system if parallel else read_config
    main, *others = copy.deepcopy(read(str(path)))
    if strip:
        model = main.policy.model
        main.policy.model = EasyDict({k: v for k, v in model.items() if k not in SHAPES})
    notes = Notes()
    if parallel:
        return complete_parallel(main, *others, notes=notes).main, notes
    return compile_run_config(main, *others, collects=False, notes=notes), notes


def plain(shape):
    if isinstance(shape, dict):
        return {name: plain(part) for name, part in shape.items()}
    return [shape] if isinstance(shape, int) else list(shape)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_configs_need_no_shapes(path, monkeypatch):
    if path.parent.name in ("bipedalwalker", "lunarlander") or path.stem.startswith("lunarlander"):
        pytest.importorskip("Box2D", reason="the extra [box2d] is not installed")
    monkeypatch.chdir(path.parent)
    written, _ = completed(path, strip=False)
    inferred, notes = completed(path, strip=True)
    shapes = [{k: v for k, v in cfg.policy.model.items() if k in SHAPES}
              for cfg in (written, inferred)]  # fmt: skip
    assert plain(shapes[1]) == plain(shapes[0])
    line = next(line for line in notes.adapted if line.endswith("from the environment"))
    assert all(f"policy.model.{name} = " in line for name in shapes[0])


def configs(policy, env_id, **model):
    main = dict(
        exp_name="run",
        env=dict(env_id=env_id, collector_env_num=1, evaluator_env_num=1, n_evaluator_episode=1),
        policy=dict(model=model, collect=dict(n_sample=8)),
    )
    create = dict(
        env=dict(type="gymnasium"), env_manager=dict(type="base"), policy=dict(type=policy)
    )
    return main, create


def test_the_kind_of_actions_comes_along():
    notes = Notes()
    cfg = compile_run_config(*configs("ppo", "Pendulum-v1"), notes=notes)
    assert cfg.policy.action_space == "continuous"
    assert notes.adapted[-1] == (
        "policy.model.obs_shape = 3, policy.model.action_shape = 1, "
        "policy.action_space = 'continuous': from the environment"
    )
    # A value in the config is kept, and refused before training if it is wrong.
    main, create = configs("ppo", "Pendulum-v1")
    main["policy"]["action_space"] = "discrete"
    cfg = compile_run_config(main, create)
    assert cfg.policy.action_space == "discrete"


def test_runs_without_shapes():
    serial_pipeline(configs("dqn", "CartPole-v1"), max_train_iter=1)
    serial_pipeline_onpolicy(configs("ppo", "Pendulum-v1"), max_train_iter=1)


def test_no_environment_is_made_where_all_is_said(monkeypatch):
    monkeypatch.setattr("ding.config.defaults.create_env_manager", None)
    compile_run_config(*configs("dqn", "CartPole-v1", obs_shape=4, action_shape=2))


class Maze(BaseEnv):
    """Knows its spaces only when it has begun."""

    def __init__(self, cfg):
        self.closed, self.choices = False, cfg.get("choices", [2, 3])

    def reset(self):
        self.observation_space = spaces.Box(-1, 1, (3, 8, 8))
        self.action_space = spaces.MultiDiscrete(self.choices)
        return np.zeros((3, 8, 8), np.float32)

    def step(self, action):
        raise NotImplementedError

    def close(self):
        self.closed = True

    def seed(self, seed, dynamic_seed=True):
        pass


def test_given_environments():
    made = []

    def make(cfg):
        made.append(Maze(cfg))
        return made[-1]

    main, create = configs("dqn", None)
    del main["env"]["env_id"]
    cfg = compile_run_config(main, create, env_setting=[make, [{}], [{}]])
    assert cfg.policy.model == dict(obs_shape=[3, 8, 8], action_shape=[2, 3]) | cfg.policy.model
    assert len(made) == 1
    assert made[0].closed


def test_environments_are_seeded_before_their_shapes_are_looked_up():
    class Seeded(DingEnvWrapper):
        seeded = False

        def seed(self, seed, dynamic_seed=True):
            self.seeded = True

        def reset(self):
            assert self.seeded  # as environments do that make their generator there
            return super().reset()

    cfgs = [dict(env_id="CartPole-v1")]
    setting = (lambda cfg: Seeded(cfg=cfg)), cfgs, cfgs
    main = dict(env={}, policy=dict(collect=dict(n_sample=8)))
    cfg = compile_run_config(main, dict(policy=dict(type="dqn")), env_setting=setting)
    assert cfg.policy.model.obs_shape == 4


@pytest.mark.parametrize(
    ("env_id", "words"),
    [
        ("Blackjack-v1", r"observation_space is Tuple\(.*set env.env_wrapper=\['flatten_obs'\]"),
        ("NoSuchGame-v1", r"^env.env_id='NoSuchGame-v1' is not known to gymnasium: [^\n]*$"),
    ],
)
def test_what_cannot_be_known_is_named(env_id, words):
    with pytest.raises(ConfigError, match=words):
        compile_run_config(*configs("dqn", env_id))


def test_several_actions_are_branches():
    main, create = configs("bdq", None)
    del main["env"]["env_id"]
    envs = [Maze, [dict(choices=[3, 3])], []]
    cfg = compile_run_config(main, create, env_setting=envs)
    assert (cfg.policy.model.num_branches, cfg.policy.model.action_bins_per_branch) == (2, 3)


def test_images_with_their_colours_last_are_not_guessed():
    assert model_shapes(spaces.Box(0, 255, (96, 96, 3)), spaces.Discrete(5)) == {"action_shape": 5}


TEAM = {"agent_state": np.zeros((2, 8)), "global_state": np.zeros((2, 6))}


@pytest.mark.parametrize(
    ("space", "wrong", "words"),
    [
        (spaces.MultiDiscrete([5, 5]), dict(agent_num=3), "agent_num=3 .* set it to 2"),
        (spaces.MultiDiscrete([5, 5]), dict(agent_obs_shape=7), "agent_obs_shape=7 .* to 8"),
        (spaces.MultiDiscrete([5, 5]), dict(global_obs_shape=[12]), "global_obs_shape.* to 6"),
        (spaces.MultiDiscrete([5, 5]), dict(action_shape=10), "action_shape=10 .* set it to 5"),
        (spaces.Box(-1, 1, (2, 3)), dict(action_shape=6), "action_shape=6 .* set it to 3"),
    ],
)
def test_shapes_of_a_team_are_checked(space, wrong, words):
    class Env:
        action_space, ready_obs = space, {0: TEAM}

    right = dict(agent_num=2, agent_obs_shape=8, global_obs_shape=6)
    check_fit(dict(multi_agent=True, model=right), Env())
    with pytest.raises(ConfigError, match=words):
        check_fit(dict(multi_agent=True, model={**right, **wrong}), Env())
