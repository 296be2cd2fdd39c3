"""The config keys, a row each; checks and the docs are made from them.

A class's own keys, with their defaults, are in its ``config``. A row adds what that cannot say:
the meaning, the range, another place or older names of the same setting, and keys that configs may
hold although no class has a default for them.
"""

from typing import Any

from ding.config._env_keys import DATASET, ENV, RUN
from ding.config._parallel_keys import SYSTEM
from ding.config._policy_keys import POLICY
from ding.config._reward_keys import REWARD_MODEL
from ding.config.key import Key

#: All rows, in the order in which messages name keys.
SCHEMA: tuple[Key, ...] = (*RUN, *DATASET, *ENV, *POLICY, *REWARD_MODEL, *SYSTEM)

#: Numbers of things; other whole numbers may become fractions.
COUNTS = frozenset(key.path for key in SCHEMA if key.whole)
#: What configs hold and nothing reads.
SILENT = frozenset(key.path for key in SCHEMA if key.silent)
#: The same setting in two places.
TWINS = tuple((key.path, twin) for key in SCHEMA for twin in key.twins)
#: Older names, and the names of today.
OLD_NAMES = tuple((old, key.path) for key in SCHEMA for old in key.old)

#: Sections of ``create_config``; the last ones are those of parallel mode.
CREATE_SECTIONS = (
    *("env", "env_manager", "policy", "learner", "collector", "evaluator", "replay_buffer"),
    *("reward_model", "commander", "model", "comm_learner", "comm_collector", "league"),
)


def examples() -> dict[str, Any]:
    """The keys that every main config may hold, nested, each with an example of its value."""
    tree: dict[str, Any] = {}
    for key in SCHEMA:
        if not key.known:
            continue
        *way, last = key.path.split(".")
        section = tree
        for name in way:
            below = section.get(name)
            section[name] = section = below if isinstance(below, dict) else {}
        section[last] = dict(key.like) if isinstance(key.like, dict) else key.like
    return tree


def in_range(range_: str) -> list[Key]:
    """The keys whose numbers have this range."""
    return [key for key in SCHEMA if key.range == range_]
