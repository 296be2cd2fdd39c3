"""Every call that the API's reference pages show: by position, by name, and on which classes."""

import inspect

import pytest

import ding.interaction
from ding import worker
from ding.worker import learner as learner_package
from ding.worker.coordinator import base_parallel_commander, solo_parallel_commander

_COLLECTOR = """
    __init__(cfg, env, policy, tb_logger, exp_name, instance_name) reset_env(_env)
    reset_policy(_policy) reset(_policy, _env) close() __del__()
"""
_EVALUATOR = _COLLECTOR + " should_eval(train_iter)"
_BUFFER = """
    __init__(cfg, tb_logger, exp_name, instance_name) start() close() clear() __del__() count()
    push(data, cur_collector_envstep) update(info) state_dict() load_state_dict(_state_dict)
    save_data(file_name) load_data(file_name) default_config()
"""
_COMMANDER = """
    __init__(cfg) get_collector_task() get_learner_task() update_learner_info(task_id, info)
    finish_collector_task(task_id, finished_task) finish_learner_task(task_id, finished_task)
    notify_fail_collector_task(task) notify_fail_learner_task(task)
"""
METHODS = {
    "ISerialCollector": """
        default_config() reset_env(_env) reset_policy(_policy) reset(_policy, _env)
        collect(per_collect_target)
    """,
    "SampleSerialCollector": _COLLECTOR
    + """
        collect(n_sample, train_iter, drop_extra, random_collect, record_random_collect,
        policy_kwargs, level_seeds)
    """,
    "EpisodeSerialCollector": _COLLECTOR + "collect(n_episode, train_iter, policy_kwargs)",
    "BattleEpisodeSerialCollector": _COLLECTOR + "collect(n_episode, train_iter, policy_kwargs)",
    "BattleSampleSerialCollector": _COLLECTOR
    + "collect(n_sample, train_iter, drop_extra, policy_kwargs)",
    "VectorEvalMonitor": """
        __init__(env_num, n_episode) is_finished() update_info(env_id, info)
        update_reward(env_id, reward) get_video() get_episode_return() get_latest_reward(env_id)
        get_current_episode() get_episode_info()
    """,
    "InteractionSerialEvaluator": _EVALUATOR
    + " eval(save_ckpt_fn, train_iter, envstep, n_episode, force_render, policy_kwargs)",
    "BattleInteractionSerialEvaluator": _EVALUATOR
    + " default_config() eval(save_ckpt_fn, train_iter, envstep, n_episode)",
    "MetricSerialEvaluator": _EVALUATOR + " eval(save_ckpt_fn, train_iter, envstep)",
    "IMetric": "gt(metric1, metric2) eval(inputs, label) reduce_mean(inputs)",
    "BaseParallelCollector": """
        __init__(cfg) info(s) error(s) debug(s) get_finish_info() start() close()
    """,
    "BaseCommCollector": """
        __init__(cfg) get_policy_update_info(path) send_metadata(metadata) start() close()
    """,
    "FlaskFileSystemCollector": """
        __init__(cfg) deal_with_resource() deal_with_collector_start(task_info)
        deal_with_collector_data() get_policy_update_info(path) send_stepdata(path, stepdata)
        send_metadata(metadata) start() close() deal_with_collector_close()
    """,
    "BaseLearner": """
        __init__(cfg, policy, tb_logger, dist_info, exp_name, instance_name) register_hook(hook)
        train(data, envstep, policy_kwargs) start() setup_dataloader() close() call_hook(name)
        info(s) save_checkpoint(ckpt_name)
    """,
    "BaseCommLearner": """
        __init__(cfg) send_policy(state_dict) get_data(batch_size) send_learn_info(learn_info)
        start() close()
    """,
    "FlaskFileSystemLearner": """
        __init__(cfg) start() close() __del__() deal_with_resource()
        deal_with_learner_start(task_info) deal_with_get_data() deal_with_learner_learn(data)
        send_policy(state_dict) load_data_fn(path, meta, decompressor) get_data(batch_size)
        send_learn_info(learn_info)
    """,
    "IBuffer": _BUFFER.replace("__init__(cfg, tb_logger, exp_name, instance_name)", "")
    .replace("start() close()", "")
    .replace("__del__()", "")
    + "sample(batch_size, cur_learner_iter)",
    "NaiveReplayBuffer": _BUFFER + "sample(size, cur_learner_iter, sample_range, replace)",
    "SequenceReplayBuffer": _BUFFER
    + "sample(batch, sequence, cur_learner_iter, sample_range, replace)",
    "AdvancedReplayBuffer": _BUFFER.replace("dict(_state_dict)", "dict(_state_dict, deepcopy)")
    + "sample(size, cur_learner_iter, sample_range)",
    "EpisodeReplayBuffer": _BUFFER,
    "BaseSerialCommander": """
        __init__(cfg, learner, collector, evaluator, replay_buffer, policy) step()
    """,
    "NaiveCommander": _COMMANDER,
    "SoloCommander": _COMMANDER,
    "Coordinator": """
        __init__(cfg) state_dict() load_state_dict(state_dict) start() close() __del__()
        deal_with_collector_send_data(task_id, buffer_id, data_id, data)
        deal_with_collector_finish_task(task_id, finished_task)
        deal_with_learner_get_data(task_id, buffer_id, batch_size, cur_learner_iter)
        deal_with_learner_send_info(task_id, buffer_id, info)
        deal_with_learner_finish_task(task_id, finished_task) deal_with_increase_collector()
        deal_with_decrease_collector() info(s) error(s)
    """,
    "LearnerAggregator": "__init__(cfg) start() close()",
}
PROPERTIES = {
    **dict.fromkeys(
        (
            *("SampleSerialCollector", "EpisodeSerialCollector"),
            *("BattleSampleSerialCollector", "BattleEpisodeSerialCollector", "ISerialCollector"),
        ),
        "envstep",
    ),
    "BaseParallelCollector": "policy env_manager",
    "BaseCommCollector": "collector_uid",
    "BaseCommLearner": "hooks4call",
    "FlaskFileSystemLearner": "hooks4call",
    "BaseSerialCommander": "policy",
    "NaiveReplayBuffer": "replay_buffer_size push_count",
    "SequenceReplayBuffer": "replay_buffer_size push_count",
    "AdvancedReplayBuffer": "beta replay_buffer_size push_count",
    "Coordinator": "system_shutdown_flag",
    "BaseLearner": """
        collector_envstep learn_info priority_info last_iter train_iter rank world_size policy
        monitor log_buffer logger tb_logger ckpt_name exp_name instance_name
    """,
    "LearnerHook": "name priority position",
}
BASES = {
    **dict.fromkeys(
        (
            *("SampleSerialCollector", "EpisodeSerialCollector"),
            *("BattleSampleSerialCollector", "BattleEpisodeSerialCollector"),
        ),
        "ISerialCollector",
    ),
    "InteractionSerialEvaluator": "ISerialEvaluator",
    "BattleInteractionSerialEvaluator": "ISerialEvaluator",
    "MetricSerialEvaluator": "ISerialEvaluator",
    "ZerglingParallelCollector": "BaseParallelCollector",
    "MarineParallelCollector": "BaseParallelCollector",
    "FlaskFileSystemCollector": "BaseCommCollector",
    "FlaskFileSystemLearner": "BaseCommLearner",
    "LearnerHook": "Hook",
    "NaiveReplayBuffer": "IBuffer",
    "AdvancedReplayBuffer": "IBuffer",
    "SequenceReplayBuffer": "NaiveReplayBuffer",
    "EpisodeReplayBuffer": "NaiveReplayBuffer",
    "NaiveCommander": "BaseCommander",
    "SoloCommander": "BaseCommander",
}
FUNCTIONS = """
    create_serial_collector(cfg) get_serial_collector_cls(cfg) create_serial_evaluator(cfg)
    to_tensor_transitions(data, shallow_copy_next_obs) create_comm_collector(cfg)
    create_learner(cfg) create_comm_learner(cfg) register_learner_hook(name, hook_type)
    add_learner_hook(hooks, hook) merge_hooks(hooks1, hooks2) build_learner_hook_by_cfg(cfg)
    create_buffer(cfg) get_buffer_cls(cfg) create_parallel_commander(cfg)
"""


