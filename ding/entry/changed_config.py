"""What differs between the config of a run and the one that it goes on with."""

from collections.abc import Mapping
from typing import Any

#: Where a run is and how it goes on; these change with every resume.
_PLACES = ("exp_name", "policy.learn.resume_training", "policy.learn.learner.hook")


def config_facts(cfg: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """All values of a compiled config as text, by their full path."""
    facts: dict[str, str] = {}
    for key, value in cfg.items():
        place = f"{path}.{key}" if path else str(key)
        if place in _PLACES:
            continue
        if isinstance(value, Mapping):
            facts.update(config_facts(value, place))
        elif not callable(value):  # its text is another in each process
            facts[place] = repr(value)
    return facts


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """``key: before -> now`` of each key that both have and that differs."""
    return [
        f"{key}: {before[key]} -> {now[key]}"
        for key in before
        if key in now and now[key] != before[key]
    ]
