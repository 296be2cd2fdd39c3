"""What a policy's modes show of its networks, for tests."""

from typing import Any


def model_of(policy: Any) -> Any:
    """The network that learns."""
    return policy.learn_mode.get_attribute("model")


def target_of(policy: Any) -> Any:
    """The target network."""
    return policy.learn_mode.get_attribute("target_model")


def optimizer_of(policy: Any) -> Any:
    """The optimiser of the network."""
    return policy.learn_mode.get_attribute("optimizer")
