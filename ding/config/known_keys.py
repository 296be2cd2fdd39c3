"""Keys that configs may hold beside those that have a default in some class.

Values are examples of the type; ``None`` allows any.
"""

from typing import Any

TOP_KEYS: dict[str, Any] = {
    "exp_name": "",
    "env": None,
    "policy": None,
    "seed": None,
    "reward_model": None,
    "world_model": None,
    "create_config": None,
}

ENV_KEYS: dict[str, Any] = {
    "type": "",
    "import_names": [],
    "env_id": "",
    "collector_env_num": 0,
    "evaluator_env_num": 0,
    "n_evaluator_episode": 0,
    "stop_value": 0.0,
    "replay_path": None,
    "manager": {},
    "cfg_type": "",
    "max_episode_steps": None,
}

POLICY_KEYS: dict[str, Any] = {
    "type": "",
    "import_names": [],
    "cfg_type": "",
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
        "learner": {
            "type": "",
            "import_names": [],
            "cfg_type": "",
            "learner_num": 1,
            "send_policy_freq": 1,
            "hook": {
                "load_ckpt_before_run": "",
                "log_show_after_iter": 0,
                "save_ckpt_after_iter": 0,
                "save_ckpt_after_run": True,
                "log_reduce_after_iter": True,
                "keep_ckpt": 0,
            },
        },
    },
    "collect": {
        "n_sample": None,
        "n_episode": None,
        "unroll_len": 1,
        "env_num": None,
        "collect_data": True,
        "collector": {"type": "", "import_names": [], "cfg_type": "", "collector_num": 1},
    },
    "eval": {
        "env_num": None,
        "evaluator": {
            "type": "",
            "import_names": [],
            "cfg_type": "",
            "n_episode": None,
            "stop_value": None,
        },
    },
    "other": {
        "replay_buffer": {"type": "", "import_names": [], "cfg_type": ""},
        "commander": {},
    },
}
