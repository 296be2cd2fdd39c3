"""Users' environments that declare other spaces than they have; policies without `model`."""

import numpy as np
import pytest
from easydict import EasyDict
from gymnasium import spaces

from ding.config.check import Notes
from ding.config.compile import compile_run_config, complete_parallel
from ding.entry import serial_pipeline
from ding.model import DQN
from ding.policy.command_mode_policy_instance import DQNCommandModePolicy
from ding.utils import ENV_REGISTRY, MODEL_REGISTRY, POLICY_REGISTRY
from ding.utils.errors import ConfigError, EnvError
from tests.entry.runs import WalkEnv

SHAPES = dict(obs_shape=3, action_shape=2)
HIDDEN = dict(encoder_hidden_size_list=[8])


@pytest.fixture
def declare(tmp_path, monkeypatch):
    """Registers an environment of three numbers and two choices that declares other spaces."""
    monkeypatch.chdir(tmp_path)

    def register(action=None, observation=None, fails=None):
        class Misdeclared(WalkEnv):
            def __init__(self, cfg):
                if fails:
                    raise OSError(fails)
                super().__init__(cfg)
                self.action_space = action or self.action_space
                self.observation_space = observation or self.observation_space

        ENV_REGISTRY.register("misdeclared", force_overwrite=True)(Misdeclared)

    yield register
    ENV_REGISTRY.pop("misdeclared", None)


def configs(model, manager="base", policy="dqn"):
    env = dict(collector_env_num=2, evaluator_env_num=1, n_evaluator_episode=1, stop_value=11)
    settings = dict(learn=dict(batch_size=4), collect=dict(n_sample=8))
    if model is not None:
        settings["model"] = {**HIDDEN, **model}
    types = dict(env=dict(type="misdeclared"), env_manager=dict(type=manager))
    return dict(exp_name="run", env=env, policy=settings), dict(types, policy=dict(type=policy))


BOXES = [
    spaces.Box(0, 1, (1,), np.int64),
    spaces.Box(0, 1, (), np.int64),
    spaces.Box(0, 1, (1,), np.float32),
    spaces.Box(-1, 1, (2,), np.float32),
]


@pytest.mark.parametrize("box", BOXES, ids=str)
def test_a_box_for_discrete_actions(declare, box, caplog):
    declare(action=box)
    serial_pipeline(configs(SHAPES), seed=0, max_train_iter=2)
    lines = [line for line in caplog.messages if "declare actions" in line]
    assert len(lines) == 1
    assert "taken as policy.model.action_shape=2 choices" in lines[0]


@pytest.mark.parametrize("box", BOXES, ids=str)
def test_choices_of_a_box_where_none_are_given(declare, box):
    declare(action=box)
    if box.dtype.kind == "f":
        with pytest.raises(ConfigError, match=r"missing key policy\.model\.action_shape"):
            compile_run_config(*configs({}))
    else:
        assert compile_run_config(*configs({})).policy.model.action_shape == 2


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (7,), np.float32),
        spaces.Box(-1, 1, (3, 4, 4), np.float32),
        spaces.Discrete(9),
        spaces.Dict(a=spaces.Box(-1, 1, (3,))),
    ],
    ids=str,
)
@pytest.mark.parametrize("manager", ["base", "subprocess"])
def test_observations_count_and_not_their_space(declare, space, manager):
    declare(observation=space)
    notes = Notes()
    cfg = compile_run_config(*configs({}, manager), notes=notes)
    assert cfg.policy.model.obs_shape == 3
    assert "its reset returns an array of [3]" in notes.text
    serial_pipeline(configs(SHAPES, manager), seed=0, max_train_iter=1)


def test_an_environment_that_cannot_be_made_is_the_only_error(declare):
    declare(fails="no licence")
    with pytest.raises(EnvError, match="no licence") as caught:
        compile_run_config(*configs({}))
    assert "obs_shape" not in str(caught.value)


def test_parallel_configs_are_checked_before_anything_starts(declare):
    declare()
    main, create = configs(dict(obs_shape=7, action_shape=2))
    with pytest.raises(ConfigError, match=r"policy.model.obs_shape=7 does not fit .*set it to 3"):
        complete_parallel(main, create, {})
    notes = Notes()
    declare(action=BOXES[2])
    complete_parallel(*configs(SHAPES), {}, notes=notes)
    assert "taken as policy.model.action_shape=2 choices" in notes.text
    declare(fails="no licence")
    complete_parallel(*configs(SHAPES), {}, notes=notes)  # workers may be elsewhere
    assert "no licence" in notes.text


class OwnNetwork(DQNCommandModePolicy):
    """Builds its own network, and has no section for it."""

    @classmethod
    def default_config(cls):
        config = super().default_config()
        config.pop("model", None)
        return config

    def _create_model(self, cfg, model=None):
        return super()._create_model(cfg, model or DQN(3, 2, encoder_hidden_size_list=[8]))


def test_a_policy_without_a_section_for_its_network(declare):
    declare()
    policy = OwnNetwork(OwnNetwork.default_config())
    assert sum(one.numel() for one in policy.learn_mode.get_attribute("model").parameters())
    POLICY_REGISTRY.register("own_network_command", force_overwrite=True)(OwnNetwork)
    try:
        serial_pipeline(configs(None, policy="own_network_command"), seed=0, max_train_iter=2)
        complete_parallel(*configs(None, policy="own_network_command"), {})
    finally:
        POLICY_REGISTRY.pop("own_network_command")


@pytest.mark.parametrize(("name", "network"), [("dqn", "dqn"), ("r2d2", "drqn"), ("mdqn", "dqn")])
def test_a_given_network_needs_no_section(name, network):
    cls = POLICY_REGISTRY.get(name)
    config = EasyDict({key: one for key, one in cls.default_config().items() if key != "model"})
    model = MODEL_REGISTRY.get(network)(**SHAPES, **HIDDEN)
    assert cls(config, model=model).learn_mode.get_attribute("model") is model
