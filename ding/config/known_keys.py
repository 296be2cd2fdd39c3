"""Keys that configs may hold beside those that have a default in some class.

Values are examples of the type; ``None`` allows any, and a whole number any number.
"""

from typing import Any

TOP_KEYS: dict[str, Any] = {
    "exp_name": "",
    "env": None,
    "policy": None,
    "seed": None,
    "create_config": None,
    # What takes the run's figures beside its own files: names, or options by name.
    "trackers": None,
    # What is called while the run goes on: classes or their names, or arguments by name.
    "callbacks": None,
}

_COMPONENT: dict[str, Any] = {"type": "", "import_names": [], "cfg_type": ""}

ENV_KEYS: dict[str, Any] = {
    **_COMPONENT,
    "env_id": "",
    "collector_env_num": 0,
    "evaluator_env_num": 0,
    "n_evaluator_episode": 0,
    "stop_value": None,
    "replay_path": None,
    "max_episode_steps": None,
    # Of tasks of a parallel run, per environment.
    "collector_episode_num": 0,
    "evaluator_episode_num": 0,
    # Of battles.
    "player_num": 0,
    # A preset's name, or a list.
    "env_wrapper": None,
    # What some manager understands: configs keep these keys when they change its type.
    "manager": {
        **_COMPONENT,
        "shared_memory": False,
        "copy_on_get": False,
        "context": "",
        "wait_num": None,
        "step_wait_timeout": None,
        "connect_timeout": 0.0,
        "reset_inplace": False,
    },
}

# Hooks have a short form (a value) and a full one (a dict).
_HOOKS: dict[str, Any] = dict.fromkeys(
    (
        *("load_ckpt_before_run", "log_show_after_iter", "save_ckpt_after_iter"),
        *("save_ckpt_after_run", "log_reduce_after_iter"),
    )
)

POLICY_KEYS: dict[str, Any] = {
    **_COMPONENT,
    "model": {},
    "cuda": False,
    "on_policy": False,
    "multi_gpu": False,
    "bp_update_sync": True,
    "traj_len_inf": False,
    "priority": False,
    "priority_IS_weight": False,
    "load_path": None,
    "replay_path": None,
    "random_collect_size": 0,
    "transition_with_policy_data": False,
    "multi_agent": False,
    "learn": {
        "multi_gpu": False,
        "resume_training": False,
        "ignore_done": False,
        # Of training from a data set: how often it is gone through; old places of its path.
        "train_epoch": None,
        "data_path": None,
        "dataset_path": None,
        "learner": {
            **_COMPONENT,
            "load_path": None,
            "learner_num": 1,
            "send_policy_freq": 1,
            "iteration_timeout": 0.0,
            "hook": {**_HOOKS, "keep_ckpt": 0},
        },
    },
    "collect": {
        "n_sample": 0,
        "n_episode": 0,
        "unroll_len": 1,
        "env_num": None,
        "collect_data": True,
        # Of demonstrations and data sets: where to, where from, and in which form.
        "save_path": None,
        "data_path": None,
        "data_type": "",
        "allow_pickle": False,
        "normalize_states": False,
        "collector": {
            **_COMPONENT,
            "collector_num": 1,
            "update_policy_second": 0.0,
            "get_train_sample": False,
            "reward_shaping": False,
        },
    },
    "eval": {
        "env_num": None,
        "evaluator": {
            **_COMPONENT,
            "n_episode": 0,
            "stop_value": None,
            # In battles: 'random' or 'self'.
            "opponent": "",
        },
    },
    "other": {
        "replay_buffer": dict(_COMPONENT),
        "commander": {},
        "league": {},
    },
}

#: Of the commanders of parallel mode; the serial one takes no notice of them.
COMMANDER_KEYS: dict[str, Any] = {
    **_COMPONENT,
    "collector_task_space": 1,
    "learner_task_space": 1,
    "eval_interval": 60.0,
    "eval_share": 0.1,
    "greedy_share": 0.5,
    "league": {},
    "path_policy": "",
}

#: Of policies with ε: the one that demonstrations are collected with.
EPS_KEYS: dict[str, Any] = {"collect": 0.0}

#: Sections of ``create_config``; the last ones are those of parallel mode.
CREATE_SECTIONS = (
    *("env", "env_manager", "policy", "learner", "collector", "evaluator", "replay_buffer"),
    *("commander", "model", "comm_learner", "comm_collector", "league"),
)

#: Numbers of things, where half a one makes no sense; other whole numbers may become fractions.
COUNTS = frozenset(
    (
        *("env.collector_env_num", "env.evaluator_env_num", "env.n_evaluator_episode"),
        *("env.collector_episode_num", "env.evaluator_episode_num", "env.player_num"),
        *("env.manager.max_retry", "policy.nstep", "policy.random_collect_size"),
        *("policy.learn.update_per_collect", "policy.learn.epoch_per_collect"),
        *("policy.learn.batch_size", "policy.learn.target_update_freq"),
        *("policy.learn.learner.train_iterations", "policy.learn.learner.dataloader.num_workers"),
        *("policy.learn.learner.hook.keep_ckpt", "policy.learn.learner.learner_num"),
        *("policy.learn.learner.send_policy_freq", "policy.collect.n_sample"),
        *("policy.collect.n_episode", "policy.collect.unroll_len", "policy.unroll_len"),
        *("policy.collect.collector.collector_num", "policy.eval.evaluator.eval_freq"),
        *("policy.eval.evaluator.n_episode", "policy.other.replay_buffer.replay_buffer_size"),
        *("policy.other.commander.collector_task_space", "policy.model.head_layer_num"),
        *("policy.other.commander.learner_task_space", "policy.model.actor_head_hidden_size"),
        *("policy.model.actor_head_layer_num", "policy.model.critic_head_hidden_size"),
        *("policy.model.critic_head_layer_num", "system_config.max_restart"),
        "system_config.learner_gpu_num",
    )
)

#: What configs carry along and never had an effect on the policies of this package.
SILENT = frozenset(
    (
        *("policy.command", "policy.learn.algo", "policy.collect.algo", "policy.learn.iqn"),
        *("policy.learn.reparameterization", "policy.learn.value_network"),
        *("policy.collect.collector_env_num", "policy.eval.evaluator_env_num"),
        *("policy.collect.collector_logit", "policy.collect.model_path"),
        "policy.collect.state_dict_path",
        *("policy.collect.collect_count", "policy.collect.expert_data_path"),
        "policy.other.replay_buffer.max_reuse",
        "policy.continuous",  # see `take_old_names`
        # Old places of settings that these components have elsewhere, or do not need.
        "policy.other.replay_buffer.periodic_thruput_seconds",
        # Of off-policy learning, in configs of on-policy learning; and the other way round.
        *("policy.learn.update_per_collect", "policy.learn.epoch_per_collect"),
        *("policy.other.eps", "policy.other.replay_buffer"),
    )
)
