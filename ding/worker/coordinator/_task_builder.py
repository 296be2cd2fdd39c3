"""The task dicts that commanders hand out, made from the main config."""

import copy
import math
from collections.abc import Mapping
from typing import Any

from easydict import EasyDict


def collector_task(
    cfg: Mapping[str, Any], task_id: str, buffer_id: str, **settings: Any
) -> EasyDict:
    """A collector's task.

    Args:
        cfg: The main config.
        buffer_id: Where its data goes.
        settings: What the task says beside or instead of ``policy.collect.collector``.
    """
    collector_cfg = {
        **section(cfg, "policy", "collect", "collector"),
        "policy": section(cfg, "policy"),
        "env": section(cfg, "env"),
        "exp_name": cfg.get("exp_name", "default_experiment"),
        **settings,
    }
    task = {"task_id": task_id, "buffer_id": buffer_id, "collector_cfg": collector_cfg}
    return EasyDict(copy.deepcopy(task))


def learner_task(cfg: Mapping[str, Any], task_id: str, policy_id: str, buffer_id: str) -> EasyDict:
    """A learner's task.

    Args:
        cfg: The main config.
        policy_id: The file of the weights under ``path_policy``.
        buffer_id: Where its data comes from.
    """
    task = {
        "task_id": task_id,
        "policy_id": policy_id,
        "buffer_id": buffer_id,
        "learner_cfg": {
            **section(cfg, "policy", "learn", "learner"),
            "exp_name": cfg.get("exp_name", "default_experiment"),
        },
        "replay_buffer_cfg": section(cfg, "policy", "other", "replay_buffer"),
        "policy": section(cfg, "policy"),
    }
    return EasyDict(copy.deepcopy(task))


def task_env(cfg: Mapping[str, Any], is_eval: bool) -> dict[str, Any]:
    """The env config of a collector's task, which says how many episodes it has.

    ``manager.episode_num`` are those of each environment: ``env.collector_episode_num``, no end
    without it. Evaluations have ``env.evaluator_episode_num``, or as many as it takes for
    ``env.n_evaluator_episode`` in all.
    """
    env = dict(section(cfg, "env"))
    episodes = env.get("collector_episode_num") or math.inf
    if is_eval:
        env_num = env.get("evaluator_env_num") or 1
        episodes = env.get("evaluator_episode_num") or math.ceil(
            (env.get("n_evaluator_episode") or env_num) / env_num
        )
        env["n_evaluator_episode"] = env.get("n_evaluator_episode") or episodes * env_num
    env["manager"] = {**(env.get("manager") or {}), "episode_num": episodes}
    return env


def section(cfg: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """A part of a config; empty where there is none."""
    for key in path:
        cfg = cfg.get(key) or {}
    return cfg
