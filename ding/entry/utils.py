"""Helper functions of pipelines that scripts import."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from easydict import EasyDict
from torch import Tensor

from ding.policy import PolicyFactory
from ding.utils.errors import ConfigError
from ding.worker import IMetric
from ding.worker.collector.steps import Envs, Samples


class AccMetric(IMetric):
    """Accuracy of a classifier."""

    def eval(self, inputs: Tensor | Mapping[str, Tensor], label: Tensor) -> dict[str, float]:
        """Fraction of ``inputs["logit"]`` (``[B, classes]``) whose argmax equals the label."""
        logit = inputs["logit"] if isinstance(inputs, Mapping) else inputs
        return {"Acc": (logit.argmax(-1) == label).float().mean().item()}

    def reduce_mean(self, inputs: list[Any]) -> Any:
        return {"Acc": float(torch.tensor([item["Acc"] for item in inputs]).mean())}

    def gt(self, metric1: Any, metric2: Any) -> bool:
        if metric2 is None:
            return True
        wanted = metric2["Acc"] if isinstance(metric2, dict) else metric2
        return metric1["Acc"] >= wanted


def mark_not_expert(ori_data: Samples) -> Samples:
    """Mark transitions as not an expert's: ``is_expert`` 0."""
    for row in ori_data:
        row["is_expert"] = 0
    return ori_data


def mark_warm_up(ori_data: Samples) -> Samples:
    """Mark transitions as collected before training: ``warm_up`` true."""
    for row in ori_data:
        row["warm_up"] = True
    return ori_data


def random_collect(
    policy_cfg: EasyDict,
    policy: Any,
    collector: Any,
    collector_env: Envs,
    commander: Any,
    replay_buffer: Any,
    postprocess_data_fn: Callable[[Samples], Samples] | None = None,
) -> None:
    """Fill the buffer with samples of a random policy, before training.

    Args:
        policy_cfg: Policy config; ``random_collect_size`` is the number of samples (or episodes),
            and ``transition_with_policy_data`` keeps the policy's own forward pass, for policies
            whose transitions contain its outputs.
        policy: The policy.
        collector: Its collector, which gets the policy back at the end.
        collector_env: The collector's env manager.
        commander: Provides the settings of the policy's forward pass.
        replay_buffer: The buffer for the samples.
        postprocess_data_fn: Applied to the samples first.

    Raises:
        ConfigError: The collector is for battles.
    """
    size = policy_cfg.random_collect_size
    if size <= 0:
        return
    kind = policy_cfg.collect.get("collector", {}).get("type", "sample")
    if kind.endswith("_1v1"):
        raise ConfigError(
            f"policy.random_collect_size is {size}, but the collector {kind!r} has several "
            "policies: set it to 0"
        )
    mode = policy.collect_mode
    if not policy_cfg.get("transition_with_policy_data", False):
        mode = PolicyFactory.get_random_policy(mode, action_space=collector_env.action_space)
    collector.reset_policy(mode)
    settings = commander.step()
    try:
        if kind == "episode":
            data = collector.collect(n_episode=size, policy_kwargs=settings)
        else:
            data = collector.collect(
                n_sample=size,
                random_collect=True,
                record_random_collect=False,
                policy_kwargs=settings,
            )
    finally:
        collector.reset_policy(policy.collect_mode)
    if postprocess_data_fn is not None:
        data = postprocess_data_fn(data)
    replay_buffer.push(data, cur_collector_envstep=0)