def _find(name):
    for module in (worker, learner_package, base_parallel_commander, solo_parallel_commander):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"ding.worker has no {name}")


def _calls(text):
    """``"a(x, y) b()"`` as ``[("a", ["x", "y"]), ("b", [])]``."""
    for call in " ".join(text.split()).split(")"):
        if call.strip():
            name, _, arguments = call.strip().partition("(")
            yield name, [one.strip() for one in arguments.split(",") if one.strip()]


def _check(function, names, bound):
    """Binds the arguments by position and, unless they have a leading underscore, by name."""
    signature = inspect.signature(function)
    own = [] if bound else [object()]
    given = signature.bind(*own, *names).arguments
    positional = [value for key, value in given.items() if isinstance(value, str)]
    assert positional == names, f"{function}: {signature}"
    if "args" not in signature.parameters:
        signature.bind(*own, **{name: name for name in names})


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    cls = _find(name)
    for method, names in _calls(METHODS[name]):
        static = inspect.getattr_static(cls, method)
        bound = isinstance(static, classmethod | staticmethod)
        _check(getattr(cls, method), names, bound)


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties(name):
    cls = _find(name)
    for attribute in PROPERTIES[name].split():
        found = inspect.getattr_static(cls, attribute, None)
        assert isinstance(found, property) or attribute in inspect.get_annotations(cls), attribute


@pytest.mark.parametrize("name", BASES)
def test_bases(name):
    assert issubclass(_find(name), _find(BASES[name]))


def test_naive_collector_is_a_slave():
    assert issubclass(worker.NaiveCollector, ding.interaction.Slave)


def test_functions():
    for name, names in _calls(FUNCTIONS):
        _check(_find(name), names, bound=True)
