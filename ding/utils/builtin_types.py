"""Which module registers which built-in type.

One line per type: a registry imports the module when the name is first asked for.
"""

from collections.abc import Mapping

_COLLECTOR = "ding.worker.collector"
_BUFFER = "ding.worker.replay_buffer"
_COORDINATOR = "ding.worker.coordinator"
_MANAGER = "ding.envs.env_manager"
_MODEL = "ding.model.template"
_WRAPPER = "ding.envs.env_wrappers"
_COMMAND_MODES = "ding.policy.command_mode_policy_instance"

BUILTIN_TYPES: Mapping[str, Mapping[str, str]] = {
    "policy": {
        "dqn": "ding.policy.dqn",
        "dqn_command": _COMMAND_MODES,
        "c51": "ding.policy.dqn",
        "qrdqn": "ding.policy.qrdqn",
        "iqn": "ding.policy.iqn",
        "rainbow": "ding.policy.rainbow",
        "sql": "ding.policy.sql",
        "mdqn": "ding.policy.mdqn",
        "r2d2": "ding.policy.r2d2",
        "ddpg": "ding.policy.ddpg",
        "td3": "ding.policy.td3",
        "td3_bc": "ding.policy.td3_bc",
        "bcq": "ding.policy.bcq",
        "cql": "ding.policy.cql",
        "cql_discrete": "ding.policy.cql",
        "discrete_cql": "ding.policy.cql",
        "edac": "ding.policy.edac",
        "iql": "ding.policy.iql",
        "sac": "ding.policy.sac",
        "discrete_sac": "ding.policy.sac",
        "a2c": "ding.policy.a2c",
        "acer": "ding.policy.acer",
        "impala": "ding.policy.impala",
        "bc": "ding.policy.bc",
        "ppo": "ding.policy.ppo",
        "ppo_offpolicy": "ding.policy.ppo",
        "ppo_command": _COMMAND_MODES,
    },
    "model": {
        "dqn": f"{_MODEL}.q_learning",
        "c51dqn": f"{_MODEL}.q_learning",
        "qrdqn": f"{_MODEL}.q_learning",
        "iqn": f"{_MODEL}.q_learning",
        "rainbowdqn": f"{_MODEL}.q_learning",
        "drqn": f"{_MODEL}.drqn",
        "discrete_bc": f"{_MODEL}.bc",
        "continuous_bc": f"{_MODEL}.bc",
        "continuous_qac": f"{_MODEL}.qac",
        "discrete_qac": f"{_MODEL}.qac",
        "bcq": f"{_MODEL}.bcq",
        "continuous_qvac": f"{_MODEL}.qvac",
        "edac": f"{_MODEL}.edac",
        "continuous_maqac": f"{_MODEL}.maqac",
        "discrete_maqac": f"{_MODEL}.maqac",
        "mavac": f"{_MODEL}.mavac",
        "vac": f"{_MODEL}.vac",
        "acer": f"{_MODEL}.acer",
    },
    "env": {
        "gymnasium": "ding.envs.env.gymnasium_env",
        "coin_race": "ding.envs.games.coin_race",
        "grid_spread": "ding.envs.games.grid_spread",
        "matrix_game": "ding.envs.games.matrix_game",
    },
    "env_wrapper": {
        "noop_reset": f"{_WRAPPER}.atari",
        "max_and_skip": f"{_WRAPPER}.atari",
        "episodic_life": f"{_WRAPPER}.atari",
        "fire_reset": f"{_WRAPPER}.atari",
        "warp_frame": f"{_WRAPPER}.atari",
        "gym_to_gymnasium": f"{_WRAPPER}.gym_to_gymnasium",
        "scaled_float_frame": f"{_WRAPPER}.observations",
        "frame_stack": f"{_WRAPPER}.observations",
        "obs_norm": f"{_WRAPPER}.observations",
        "static_obs_norm": f"{_WRAPPER}.observations",
        "ram": f"{_WRAPPER}.observations",
        "mask_obs": f"{_WRAPPER}.observations",
        "allin_obs": f"{_WRAPPER}.observations",
        "obs_plus_prev_action_reward": f"{_WRAPPER}.observations",
        "eval_episode_return": f"{_WRAPPER}.rewards",
        "clip_reward": f"{_WRAPPER}.rewards",
        "delay_reward": f"{_WRAPPER}.rewards",
        "reward_norm": f"{_WRAPPER}.rewards",
        "time_limit": f"{_WRAPPER}.time_limit",
        "action_repeat": f"{_WRAPPER}.time_limit",
    },
    "env_manager": {
        "base": f"{_MANAGER}.base_env_manager",
        "base_v2": f"{_MANAGER}.base_env_manager",
        "subprocess": f"{_MANAGER}.subprocess_env_manager",
        "async_subprocess": f"{_MANAGER}.subprocess_env_manager",
        "subprocess_v2": f"{_MANAGER}.subprocess_env_manager",
        "gym_vector": f"{_MANAGER}.gym_vector_env_manager",
        "env_pool": f"{_MANAGER}.envpool_env_manager",
    },
    "learner": {
        "base": "ding.worker.learner.base_learner",
    },
    "comm_learner": {
        "flask_fs": "ding.worker.learner.comm.flask_fs_learner",
    },
    "serial_collector": {
        "sample": f"{_COLLECTOR}.sample_serial_collector",
        "episode": f"{_COLLECTOR}.episode_serial_collector",
        "sample_1v1": f"{_COLLECTOR}.battle_sample_serial_collector",
        "episode_1v1": f"{_COLLECTOR}.battle_episode_serial_collector",
    },
    "parallel_collector": {
        "zergling": f"{_COLLECTOR}.zergling_parallel_collector",
        "marine": f"{_COLLECTOR}.marine_parallel_collector",
    },
    "comm_collector": {
        "flask_fs": f"{_COLLECTOR}.comm.flask_fs_collector",
    },
    "serial_evaluator": {
        "interaction": f"{_COLLECTOR}.interaction_serial_evaluator",
        "battle_interaction": f"{_COLLECTOR}.battle_interaction_serial_evaluator",
        "metric": f"{_COLLECTOR}.metric_serial_evaluator",
    },
    "commander": {
        "naive": f"{_COORDINATOR}.base_parallel_commander",
        "solo": f"{_COORDINATOR}.solo_parallel_commander",
        "one_vs_one": f"{_COORDINATOR}.one_vs_one_parallel_commander",
    },
    "league": {
        "one_vs_one": "ding.league.one_vs_one_league",
    },
    "player": {
        "naive_sp_player": "ding.league.player",
        "historical_player": "ding.league.player",
        "main_player": "ding.league.starcraft_player",
        "main_exploiter": "ding.league.starcraft_player",
        "league_exploiter": "ding.league.starcraft_player",
    },
    "dataset": {
        "naive": "ding.data.offline.naive_dataset",
    },
    "buffer": {
        "naive": f"{_BUFFER}.naive_buffer",
        "elastic": f"{_BUFFER}.naive_buffer",
        "sequence": f"{_BUFFER}.naive_buffer",
        "advanced": f"{_BUFFER}.advanced_buffer",
        "episode": f"{_BUFFER}.episode_buffer",
        "deque": "ding.data.buffer.deque_buffer_wrapper",
    },
}
