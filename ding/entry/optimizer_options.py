"""Learning rates and the like: a state that is loaded must not overrule the config."""

from typing import Any

import torch

#: Options of each parameter group, by the optimiser's name in the policy.
Options = dict[str, list[dict[str, Any]]]


def optimizer_options(policy: Any) -> Options:
    """The options of a policy's optimisers: all of their groups but the parameters."""
    return {
        name: [
            {key: value for key, value in group.items() if key != "params" and _is_plain(value)}
            for group in optimizer.param_groups
        ]
        for name, optimizer in _optimizers(policy).items()
    }


def keep_configured(policy: Any, built: Options, built_before: Options) -> None:
    """After a state was loaded, use what the config has changed since.

    Args:
        policy: The policy, with the state's options.
        built: What the config says now: the options before anything was loaded.
        built_before: What it said when the state was saved.
    """
    for name, optimizer in _optimizers(policy).items():
        groups = zip(optimizer.param_groups, built.get(name, ()), built_before.get(name, ()))
        for group, now, before in groups:
            for key, value in now.items():
                if key in before and value != before[key]:
                    group[key] = _rescaled(group.get(key), value, before[key])


def has_schedule(policy: Any) -> bool:
    """Whether a policy changes its learning rate as training goes on."""
    parts = getattr(policy, "__dict__", {}).values()
    return any(isinstance(part, torch.optim.lr_scheduler.LRScheduler) for part in parts)


def _rescaled(loaded: Any, now: Any, before: Any) -> Any:
    """A changed value, where a schedule had moved the old one by as much as that."""
    if type(loaded) is float and type(now) is float and before and loaded != before:
        return now * (loaded / before)
    return now


def _optimizers(policy: Any) -> dict[str, torch.optim.Optimizer]:
    found = getattr(policy, "__dict__", {})
    return {name: v for name, v in found.items() if isinstance(v, torch.optim.Optimizer)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_plain(part) for part in value)
    return value is None or isinstance(value, bool | int | float | str)
