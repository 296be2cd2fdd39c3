"""The registry of wrappers."""

import difflib
from typing import Any

from torch import nn

from ding.model.wrapper.base import BaseModelWrapper, HiddenStateWrapper, IModelWrapper
from ding.model.wrapper.sample import (
    ActionNoiseWrapper,
    ArgmaxSampleWrapper,
    DeterministicSampleWrapper,
    EpsGreedyMultinomialSampleWrapper,
    EpsGreedySampleWrapper,
    HybridArgmaxSampleWrapper,
    HybridDeterministicArgmaxSampleWrapper,
    HybridEpsGreedySampleWrapper,
    HybridReparamMultinomialSampleWrapper,
    MultinomialSampleWrapper,
    ReparamSampleWrapper,
    sample_action,
)
from ding.model.wrapper.target import TargetNetworkWrapper
from ding.utils.errors import UnknownTypeError

__all__ = [
    "ActionNoiseWrapper",
    "ArgmaxSampleWrapper",
    "BaseModelWrapper",
    "DeterministicSampleWrapper",
    "EpsGreedyMultinomialSampleWrapper",
    "EpsGreedySampleWrapper",
    "HiddenStateWrapper",
    "HybridArgmaxSampleWrapper",
    "HybridDeterministicArgmaxSampleWrapper",
    "HybridEpsGreedySampleWrapper",
    "HybridReparamMultinomialSampleWrapper",
    "IModelWrapper",
    "MultinomialSampleWrapper",
    "ReparamSampleWrapper",
    "TargetNetworkWrapper",
    "model_wrap",
    "register_wrapper",
    "sample_action",
    "wrapper_name_map",
]

wrapper_name_map: dict[str, type[IModelWrapper]] = {
    "base": BaseModelWrapper,
    "hidden_state": HiddenStateWrapper,
    "argmax_sample": ArgmaxSampleWrapper,
    "multinomial_sample": MultinomialSampleWrapper,
    "eps_greedy_sample": EpsGreedySampleWrapper,
    "eps_greedy_multinomial_sample": EpsGreedyMultinomialSampleWrapper,
    "deterministic_sample": DeterministicSampleWrapper,
    "reparam_sample": ReparamSampleWrapper,
    "hybrid_argmax_sample": HybridArgmaxSampleWrapper,
    "hybrid_eps_greedy_sample": HybridEpsGreedySampleWrapper,
    "hybrid_reparam_multinomial_sample": HybridReparamMultinomialSampleWrapper,
    "hybrid_deterministic_argmax_sample": HybridDeterministicArgmaxSampleWrapper,
    "action_noise": ActionNoiseWrapper,
    "target": TargetNetworkWrapper,
}


def model_wrap(
    model: nn.Module | IModelWrapper, wrapper_name: str | None = None, **kwargs: Any
) -> IModelWrapper:
    """Wrap a network for acting: sampling, exploration noise, hidden states, a target copy.

    Args:
        model: A network, or another wrapper.
        wrapper_name: A key of `wrapper_name_map`; ``'base'`` when None.
        kwargs: Arguments of the wrapper.

    Example:

        >>> import torch
        >>> from ding.model import DQN, model_wrap
        >>> greedy = model_wrap(DQN(obs_shape=4, action_shape=2), wrapper_name="argmax_sample")
        >>> greedy.forward(torch.zeros(8, 4))["action"].shape
        torch.Size([8])
    """
    name = "base" if wrapper_name is None else wrapper_name
    if name not in wrapper_name_map:
        near = difflib.get_close_matches(str(name), wrapper_name_map, n=1)
        raise UnknownTypeError(
            f"no model wrapper is called {name!r}"
            + (f"; did you mean {near[0]!r}?" if near else "")
            + f" Known: {', '.join(sorted(wrapper_name_map))}. "
            "Register a custom wrapper with register_wrapper first."
        )
    return wrapper_name_map[name](model, **kwargs)


def register_wrapper(name: str, wrapper_type: type) -> None:
    """Register a wrapper class for `model_wrap`; an existing name is replaced.

    Raises:
        TypeError: Not a subclass of `IModelWrapper`.
    """
    if not (isinstance(wrapper_type, type) and issubclass(wrapper_type, IModelWrapper)):
        raise TypeError(
            f"register_wrapper: {wrapper_type!r} came; expected a subclass of IModelWrapper"
        )
    wrapper_name_map[name] = wrapper_type
