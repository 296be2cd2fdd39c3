"""Completing configs, in both call styles."""

import copy
import os

import numpy as np
import pytest
from easydict import EasyDict

from ding.config import (
    compile_buffer_config,
    compile_collector_config,
    compile_config,
    read_config,
    read_config_directly,
)
from ding.entry.cli_runs import apply_overrides
from ding.envs import BaseEnvManager, DingEnvWrapper
from ding.policy import DQNPolicy, PPGOffPolicy, PPOPolicy
from ding.utils import BUFFER_REGISTRY, ENV_REGISTRY, MODEL_REGISTRY, POLICY_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.settings import at
from ding.worker import (
    AdvancedReplayBuffer,
    BaseLearner,
    EpisodeSerialCollector,
    InteractionSerialEvaluator,
    NaiveReplayBuffer,
    SampleSerialCollector,
)
from tests.children import start_python


def compiled(main, create, **options):
    return compile_config(EasyDict(main), auto=True, create_cfg=create, save_cfg=False, **options)


def test_completes_with_all_defaults(main, create):
    cfg = compiled(main, create, seed=3)
    assert isinstance(cfg, EasyDict)
    assert cfg.seed == 3
    assert cfg.policy.type == "dqn"
    assert cfg.policy.learn.update_per_collect == 3
    assert cfg.policy.learn.learner.hook.save_ckpt_after_iter == 10000
    assert cfg.env.manager.type == "base"
    assert cfg.env.manager.cfg_type == "BaseEnvManagerDict"
    assert cfg.policy.eval.evaluator.type == "interaction"


def test_swapped_configs_are_refused(main, create):
    with pytest.raises(ConfigError, match="main_config and create_config are swapped"):
        compiled(create, main)


def test_missing_env_manager_collector_and_buffer(main, create):
    del create["env_manager"]
    cfg = compiled(main, create)
    assert cfg.env.manager.type == "base"
    assert cfg.policy.collect.collector.type == "sample"
    assert cfg.policy.other.replay_buffer.type == "advanced"


def test_on_policy_has_no_buffer(main, create):
    create["policy"]["type"] = "ppo"
    del main["policy"]["other"]
    cfg = compiled(main, create)
    assert "replay_buffer" not in cfg.policy.other


def test_goals_reach_the_evaluator(main, create):
    evaluator = compiled(main, create).policy.eval.evaluator
    assert evaluator.stop_value == 195
    assert evaluator.n_episode == 5
    del main["env"]["stop_value"], main["env"]["n_evaluator_episode"]
    main["policy"]["eval"]["evaluator"].update(n_episode=8, stop_value=100)
    assert compiled(main, create).env.n_evaluator_episode == 8
    evaluator = compiled(main, create).policy.eval.evaluator
    assert evaluator.n_episode == 8
    assert evaluator.stop_value == 100


def test_goals_may_be_missing(main, create):
    del main["env"]["stop_value"], main["env"]["n_evaluator_episode"]
    cfg = compiled(main, create)
    assert cfg.policy.eval.evaluator.stop_value == float("inf")
    assert cfg.policy.eval.evaluator.n_episode == cfg.env.evaluator_env_num


def test_later_layers_win(main, create):
    # A component's own default, the policy's for it, create_config, the user.
    del main["policy"]["other"]
    assert compiled(main, create).policy.other.replay_buffer.replay_buffer_size == 10000
    create["replay_buffer"] = dict(type="advanced", replay_buffer_size=500)
    assert compiled(main, create).policy.other.replay_buffer.replay_buffer_size == 500
    main["policy"]["other"] = dict(replay_buffer=dict(replay_buffer_size=600))
    cfg = compiled(main, create)
    assert cfg.policy.other.replay_buffer.replay_buffer_size == 600
    assert cfg.policy.other.replay_buffer.alpha == 0.6


def test_episodes_instead_of_samples(main, create):
    main["policy"]["collect"] = dict(n_episode=4)
    create["collector"] = dict(type="episode")
    cfg = compiled(main, create)
    assert cfg.policy.collect.n_episode == 4
    assert "n_sample" not in cfg.policy.collect


def test_types_in_the_main_config(main, create):
    main["policy"]["collect"] = dict(n_episode=4, collector=dict(type="episode"))
    main["env"]["type"] = create.pop("env")["type"]
    cfg = compiled(main, create)
    assert cfg.create_config.collector.type == "episode"
    assert cfg.policy.collect.collector.get_train_sample is False
    assert cfg.env.manager.type == "base"


