"""What is wrong with a config is said before anything is built from it."""

import pytest

from ding.config import compile_config
from ding.config.compile import compile_run_config
from ding.utils.errors import ConfigError, UnknownTypeError


def put(config, path, value):
    *way, last = path.split(".")
    for key in way:
        config = config.setdefault(key, {})
    config[last] = value


def message(main, create):
    with pytest.raises(ConfigError) as caught:
        compile_run_config(main, create, save_cfg=False)
    return str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("policy.learn.batchsize", 1, "policy.learn.batchsize: did you mean policy.learn.batch_"),
        ("policy.batch_size", 1, "policy.batch_size: did you mean policy.learn.batch_size?"),
        ("policy.learn.nstep", 1, "policy.learn.nstep: did you mean policy.nstep?"),
        ("policy.zebra", 1, "unknown key policy.zebra"),
        ("learn", {}, "unknown key learn: did you mean policy.learn?"),
        ("polcy", {}, "unknown key polcy: did you mean policy?"),
        ("env.envid", "x", "unknown key env.envid: did you mean env.env_id?"),
        ("env.manager.max_retri", 1, "env.manager.max_retri: did you mean env.manager.max_retry?"),
        ("policy.model.obs_shap", 4, "policy.model.obs_shap: did you mean policy.model.obs_shape"),
        ("policy.model.width", 4, "unknown key policy.model.width"),
        (
            "policy.other.replay_buffer.replay_bufer_size",
            5,
            "did you mean policy.other.replay_buffer.replay_buffer_size?",
        ),
        (
            "policy.learn.learner.hook.save_ckpt_after_itr",
            5,
            "did you mean policy.learn.learner.hook.save_ckpt_after_iter?",
        ),
    ],
)
def test_unknown_key(main, create, path, value, expected):
    put(main, path, value)
    assert expected in message(main, create)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("policy.learn.batch_size", "64", "policy.learn.batch_size must be an integer, got str '6"),
        ("policy.learn.batch_size", 64.5, "policy.learn.batch_size must be an integer"),
        ("policy.learn.batch_size", True, "policy.learn.batch_size must be an integer, got bool"),
        ("policy.learn.batch_size", None, "policy.learn.batch_size must be greater than 0"),
        ("policy.learn.learning_rate", "1e-3", "policy.learn.learning_rate must be a number"),
        ("policy.cuda", "yes", "policy.cuda must be True or False"),
        ("policy.learn", 3, "policy.learn must be a dict, got int 3"),
        ("policy", 3, "policy must be a dict, got 3"),
        ("exp_name", 3, "exp_name must be a string"),
        ("env.env_id", 3, "env.env_id must be a string"),
        ("policy.model.encoder_hidden_size_list", 128, "encoder_hidden_size_list must be a list"),
        ("policy.model.encoder_hidden_size_list", [1, "a"], "encoder_hidden_size_list[1] must be"),
        ("policy.model.obs_shape", "4", "policy.model.obs_shape must be a number of at least 1"),
        ("policy.model.action_shape", 0, "policy.model.action_shape must be a number of at least"),
        ("env.kwargs", {3: 4}, "main_config.env.kwargs: keys must be strings, got int 3"),
    ],
)
def test_wrong_type(main, create, path, value, expected):
    put(main, path, value)
    assert expected in message(main, create)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("env.collector_env_num", "missing key env.collector_env_num"),
        ("env.evaluator_env_num", "missing key env.evaluator_env_num"),
        ("env.env_id", "missing key env.env_id"),
        ("policy.model.obs_shape", "missing key policy.model.obs_shape"),
        ("policy.model.action_shape", "missing key policy.model.action_shape"),
        ("policy", "main_config.policy must be a dict, got None"),
    ],
)
def test_missing_key(main, create, path, expected):
    *way, last = path.split(".")
    node = main
    for key in way:
        node = node[key]
    del node[last]
    assert expected in message(main, create)


def test_missing_policy_type(main, create):
    del create["policy"]
    assert "missing key create_config.policy.type: one of dqn" in message(main, create)


def test_on_policy_needs_a_count(main, create):
    create["policy"]["type"] = "ppo"
    del main["policy"]["collect"]
    assert "missing key policy.collect.n_sample" in message(main, create)


