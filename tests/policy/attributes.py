"""What a policy's modes show of its networks, for tests."""

from typing import Any

from ding.data import tree_map
from ding.utils.running_mean_std import RunningMeanStd


def model_of(policy: Any) -> Any:
    """The network that learns."""
    return policy.learn_mode.get_attribute("model")


def target_of(policy: Any) -> Any:
    """The target network."""
    return policy.learn_mode.get_attribute("target_model")


def optimizer_of(policy: Any) -> Any:
    """The optimiser of the network."""
    return policy.learn_mode.get_attribute("optimizer")


def collects(policy: Any, obs: Any, **settings: Any) -> Any:
    """What the policy answers to tensors of observations while it collects."""
    return policy.collect_mode.batched.forward(tree_map(lambda leaf: leaf.numpy(), obs), **settings)


def evaluates(policy: Any, obs: Any) -> Any:
    """What it answers to them in an evaluation."""
    return policy.eval_mode.batched.forward(tree_map(lambda leaf: leaf.numpy(), obs))


def value_norm_of(policy: Any, mode: str = "learn") -> RunningMeanStd:
    """A copy of the moments of the returns, whose deviation is the unit of the critic."""
    moments = RunningMeanStd()
    moments.load_state_dict(getattr(policy, f"{mode}_mode").state_dict()["value_norm"])
    return moments
