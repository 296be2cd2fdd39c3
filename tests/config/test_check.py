"""What is wrong with a config is said before anything is built from it."""

import re

import pytest

from ding.config import compile_config
from ding.config.check import Notes, one_edit_apart
from ding.config.compile import compile_run_config
from ding.policy import DQNPolicy, create_policy
from ding.utils import ENV_REGISTRY, POLICY_REGISTRY, import_module
from ding.utils.builtin_types import BUILTIN_TYPES
from ding.utils.errors import ConfigError, UnknownTypeError
from ding.utils.settings import at


def put(config, path, value):
    *way, last = path.split(".")
    for key in way:
        config = config.setdefault(key, {})
    config[last] = value


def message(main, create, **options):
    with pytest.raises(ConfigError) as caught:
        compile_run_config(main, create, **options)
    return str(caught.value)


def noted(main, create, **options):
    notes = Notes()
    cfg = compile_run_config(main, create, notes=notes, **options)
    return cfg, notes


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ("batch_size", "batchsize", True),
        ("batchsize", "batch_size", True),
        ("batch_size", "batch_sise", True),
        ("batch_size", "bacth_size", True),
        ("batch_size", "batch_sizes", True),
        ("nstep", "nstep", False),
        ("nstep", "ntsepp", False),
        ("n_sample", "n_episode", False),
        ("lambda1", "lambda2", True),
        ("abcd", "badc", False),
        ("abcd", "acbe", False),
        ("a", "b", True),
        ("ab", "ba", True),
    ],
)
def test_one_edit(first, second, apart):
    assert one_edit_apart(first, second) is apart
    assert one_edit_apart(second, first) is apart


@pytest.mark.parametrize(
    ("path", "sibling"),
    [
        ("policy.learn.batchsize", "batch_size"),
        ("policy.learn.learning_rat", "learning_rate"),
        ("policy.discount_facter", "discount_factor"),
        ("polcy", "policy"),
        ("exp_nam", "exp_name"),
        ("env.envid", "env_id"),
        ("env.manager.max_retri", "max_retry"),
        ("policy.model.obs_shap", "obs_shape"),
        ("policy.other.replay_buffer.replay_bufer_size", "replay_buffer_size"),
        ("policy.learn.learner.hook.save_ckpt_after_itr", "save_ckpt_after_iter"),
    ],
)
def test_slip_is_refused_unless_the_sibling_is_set(main, create, path, sibling):
    *way, _ = path.split(".")
    known = ".".join([*way, sibling])
    node = main
    for key in way:
        node = node.get(key, {})
    value = node.pop(sibling, 1)
    put(main, path, value)
    if sibling != "policy":
        assert f"unknown key {path}: did you mean {known}?" in message(main, create)
    put(main, known, value)
    cfg, notes = noted(main, create)
    assert notes.unknown == {path: known}
    assert at(cfg, path) == value


def test_slip_next_to_a_key_of_a_custom_policy_is_reported(main, create):
    POLICY_REGISTRY.register("of_a_user", type("OfAUser", (DQNPolicy,), {}), force_overwrite=True)
    create["policy"] = dict(type="of_a_user")
    put(main, "policy.lern", {"batch_size": 3})
    put(main, "policy.zebra", 1)  # may be the class's own
    assert noted(main, create)[1].unknown == {"policy.lern": "policy.learn"}


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("policy.batch_size", "policy.learn.batch_size"),
        ("policy.learn.nstep", "policy.nstep"),
        ("policy.zebra", ""),
        ("learn", "policy.learn or bco.learn"),
        ("env.zebra", ""),
        ("env.agent_num", "env.player_num"),
        ("policy.model.width", ""),
        ("policy.learn.batch_sizes_all", "policy.learn.batch_size"),
        ("create_config.refree", ""),
    ],
)
def test_unknown_key_is_noted_and_kept(main, create, path, near):
    value = {"a": 3}
    put({"create_config": create} if path.startswith("create") else main, path, value)
    cfg, notes = noted(main, create)
    assert notes.unknown == {path: near}
    assert at(cfg, path) == value
    assert notes.text.splitlines()[1].startswith(f"  {path}")
    assert near in notes.text
    assert notes.facts == {"unknown_keys": {path: near}}
    assert f"unknown key {path}: " in message(main, create, strict=True)
    assert f"unknown key {path}: " in message(main, create, strict=[path])
    noted(main, create, strict=["policy.learn.batch_size"])