def test_own_model_needs_no_shapes(main, create):
    main["policy"]["model"] = {}
    compile_run_config(main, create, own_model=True, save_cfg=False)


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ({"policy.nstep": 3}, ["policy.nstep=3", "policy.collect.n_sample=8", "collector_env_num"]),
        ({"policy.nstep": 4, "policy.collect.unroll_len": 4}, ["policy.nstep=4", "unroll_len=4"]),
        ({"policy.collect.n_episode": 8}, ["n_sample=8", "n_episode=8"]),
        ({"env.n_evaluator_episode": 3}, ["n_evaluator_episode=3", "evaluator_env_num=5"]),
        ({"policy.eval.evaluator.n_episode": 2}, ["evaluator.n_episode=2", "evaluator_env_num=5"]),
        ({"policy.learn.batch_size": 30000}, ["batch_size=30000", "replay_buffer_size=20000"]),
        ({"policy.priority_IS_weight": True}, ["priority_IS_weight=True", "policy.priority=True"]),
        ({"policy.learn.learning_rate": -1}, ["policy.learn.learning_rate must be greater"]),
        ({"policy.discount_factor": 1.5}, ["policy.discount_factor must be between 0 and 1"]),
        ({"policy.other.eps.type": "cosine"}, ["policy.other.eps.type must be 'exp' or 'linear'"]),
    ],
)
def test_contradiction(main, create, settings, keys):
    for path, value in settings.items():
        put(main, path, value)
    text = message(main, create)
    assert all(key in text for key in keys)


def test_priority_needs_a_buffer_with_priorities(main, create):
    main["policy"]["priority"] = True
    create["replay_buffer"] = dict(type="naive")
    assert "draws uniformly" in message(main, create)


def test_the_same_window_fits_with_more_samples(main, create):
    main["policy"].update(nstep=3, collect=dict(n_sample=24))
    compile_run_config(main, create, save_cfg=False)


def test_pipeline_that_does_not_suit(main, create):
    with pytest.raises(
        ConfigError, match=r"'dqn'.*learns from a replay buffer: use serial_pipeline "
    ):
        compile_run_config(main, create, on_policy=True, save_cfg=False)
    main["policy"]["collect"]["n_sample"] = 64
    create["policy"]["type"] = "ppo"
    with pytest.raises(ConfigError, match="just collected: use serial_pipeline_onpolicy"):
        compile_run_config(main, create, on_policy=False, save_cfg=False)


def test_all_problems_at_once(main, create):
    put(main, "policy.learn.batch_size", "64")
    put(main, "policy.priorty", True)
    put(main, "env.stop_valu", 3)
    text = message(main, create)
    assert all(key in text for key in ("policy.learn.batch_size", "policy.priority", "env.stop_v"))


def test_types_that_differ(main, create):
    put(main, "policy.collect.collector.type", "episode")
    create["collector"] = dict(type="sample")
    text = message(main, create)
    assert "policy.collect.collector.type='episode'" in text
    assert "create_config.collector.type='sample'" in text


def test_create_config_is_checked(main, create):
    create["polcy"] = dict(type="dqn")
    assert "create_config.polcy: did you mean create_config.policy?" in message(main, create)


def test_unknown_types(main, create):
    create["policy"]["type"] = "dqnn"
    with pytest.raises(UnknownTypeError, match=r"'dqnn'.*did you mean 'dqn'"):
        compile_run_config(main, create, save_cfg=False)


def test_absent_module(main, create):
    create["env"] = dict(type="mine", import_names=["no_such_module_here"])
    assert "create_config.env.import_names: cannot import 'no_such_mod" in message(main, create)


def test_environments_of_the_other_collection(main, create):
    create["env"] = dict(
        type="cartpole", import_names=["dizoo.classic_control.cartpole.envs.cartpole_env"]
    )
    text = message(main, create)
    assert "type='gymnasium'" in text
    assert "'CartPole-v1'" in text
    # Whoever brings environments does not need them.
    compile_run_config(main, create, own_envs=True, save_cfg=False)


def test_create_cfg_without_auto(main, create):
    with pytest.raises(ConfigError, match="auto=True"):
        compile_config(main, create_cfg=create)


@pytest.mark.parametrize("cfg", [None, [], "config.py"])
def test_no_config_at_all(cfg, create):
    with pytest.raises(ConfigError, match="main_config must be a dict"):
        compile_config(cfg, auto=True, create_cfg=create)
