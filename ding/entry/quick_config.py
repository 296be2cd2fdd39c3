"""A config for an environment of gymnasium: in memory, or as a file (``ding init``)."""

import copy
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
from gymnasium import spaces

from ding.config.schema import SCHEMA
from ding.envs import GymnasiumEnv
from ding.policy.fit import action_space_of, check_kind, model_shapes
from ding.utils import ENV_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.file_helper import replace_text


def quick_config(env_id: str, policy: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """``main_config`` and ``create_config`` that train ``policy`` in ``env_id``.

    Shapes come from the environment's spaces, ``stop_value`` from the threshold that it is
    registered with; without one, training ends at a limit.

    Args:
        env_id: An id of gymnasium, or a short name such as ``cartpole``.
        policy: One that learns while it collects, such as ``dqn``, ``ppo`` or ``sac``.

    Raises:
        ConfigError: No such environment, or a policy that does not suit its spaces.
    """
    policy = policy.removesuffix("_command")
    if env_id.lower() in ENV_REGISTRY:
        preset = ENV_REGISTRY.get(env_id.lower())
        env_id = getattr(preset, "default_id", "") or env_id
    if policy not in _POLICIES:
        raise ConfigError(
            f"there are no settings for policy {policy!r} without a config file; there are some "
            f"for {', '.join(_POLICIES)}. Others need a config file (-c)"
        )
    env = GymnasiumEnv({"env_id": env_id})
    try:
        observation_space, action_space = env.observation_space, env.action_space
    finally:
        env.close()
    shapes = model_shapes(observation_space, action_space)
    if "obs_shape" not in shapes:
        raise ConfigError(
            f"env {env_id!r} has observations of {observation_space}: networks without a config "
            "file read one array, images with their colours first; write a config file with "
            "env.env_wrapper (such as 'atari_default' for images)"
        )
    env_cfg = dict(env_id=env_id, collector_env_num=8, evaluator_env_num=5, n_evaluator_episode=5)
    # An id may name a module before its colon, which has been imported by now.
    threshold = gymnasium.spec(env_id.rpartition(":")[2]).reward_threshold
    if threshold is not None:
        env_cfg["stop_value"] = threshold
    check_kind(policy, action_space)
    settings, of_model = _POLICIES[policy]
    policy_cfg = copy.deepcopy(settings)
    policy_cfg["model"].update(**of_model, **shapes)
    if settings is _ADVANTAGE:
        policy_cfg["action_space"] = action_space_of(action_space)
        policy_cfg["model"]["action_space"] = policy_cfg["action_space"]
    if isinstance(action_space, spaces.Box):
        env_cfg["act_scale"] = True
    file_name = "".join(c if c.isalnum() or c in "-_." else "_" for c in env_id)
    main = dict(exp_name=f"exp/{file_name}_{policy}", env=env_cfg, policy=policy_cfg)
    create = dict(
        env=dict(type="gymnasium"), env_manager=dict(type="base"), policy=dict(type=policy)
    )
    return main, create


_VALUE_BASED: dict[str, Any] = dict(
    nstep=3,
    discount_factor=0.99,
    model=dict(encoder_hidden_size_list=[128, 128, 64]),
    learn=dict(update_per_collect=16, batch_size=128, learning_rate=5e-4, target_update_freq=200),
    collect=dict(n_sample=64),
    eval=dict(evaluator=dict(eval_freq=400)),
    other=dict(
        eps=dict(type="exp", start=0.95, end=0.05, decay=5000),
        replay_buffer=dict(replay_buffer_size=50000),
    ),
)
_ACTOR_CRITIC: dict[str, Any] = dict(
    random_collect_size=1000,
    model=dict(twin_critic=True, actor_head_hidden_size=128, critic_head_hidden_size=128),
    learn=dict(update_per_collect=8, batch_size=128),
    collect=dict(n_sample=8),
    eval=dict(evaluator=dict(eval_freq=1000)),
    other=dict(replay_buffer=dict(replay_buffer_size=100000)),
)
_ADVANTAGE: dict[str, Any] = dict(
    model=dict(encoder_hidden_size_list=[64, 64], share_encoder=False),
    learn=dict(epoch_per_collect=10, batch_size=64, learning_rate=3e-4),
    collect=dict(n_sample=2048, discount_factor=0.99, gae_lambda=0.95),
    eval=dict(evaluator=dict(eval_freq=1000)),
)
# Returns of rewards in [-1, 1].
_ATOMS = dict(v_min=-100, v_max=100)
#: Settings of a policy, and further arguments of its network.
_POLICIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **dict.fromkeys(("dqn", "iqn", "mdqn", "qrdqn", "sql"), (_VALUE_BASED, {})),
    **dict.fromkeys(("c51", "rainbow"), (_VALUE_BASED, _ATOMS)),
    **dict.fromkeys(("discrete_sac", "sac"), (_ACTOR_CRITIC, {})),
    **dict.fromkeys(("ddpg", "td3"), (_ACTOR_CRITIC, dict(action_space="regression"))),
    "ppo": (_ADVANTAGE, {}),
}


_WIDTH = 100


def write_new_config(path: str, env_id: str, policy: str) -> None:
    """Write a config that trains a policy in an environment, with the meaning of each key.

    Raises:
        ConfigError: The file exists, no such environment, or a policy that does not suit it.
    """
    if os.path.exists(path):
        raise ConfigError(f"{path} exists already: choose another name")
    main, create = quick_config(env_id, policy)
    meanings = {path: key.meaning for key in SCHEMA for path in (key.path, *key.twins)}
    lines = [
        f'"""{policy} on {env_id}. Run it: ding -c {path} -s 0"""',
        "",
        "main_config = dict(",
        *_entries(main, "", 1, meanings),
        ")",
        "create_config = dict(",
        *_entries(create, "", 1, {}),
        ")",
    ]
    replace_text(path, "\n".join(lines) + "\n")


def _entries(
    section: Mapping[str, Any], path: str, depth: int, meanings: Mapping[str, str]
) -> Iterator[str]:
    indent = "    " * depth
    for name, value in section.items():
        key = f"{path}.{name}" if path else name
        if isinstance(value, Mapping) and value:
            yield f"{indent}{name}=dict("
            yield from _entries(value, key, depth + 1, meanings)
            yield f"{indent}),"
            continue
        literal = json.dumps(value) if isinstance(value, str) else repr(value)
        line, meaning = f"{indent}{name}={literal},", meanings.get(key, "")
        if not meaning:
            yield line
        elif len(line) + len(meaning) + 4 <= _WIDTH:
            yield f"{line}  # {meaning}"
        else:
            yield f"{indent}# {meaning}"
            yield line