@pytest.mark.parametrize("name", ["rnd_reward_model", "world_model", "wandb_logger"])
def test_sections_without_effect_are_called_so(main, create, name):
    main[name] = dict(type="one")
    cfg, notes = noted(main, create)
    assert cfg[name] == dict(type="one")
    assert (list(notes.unused), notes.unknown) == ([name], {})
    assert f"keys without effect in this run:\n  {name}: " in notes.text
    # Scripts read them.
    assert compile_config(main, auto=True, create_cfg=create, save_cfg=False)[name].type == "one"


def test_known_config_has_no_notes(main, create):
    assert noted(main, create)[1].text == ""


def test_unknown_key_of_a_model_is_not_passed_to_it(main, create):
    main["policy"]["model"]["width"] = 3
    cfg, _ = noted(main, create)
    policy = create_policy(cfg.policy, enable_field=["eval"])
    assert policy.cfg.model.width == 3


def test_compile_config_logs_what_it_keeps(main, create, caplog):
    main["policy"]["zebra"] = 1
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False)
    assert cfg.policy.zebra == 1
    assert [record.message for record in caplog.records if "policy.zebra" in record.message]
    with pytest.raises(ConfigError, match=r"unknown key policy\.zebra"):
        compile_config(main, auto=True, create_cfg=create, save_cfg=False, strict=True)


@pytest.mark.parametrize(
    "settings",
    [
        {"policy.learn.algo": dict(lr=3), "policy.collect.algo": {}},
        {"policy.collect.collector_logit": False, "policy.collect.model_path": "m.pth.tar"},
        {"policy.multi_gpu": False, "policy.learn.multi_gpu": False},
        {"policy.collect.env_num": 8, "policy.eval.env_num": 5},
        {"policy.other.commander": dict(collector_task_space=2, eval_interval=30)},
        {"policy.other.league": dict(league_type="one_vs_one")},
    ],
)
def test_keys_without_an_effect_are_taken_in_silence(main, create, settings):
    for path, value in settings.items():
        put(main, path, value)
    assert noted(main, create)[1].text == ""


def test_keys_of_off_policy_learning_are_taken_in_silence(main, create):
    create["policy"]["type"] = "ppo"
    main["policy"]["learn"]["update_per_collect"] = 3
    main["policy"]["other"]["eps"] = dict(type="exp", start=0.9, end=0.1, decay=100)
    assert noted(main, create, on_policy=True)[1].text == ""


def test_a_fraction_may_stand_for_a_whole_default(main, create):
    put(main, "policy.other.replay_buffer.monitor.periodic_thruput.seconds", 0.5)
    cfg, notes = noted(main, create)
    assert cfg.policy.other.replay_buffer.monitor.periodic_thruput.seconds == 0.5
    assert notes.text == ""


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
        ("policy", "main_config.policy is missing: add policy=dict("),
        ("env", "main_config.env is missing: add env=dict("),
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
    assert re.search(
        "missing key create_config.policy.type: one of .*dqn.*, ppo", message(main, create)
    )


def test_on_policy_needs_a_count(main, create):
    create["policy"]["type"] = "ppo"
    del main["policy"]["collect"]
    assert "missing key policy.collect.n_sample" in message(main, create)