def test_classes_one_by_one(main):
    cfg = compile_config(
        EasyDict(main),
        BaseEnvManager,
        DQNPolicy,
        BaseLearner,
        SampleSerialCollector,
        InteractionSerialEvaluator,
        AdvancedReplayBuffer,
        save_cfg=False,
    )
    assert cfg.policy.type == "dqn"
    assert cfg.policy.other.replay_buffer.cfg_type == "AdvancedReplayBufferDict"
    assert cfg.env.manager.retry_type == "reset"
    assert cfg.create_config.policy.type == "dqn"


def test_usual_classes_are_filled_in(main):
    cfg = compile_config(EasyDict(main), BaseEnvManager, DQNPolicy, save_cfg=False)
    assert cfg.policy.collect.collector.cfg_type == "SampleSerialCollectorDict"
    assert cfg.policy.other.replay_buffer.cfg_type == "AdvancedReplayBufferDict"


def test_other_classes(main):
    main["policy"]["collect"] = dict(n_episode=8)
    cfg = compile_config(
        EasyDict(main),
        policy=DQNPolicy,
        collector=EpisodeSerialCollector,
        buffer=NaiveReplayBuffer,
        save_cfg=False,
    )
    assert cfg.policy.collect.collector.type == "episode"
    assert cfg.policy.other.replay_buffer.type == "naive"


def test_create_config_fills_in_classes_that_are_not_passed(main, create):
    create["collector"] = dict(type="episode")
    create["replay_buffer"] = dict(type="naive")
    main["policy"]["collect"] = dict(n_episode=8)
    cfg = compile_config(
        EasyDict(main),
        BaseEnvManager,
        DQNPolicy,
        buffer=AdvancedReplayBuffer,
        create_cfg=create,
        save_cfg=False,
    )
    assert cfg.policy.collect.collector.type == "episode"
    assert cfg.policy.other.replay_buffer.type == "advanced"
    assert cfg.create_config.replay_buffer.type == "advanced"
    assert cfg.create_config.env.type == "gymnasium"
    assert compile_config(main, create_cfg=create, save_cfg=False).policy.type == "dqn"


def test_classes_with_an_env(main):
    cfg = compile_config(
        EasyDict(main), BaseEnvManager, DQNPolicy, env=DingEnvWrapper, save_cfg=False
    )
    assert cfg.env.act_scale is False


@pytest.mark.parametrize("auto", [True, False])
def test_shapes_are_those_of_an_environment_that_is_named(main, create, auto):
    del main["policy"]["model"]
    policy = None if auto else DQNPolicy
    cfg = compile_config(main, policy=policy, create_cfg=create, auto=auto, save_cfg=False)
    assert (cfg.policy.model.obs_shape, cfg.policy.model.action_shape) == (4, 2)
    main["env"]["env_id"] = "NoSuchGame-v1"  # a network may be given later
    cfg = compile_config(main, policy=policy, create_cfg=create, auto=auto, save_cfg=False)
    assert "obs_shape" not in cfg.policy.model


def test_missing_shapes_are_named_by_the_policy(main):
    del main["policy"]["model"]
    cfg = compile_config(main, policy=DQNPolicy, save_cfg=False)
    with pytest.raises(ConfigError, match=r"model lacks obs_shape and action_shape, .*create_cfg"):
        DQNPolicy(cfg.policy)


def test_how_much_to_collect_may_be_given_later(main):
    del main["policy"]["collect"]
    cfg = compile_config(EasyDict(main), BaseEnvManager, PPOPolicy, save_cfg=False)
    assert cfg.policy.collect.get("n_sample") is None


def test_classes_need_a_policy(main):
    with pytest.raises(ConfigError, match="policy=DQNPolicy"):
        compile_config(EasyDict(main), save_cfg=False)
    with pytest.raises(ConfigError, match="policy must be a class"):
        compile_config(EasyDict(main), BaseEnvManager, "dqn", save_cfg=False)


