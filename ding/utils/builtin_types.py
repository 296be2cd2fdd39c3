"""Lists the modules that register built-in types.

A registry imports the module of a type when the type is first looked up by its name.
"""

from collections.abc import Mapping

_WRAPPERS = "ding.envs.env_wrappers"
_MANAGERS = "ding.envs.env_manager"
_MODELS = "ding.model.template"
_COLLECTORS = "ding.worker.collector"
_BUFFERS = "ding.worker.replay_buffer"
_REWARDS = "ding.reward_model"
_COORDINATOR = "ding.worker.coordinator"

#: Modules that register one type, which has the name of the module.
_POLICIES = "dqfd pdqn acer impala bc happo coma dt"
_NETWORKS = "drqn bcq collaq coma pdqn"


def _each(package: str, names: str) -> dict[str, str]:
    return {f"{package}.{name}": name for name in names.split()}


#: Per registry: the modules, and the names of the types that each module registers.
_MODULES: Mapping[str, Mapping[str, str]] = {
    "policy": {
        **_each("ding.policy", _POLICIES),
        "ding.policy.dqn": "dqn bdq c51 rainbow",
        "ding.policy.qrdqn": "qrdqn iqn fqf",
        "ding.policy.sql": "sql mdqn sqn",
        "ding.policy.r2d2": "r2d2 r2d3",
        "ding.policy.ddpg": "ddpg td3 td3_bc d4pg",
        "ding.policy.advantage_actor_critic": "a2c",
        "ding.policy.policy_gradient": "pg",
        "ding.policy.offline_actor_critic": "bcq iql",
        "ding.policy.cql": "cql cql_discrete discrete_cql edac",
        "ding.policy.sac": "sac discrete_sac sac_discrete sqil_sac",
        "ding.policy.ppg": "ppg ppg_offpolicy",
        "ding.policy.qmix": "qmix wqmix qtran collaq madqn",
        "ding.policy.ppo": "ppo ppo_offpolicy ppo_pg",
        "ding.policy.command_mode_policy_instance": "dqn_command ppo_command",
    },
    "model": {
        **_each(_MODELS, _NETWORKS),
        f"{_MODELS}.q_learning": "dqn c51dqn qrdqn iqn fqf bdq rainbowdqn sqn",
        f"{_MODELS}.decision_transformer": "dt",
        f"{_MODELS}.bc": "discrete_bc continuous_bc",
        f"{_MODELS}.qac": "continuous_qac discrete_qac continuous_qvac continuous_maqac "
        "discrete_maqac",
        f"{_MODELS}.qac_dist": "qac_dist edac",
        f"{_MODELS}.vac": "vac pg ppg acer",
        f"{_MODELS}.mavac": "mavac havac",
        f"{_MODELS}.qmix": "qmix wqmix qtran madqn",
    },
    "env": {
        "ding.envs.games.coin_race": "coin_race",
        "ding.envs.games.tasks": "bitflip deep_sea gym_hybrid",
        "ding.envs.games.cooperative": "grid_spread matrix_game",
        "ding.envs.env.gymnasium_env": "gymnasium",
        "ding.envs.petting_zoo": "petting_zoo",
        "ding.envs.presets": "cartpole pendulum acrobot mountain_car lunarlander "
        "bipedalwalker carracing taxi frozen_lake cliffwalking mujoco d4rl minigrid atari",
    },
    "env_wrapper": {
        f"{_WRAPPERS}.atari": "noop_reset max_and_skip episodic_life fire_reset warp_frame",
        f"{_WRAPPERS}.gym_to_gymnasium": "gym_to_gymnasium",
        f"{_WRAPPERS}.observations": "scaled_float_frame frame_stack obs_norm static_obs_norm ram "
        "mask_obs allin_obs channel_first obs_plus_prev_action_reward one_hot_obs taxi_obs "
        "flatten_obs",
        f"{_WRAPPERS}.rewards": "eval_episode_return clip_reward least_reward delay_reward "
        "reward_norm",
        f"{_WRAPPERS}.steps": "time_limit action_repeat discretize_action flatten_action",
    },
    "env_manager": {
        f"{_MANAGERS}.base_env_manager": "base base_v2",
        f"{_MANAGERS}.subprocess_env_manager": "subprocess async_subprocess subprocess_v2",
        f"{_MANAGERS}.gym_vector_env_manager": "gym_vector",
        f"{_MANAGERS}.envpool_env_manager": "env_pool",
    },
    "learner": {"ding.worker.learner.base_learner": "base"},
    "comm_learner": {"ding.worker.learner.comm.flask_fs_learner": "flask_fs"},
    "serial_collector": {
        f"{_COLLECTORS}.serial_collector": "sample episode sample_1v1 episode_1v1",
    },
    "parallel_collector": {
        f"{_COLLECTORS}.zergling_parallel_collector": "zergling",
        f"{_COLLECTORS}.marine_parallel_collector": "marine",
    },
    "comm_collector": {f"{_COLLECTORS}.comm.flask_fs_collector": "flask_fs"},
    "serial_evaluator": {
        f"{_COLLECTORS}.interaction_serial_evaluator": "interaction battle_interaction",
        f"{_COLLECTORS}.metric_serial_evaluator": "metric",
    },
    "commander": {
        f"{_COORDINATOR}.base_parallel_commander": "naive",
        f"{_COORDINATOR}.solo_parallel_commander": "solo",
        f"{_COORDINATOR}.one_vs_one_parallel_commander": "one_vs_one",
    },
    "league": {"ding.league.one_vs_one_league": "one_vs_one"},
    "player": {
        "ding.league.player": "naive_sp_player historical_player",
        "ding.league.starcraft_player": "main_player main_exploiter league_exploiter",
    },
    "reward_model": {
        f"{_REWARDS}.gail_reward_model": "gail guided_cost",
        f"{_REWARDS}.trex_reward_model": "trex drex",
        f"{_REWARDS}.curiosity": "rnd icm",
        **{f"{_REWARDS}.{name}_reward_model": name for name in ("pwil", "her")},
    },
    "engine": {
        "ding.worker.engines.flask_fs": "flask_fs",
        "ding.worker.engines.local": "local",
        "ding.worker.engines.ray_engine": "ray",
    },
    "tracker": {
        "ding.utils.trackers": "wandb mlflow",
    },
    "dataset": {
        "ding.data.offline.naive_dataset": "naive d4rl_trajectory",
        "ding.data.offline.hdf5_dataset": "hdf5",
        "ding.data.offline.minari_dataset": "minari d4rl",
    },
    "buffer": {
        f"{_BUFFERS}.naive_buffer": "naive elastic sequence",
        f"{_BUFFERS}.advanced_buffer": "advanced",
        f"{_BUFFERS}.episode_buffer": "episode",
        f"{_BUFFERS}.multi_buffer": "multi",
        "ding.data.buffer.deque_buffer_wrapper": "deque",
    },
}

#: Per registry: the name of each built-in type, and the module that registers it.
BUILTIN_TYPES: Mapping[str, Mapping[str, str]] = {
    registry: {name: module for module, names in modules.items() for name in names.split()}
    for registry, modules in _MODULES.items()
}