def test_own_model_needs_no_shapes(main, create):
    main["policy"]["model"] = {}
    compile_run_config(main, create, own_model=True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"policy.learn.learning_rate": -1}, "policy.learn.learning_rate must be greater"),
        ({"policy.discount_factor": 1.5}, "policy.discount_factor must be between 0 and 1"),
        ({"policy.other.eps.type": "cosine"}, "policy.other.eps.type must be 'exp' or 'linear'"),
        ({"env.stop_value": "high"}, "env.stop_value must be a number, or a list of numbers"),
        ({"env.stop_value": []}, "env.stop_value must be a number, or a list of numbers"),
        ({"env.stop_value": (1, 2)}, "env.stop_value must be a number, got (1, 2)"),
        ({"env.max_episode_steps": "abc"}, "env.max_episode_steps must be greater than 0"),
        ({"env.manager.step_timeout": [3, 4]}, "env.manager.step_timeout must be greater than 0"),
        ({"env.frame_stack": "four"}, "env.frame_stack must be 0 or more"),
    ],
)
def test_values_that_cannot_be(main, create, settings, words):
    for path, value in settings.items():
        put(main, path, value)
    assert words in message(main, create)


def test_a_goal_for_each_player_of_a_battle(main, create):
    main["env"]["stop_value"] = [10, 5]
    create["collector"] = dict(type="sample_1v1")
    assert compile_run_config(main, create).env.stop_value == [10, 5]


@pytest.mark.parametrize(
    ("settings", "notices", "becomes"),
    [
        ({"policy.nstep": 3}, ["policy.nstep=3", "policy.collect.n_sample=8", "3 steps"], {}),
        (
            {"policy.collect.n_episode": 8},
            ["n_sample=8 counts"],
            {"policy.collect.n_episode": None},
        ),
        (
            {"env.n_evaluator_episode": 3},
            ["n_evaluator_episode=3", "evaluator_env_num=5"],
            {"env.evaluator_env_num": 3, "policy.eval.evaluator.n_episode": 3},
        ),
        (
            {"policy.learn.batch_size": 30000},
            ["batch_size=30000", "replay_buffer_size=20000"],
            {"policy.learn.batch_size": 20000},
        ),
        (
            {"policy.priority_IS_weight": True},
            ["priority_IS_weight=True", "policy.priority=True"],
            {"policy.priority_IS_weight": False},
        ),
        (
            {"env.stop_value": 30, "policy.eval.evaluator.stop_value": 40},
            ["env.stop_value=30 counts, not policy.eval.evaluator.stop_value=40"],
            {"policy.eval.evaluator.stop_value": 30},
        ),
    ],
)
def test_what_does_not_fit_is_adapted(main, create, settings, notices, becomes):
    for path, value in settings.items():
        put(main, path, value)
    cfg, notes = noted(main, create)
    assert len(notes.adapted) == 1
    assert all(notice in notes.text for notice in notices)
    assert {path: at(cfg, path) for path in becomes} == becomes


def test_nstep_may_be_longer_than_an_unroll(main, create):
    main["policy"].update(nstep=4, collect=dict(n_sample=64, unroll_len=4))
    assert noted(main, create)[1].text == ""


def test_counting_in_episodes_takes_the_collector_that_does(main, create):
    main["policy"]["collect"] = dict(n_episode=8)
    cfg, notes = noted(main, create)
    assert cfg.policy.collect.collector.type == "episode"
    assert "n_episode=8" in notes.text
    create["collector"] = dict(type="episode")
    assert noted(main, create)[1].text == ""


@pytest.mark.parametrize(("kind", "becomes", "priority"), [
    ("naive", "advanced", True),
    ("elastic", "advanced", True),
    ("episode", "episode", False),
])  # fmt: skip
def test_priority_needs_a_buffer_with_priorities(main, create, kind, becomes, priority):
    main["policy"]["priority"] = True
    create["replay_buffer"] = dict(type=kind)
    cfg, notes = noted(main, create)
    assert cfg.policy.other.replay_buffer.type == becomes
    assert cfg.policy.priority == priority
    (line,) = notes.adapted
    assert "policy.priority=True" in line
    assert kind in line


def test_the_same_window_fits_with_more_samples(main, create):
    main["policy"].update(nstep=3, collect=dict(n_sample=24))
    compile_run_config(main, create)


def test_pipeline_that_does_not_suit(main, create):
    with pytest.raises(
        ConfigError, match=r"'dqn'.*learns from a replay buffer: use serial_pipeline "
    ):
        compile_run_config(main, create, on_policy=True)
    main["policy"]["collect"]["n_sample"] = 64
    create["policy"]["type"] = "ppo"
    with pytest.raises(ConfigError, match="just collected: use serial_pipeline_onpolicy"):
        compile_run_config(main, create, on_policy=False)