def test_reward_model_defaults(main):
    class RewardModel:
        @staticmethod
        def default_config():
            return EasyDict(hidden_size=64, gamma=0.9)

    main["reward_model"] = dict(gamma=0.5)
    cfg = compile_config(EasyDict(main), policy=DQNPolicy, reward_model=RewardModel, save_cfg=False)
    assert cfg.reward_model == dict(hidden_size=64, gamma=0.5)


def test_callers_dicts_stay_as_they_are(main, create):
    main, create = EasyDict(main), EasyDict(create)
    main.policy.other.eps = EasyDict(type="exp", start=0.9, end=0.1, decay=1e4)
    before = copy.deepcopy(main), copy.deepcopy(create)
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False)
    cfg.policy.learn.batch_size = 1
    cfg.create_config.policy.type = "other"
    assert (main, create) == before
    assert cfg.policy.other.eps.decay == 10000
    assert isinstance(cfg.policy.other.eps.decay, int)


def test_config_as_users_write_it(main, create):
    main["env"].update(replay_path="video", manager=dict(shared_memory=False))
    main["policy"].update(
        cuda=False,
        load_path="ckpt_best.pth.tar",
        random_collect_size=500,
        learn=dict(
            multi_gpu=False,
            ignore_done=False,
            learner=dict(
                learner_num=1,
                send_policy_freq=1,
                hook=dict(
                    save_ckpt_after_iter=dict(
                        name="often",
                        type="save_ckpt",
                        priority=40,
                        position="after_iter",
                        ext_args=dict(freq=100),
                    ),
                    log_show_after_iter=10,
                ),
            ),
        ),
        eval=dict(evaluator=dict(eval_freq=10, n_episode=10)),
        other=dict(
            eps=dict(type="linear", start=1, end=0.1, decay=10000),
            replay_buffer=dict(replay_buffer_size=1e4),
            commander=dict(eval_interval=5),
        ),
    )
    cfg = compiled(main, create)
    assert cfg.policy.learn.learner.hook.save_ckpt_after_iter.priority == 40
    assert cfg.policy.other.replay_buffer.replay_buffer_size == 10000


def test_deque_buffer(main, create):
    create["replay_buffer"] = dict(
        type="deque", import_names=["ding.data.buffer.deque_buffer_wrapper"]
    )
    main["policy"].update(priority=True, priority_IS_weight=True)
    buffer = compiled(main, create).policy.other.replay_buffer
    assert buffer.type == "deque"
    assert buffer.replay_buffer_size == 20000
    # The policy wants priorities: the buffer has to draw by them.
    assert buffer.priority
    assert buffer.priority_IS_weight


class OwnEnv(DingEnvWrapper):
    pass


class OwnPolicy(DQNPolicy):
    config = dict(type="own", learn=dict(temperature=1.0))


@pytest.fixture
def own_types():
    ENV_REGISTRY.register("own_env", OwnEnv)
    POLICY_REGISTRY.register("own", OwnPolicy)
    yield
    del ENV_REGISTRY["own_env"], POLICY_REGISTRY["own"]


@pytest.mark.usefixtures("own_types")
def test_own_classes_may_have_keys_of_their_own(main, create):
    create["env"]["type"], create["policy"]["type"] = "own_env", "own"
    main["env"].update(maze_size=4, env_ids=[1, 2])
    main["policy"].update(curiosity=0.1)
    main["policy"]["learn"].update(temperature=2, schedule="fast")
    cfg = compiled(main, create)
    assert cfg.env.maze_size == 4
    assert cfg.policy.learn.temperature == 2
    main["policy"]["learn"]["batchsize"] = main["policy"]["learn"].pop("batch_size")
    with pytest.raises(ConfigError, match=r"did you mean policy\.learn\.batch_size"):
        compiled(main, create)
    main["policy"]["learn"]["batch_size"] = 32  # next to it, it is a separate key
    assert compiled(main, create).policy.learn.batchsize == 64


OWN_TYPES = """
from ding.model import DQN
from ding.policy import DQNPolicy
from ding.utils import BUFFER_REGISTRY, MODEL_REGISTRY, POLICY_REGISTRY
from ding.worker import AdvancedReplayBuffer


@POLICY_REGISTRY.register("of_file")
class Own(DQNPolicy):
    config = dict(type="of_file")


BUFFER_REGISTRY.register("of_file", AdvancedReplayBuffer)
MODEL_REGISTRY.register("of_file")(type("Own", (DQN,), {}))
main_config, create_config = {}, {}
"""