def test_all_problems_at_once(main, create):
    put(main, "policy.learn.batch_size", "64")
    put(main, "policy.priorty", True)
    put(main, "env.replay_pth", 3)
    text = message(main, create)
    assert all(key in text for key in ("policy.learn.batch_size", "policy.priority", "replay_pa"))


def test_types_that_differ(main, create):
    put(main, "policy.collect.collector.type", "episode")
    create["collector"] = dict(type="sample")
    text = message(main, create)
    assert "policy.collect.collector.type='episode'" in text
    assert "create_config.collector.type='sample'" in text


def test_create_config_is_checked(main, create):
    create["polcy"] = create.pop("policy")
    assert "create_config.polcy: did you mean create_config.policy?" in message(main, create)


def test_unknown_types(main, create):
    create["policy"]["type"] = "dqnn"
    with pytest.raises(UnknownTypeError, match=r"'dqnn'.*did you mean 'dqn'"):
        compile_run_config(main, create)


def test_absent_module(main, create):
    create["env"] = dict(type="mine", import_names=["no_such_module_here"])
    assert "create_config.env.import_names: cannot import 'no_such_mod" in message(main, create)


def test_environments_of_a_collection_that_is_not_installed(main, create):
    modules = ["dizoo.classic_control.cartpole.envs.cartpole_env"]
    create["env"] = dict(type="cartpole", import_names=modules)
    del main["env"]["env_id"]
    cfg, notes = noted(main, create)
    assert cfg.env.type == "cartpole"
    (line,) = notes.adapted
    assert "there is no module 'dizoo'; the type 'cartpole' of this package is used" in line
    create["env"] = dict(type="coin_race", import_names=["not_installed.coin_race"])
    cfg, notes = noted(main, create)
    assert cfg.env.type == "coin_race"
    (line,) = notes.adapted
    assert "no module 'not_installed'; the type 'coin_race' of this package" in line
    ENV_REGISTRY.register("registered_battle", object, force_overwrite=True)
    create["env"] = dict(type="registered_battle", import_names=["dizoo.star.battle"])
    assert "the type 'registered_battle' that is registered" in noted(main, create)[1].text
    create["env"] = dict(type="star_battle", import_names=["dizoo.star.battle"])
    text = message(main, create)
    assert "'dizoo' is not part of this package" in text
    assert "type='gymnasium'" in text
    # A caller who passes environments does not need them.
    compile_run_config(main, create, env_setting=[object, [], []])


@pytest.mark.parametrize("module", ["ding.policy.dqn", "ding.policy.no_such", "dizoo.policy.dqn"])
def test_modules_of_built_in_types(main, create, module):
    create["policy"]["import_names"] = [module]
    cfg, notes = noted(main, create)
    assert notes.text == ""
    create_policy(cfg.policy, enable_field=["eval"])
    create["policy"]["type"] = "dqnn"
    with pytest.raises((ConfigError, UnknownTypeError), match=r"no_such|dizoo|dqnn"):
        compile_run_config(main, create)


def test_each_policy_has_a_module_of_its_name():
    # Other tests register further policies.
    for name in BUILTIN_TYPES["policy"]:
        import_module([f"ding.policy.{name.removesuffix('_command')}"])


@pytest.mark.parametrize("cfg", [None, [], "config.py"])
def test_no_config_at_all(cfg, create):
    with pytest.raises(ConfigError, match="main_config must be a dict"):
        compile_config(cfg, auto=True, create_cfg=create)


def test_how_often_is_evaluated(main, create):
    for freq in (1, -1):
        put(main, "policy.eval.evaluator.eval_freq", freq)
        assert compile_run_config(main, create).policy.eval.evaluator.eval_freq == freq
    for wrong in (0, -2):
        put(main, "policy.eval.evaluator.eval_freq", wrong)
        assert f"must be greater than 0 or -1, got {wrong}" in message(main, create)