def test_types_of_a_config_file_are_found_in_it(main, create, tmp_path):
    file = tmp_path / "my config.py"
    file.write_text(OWN_TYPES)
    create.update(policy=dict(type="of_file_command"), replay_buffer=dict(type="of_file"))
    main["policy"]["model"]["type"] = "of_file"
    read_config(str(file))
    try:
        cfg = compiled(main, create)
    finally:
        for registry in (POLICY_REGISTRY, BUFFER_REGISTRY, MODEL_REGISTRY):
            for name in ("of_file", "of_file_command"):
                registry.pop(name, None)
    sections = cfg.create_config.policy, cfg.create_config.replay_buffer, cfg.policy.model
    assert [section.import_names for section in sections] == [[str(file)]] * 3
    assert "import_names" not in cfg.create_config.collector


WALL = """
import gymnasium
import numpy as np


class Wall(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
"""
REGISTER = "import gymnasium\n\ngymnasium.register('{}', '{}:Wall')\n"
CONFIG = "main_config, create_config = {}, {}\n"


def test_ids_of_environments_are_found_where_they_are_registered(
    main, create, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "wall_package"
    package.mkdir()
    (package / "envs.py").write_text(WALL)
    (tmp_path / "wall_module.py").write_text(WALL)
    (package / "__init__.py").write_text(REGISTER.format("Wall-v0", "wall_package.envs"))
    own = tmp_path / "own.py"
    own.write_text(REGISTER.format("Wall-v1", "wall_module") + CONFIG)
    importing = tmp_path / "importing.py"
    importing.write_text("import wall_package\n" + CONFIG)
    for file, env_id, found in [(importing, "Wall-v0", "wall_package"), (own, "Wall-v1", str(own))]:
        read_config(str(file))
        main["env"]["env_id"] = env_id
        cfg = compiled(main, create)
        assert cfg.create_config.env.import_names == [found]


def test_model_of_another_type(main, create):
    main["policy"]["model"] = dict(
        type="c51dqn", obs_shape=4, action_shape=2, v_min=0.0, v_max=500.0
    )
    assert compiled(main, create).policy.model.v_max == 500
    main["policy"]["model"]["duelling"] = True
    with pytest.raises(ConfigError, match=r"unknown key policy\.model\.duelling"):
        compiled(main, create, strict=True)


TWINS = [
    ("env.stop_value", "policy.eval.evaluator.stop_value", 30),
    ("env.n_evaluator_episode", "policy.eval.evaluator.n_episode", 7),
    ("env.collector_env_num", "policy.collect.env_num", 4),
    ("env.evaluator_env_num", "policy.eval.env_num", 2),
    ("policy.multi_gpu", "policy.learn.multi_gpu", True),
    ("policy.priority", "policy.other.replay_buffer.priority", True),
    ("policy.priority_IS_weight", "policy.other.replay_buffer.priority_IS_weight", True),
]


@pytest.mark.parametrize(("first", "second", "value"), TWINS)
@pytest.mark.parametrize("written", [0, 1])
def test_a_setting_of_two_places_counts_wherever_it_is_written(
    main, create, first, second, value, written
):
    create["replay_buffer"] = dict(
        type="deque", import_names=["ding.data.buffer.deque_buffer_wrapper"]
    )
    main["policy"]["priority"] = True
    for path in (first, second):
        section, _, key = path.rpartition(".")
        (at(main, section) or {}).pop(key, None)
    apply_overrides([main, create], [f"{(first, second)[written]}={value}"])
    cfg = compiled(main, create)
    assert at(cfg, first) == value
    assert at(cfg, second) in (value, None)


@pytest.mark.parametrize(("first", "second", "value"), TWINS)
@pytest.mark.parametrize("written", [0, 1])
def test_a_later_word_wins_over_a_saved_config(main, create, first, second, value, written):
    create["replay_buffer"] = dict(
        type="deque", import_names=["ding.data.buffer.deque_buffer_wrapper"]
    )
    if "IS_weight" in first:
        main["policy"]["priority"] = True
    compile_config(EasyDict(main), auto=True, create_cfg=create)
    saved = read_config("run/formatted_total_config.py")
    apply_overrides(saved, [f"{(first, second)[written]}={value}"])
    cfg = compiled(*saved)
    assert at(cfg, first) == value
    assert at(cfg, second) in (value, None)


@pytest.mark.parametrize("place", ["create_config.collector.type", "policy.collect.collector.type"])
def test_a_later_type_wins_over_a_saved_config(main, create, place):
    compile_config(EasyDict(main), auto=True, create_cfg=create)
    saved = read_config("run/formatted_total_config.py")
    apply_overrides(saved, [f"{place}=episode", "policy.collect.n_episode=4"])
    cfg = compiled(*saved)
    assert cfg.create_config.collector.type == cfg.policy.collect.collector.type == "episode"


def test_action_space_of_the_network_is_that_of_the_policy(main, create):
    main["policy"]["model"]["action_space"] = "continuous"
    assert "action_space" not in compiled(main, create, strict=False).policy
    create["policy"]["type"] = "ppo"
    assert compiled(main, create).policy.action_space == "continuous"
    main["policy"]["action_space"] = "discrete"
    assert compiled(main, create).policy.model.action_space == "discrete"


def test_old_word_for_the_action_space(main, create):
    create["policy"]["type"] = "ppo"
    main["policy"]["continuous"] = True
    cfg = compiled(main, create, strict=True)
    assert cfg.policy.action_space == "continuous"
    assert cfg.policy.continuous
    main["policy"]["action_space"] = "discrete"
    assert compiled(main, create).policy.action_space == "discrete"


def test_folder_is_renewed(main, create, tmp_path):
    first = compile_config(EasyDict(main), auto=True, create_cfg=create)
    second = compile_config(EasyDict(main), auto=True, create_cfg=create)
    third = compile_config(EasyDict(main), auto=True, create_cfg=create, renew_dir=False)
    assert first.exp_name == third.exp_name == "run"
    assert second.exp_name.startswith("run_")
    assert os.path.exists(tmp_path / second.exp_name / "total_config.py")
    main["policy"]["learn"]["resume_training"] = True
    fourth = compile_config(EasyDict(main), auto=True, create_cfg=create)
    assert fourth.exp_name == "run"


@pytest.mark.parametrize(
    ("named", "folder"), [("exp/run/", "exp/run"), ("~/runs/run", "/home/me/runs/run"), ("/", "/")]
)
def test_folder_is_what_its_name_means(main, create, monkeypatch, named, folder):
    monkeypatch.setenv("HOME", "/home/me")
    main["exp_name"] = named
    assert compiled(main, create).exp_name == folder


def test_nothing_is_written_or_renamed_unless_asked(main, create, tmp_path):
    compiled(main, create)
    assert not list(tmp_path.iterdir())
    (tmp_path / "run").mkdir()
    assert compiled(main, create).exp_name == "run"


def test_folder_that_cannot_be_made(main, create, tmp_path):
    (tmp_path / "file").write_text("")
    main["exp_name"] = "file/run"
    with pytest.raises(ConfigError, match=r"cannot write into the run's folder.*file/run"):
        compile_config(EasyDict(main), auto=True, create_cfg=create)


def test_saved_configs_compile_to_the_same(main, create):
    main["env"]["stop_value"] = float("inf")
    main["policy"]["model"]["obs_shape"] = np.int64(4)
    cfg = compile_config(EasyDict(main), auto=True, create_cfg=create, seed=5)
    assert read_config_directly("run/total_config.py")["exp_config"] == cfg
    saved_main, saved_create = read_config("run/formatted_total_config.py")
    again = compile_config(
        saved_main, auto=True, create_cfg=saved_create, seed=5, renew_dir=False, save_cfg=False
    )
    assert again == cfg


def test_saved_config_of_classes_compiles(main):
    cfg = compile_config(EasyDict(main), BaseEnvManager, DQNPolicy, env=None)
    saved_main, saved_create = read_config("run/formatted_total_config.py")
    again = compile_config(
        saved_main, auto=True, create_cfg=saved_create, renew_dir=False, save_cfg=False
    )
    assert again.policy == cfg.policy


def test_saved_config_starts_a_new_run(main, create):
    main["policy"]["learn"]["resume_training"] = True
    compile_config(EasyDict(main), auto=True, create_cfg=create)
    saved, _ = read_config("run/formatted_total_config.py")
    assert saved.policy.learn.resume_training is False


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_saved_config_runs_as_a_script(main, create, tmp_path):
    main["policy"]["learn"]["update_per_collect"] = 1
    main["env"]["stop_value"] = 5  # reached by any policy, at the second evaluation
    main["policy"]["eval"]["evaluator"]["eval_freq"] = 1
    compile_config(EasyDict(main), auto=True, create_cfg=create)
    child = start_python("run/formatted_total_config.py")
    output, _ = child.communicate(170)
    assert child.returncode == 0, output
    assert "converged" in output
    assert len([name for name in os.listdir() if name.startswith("run")]) == 2


def test_component_configs(main):
    policy, user = DQNPolicy.default_config(), EasyDict(main)
    buffer = compile_buffer_config(policy, user, AdvancedReplayBuffer)
    assert buffer.replay_buffer_size == 20000
    assert buffer.alpha == 0.6
    user.policy.collect.collector = EasyDict(collect_print_freq=7)
    collector = compile_collector_config(policy, user, SampleSerialCollector)
    assert collector.collect_print_freq == 7
    assert collector.deepcopy_obs is False


BUFFERS = {"policy": AdvancedReplayBuffer, "value": NaiveReplayBuffer}


def compiled_with(main, policy, buffer):
    return compile_config(
        EasyDict(main),
        *(BaseEnvManager, policy, BaseLearner, SampleSerialCollector, InteractionSerialEvaluator),
        buffer,
        save_cfg=False,
    )


def test_a_dict_of_buffer_classes(main):
    main["policy"]["other"]["replay_buffer"] = dict(
        replay_buffer_size=300, value=dict(replay_buffer_size=77), policy=dict(alpha=0.5)
    )
    section = compiled_with(main, PPGOffPolicy, BUFFERS).policy.other.replay_buffer
    own = dict(replay_buffer_size=300, alpha=0.5, max_use=float("inf"))
    expected = {**AdvancedReplayBuffer.default_config(), **own, "type": "advanced"}
    assert section.policy == expected
    # The policy's default for the value buffer has this key, too.
    own = dict(replay_buffer_size=77, max_use=float("inf"))
    assert section.value == {**NaiveReplayBuffer.default_config(), **own, "type": "naive"}


@pytest.mark.parametrize("policy", [DQNPolicy, PPGOffPolicy])
def test_several_buffers_can_be_built_from_their_configs(main, policy):
    cfg = compiled_with(main, policy, BUFFERS)
    for name, cls in BUFFERS.items():
        section = cfg.policy.other.replay_buffer[name]
        assert section.replay_buffer_size == 20000  # what the config sets for all
        cls(section, exp_name="run", instance_name=name).close()


def test_several_buffers_that_create_config_names(main, create):
    create["policy"]["type"] = "ppg_offpolicy"
    create["replay_buffer"] = dict(policy=dict(type="advanced"), value=dict(type="naive"))
    section = compiled(main, create).policy.other.replay_buffer
    assert section == compiled_with(main, PPGOffPolicy, BUFFERS).policy.other.replay_buffer
    assert section.value.cfg_type == "NaiveReplayBufferDict"


def test_several_buffers_with_wrong_keys(main):
    main["policy"]["other"]["replay_buffer"] = dict(value=dict(replay_buffer_sizee=77))
    with pytest.raises(ConfigError, match=r"replay_buffer.value.replay_buffer_sizee: did you mean"):
        compiled_with(main, PPGOffPolicy, BUFFERS)
    with pytest.raises(ConfigError, match="replay_buffer must be a class, got str 'naive'"):
        compiled_with(main, PPGOffPolicy, {"policy": "naive"})


def test_compile_buffer_config_of_several(main):
    own = PPGOffPolicy.default_config()
    configs = compile_buffer_config(own, EasyDict(main), BUFFERS)
    assert configs.policy.replay_buffer_size == own.other.replay_buffer.policy.replay_buffer_size
    assert configs.value.cfg_type == "NaiveReplayBufferDict"


@pytest.mark.parametrize("type_", ["bc", "bcq", "cql", "discrete_cql", "edac", "iql", "td3_bc"])
def test_offline_configs_need_no_n_sample(main, create, type_):
    main["policy"].update(
        collect=dict(data_type="hdf5", data_path="expert_demos.hdf5"), learn=dict(train_epoch=3)
    )
    create["policy"]["type"] = type_
    assert compiled(main, create).policy.collect.data_type == "hdf5"
