"""What several learners tell, as if one had told it."""

from collections.abc import Mapping, Sequence
from typing import Any

from ding.worker.messages import Json

_SUMS = frozenset({"trained", "own_rows"})
_LEAST = frozenset({"learner_step", "cur_learner_iter", "policy_iter", "batch_num", "envstep"})


def merged_info(infos: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """The results of several learners as those of one.

    ``learner_step`` and other counters that all share: the least; ``trained`` and ``own_rows``: the
    sum; ``priority_info``, ``bad_chunks`` and ``warnings``: one after another; ``learner_done``:
    whether all are; ``waiting``: what any waits for; other numbers: the mean.
    """
    merged: dict[str, Json] = {}
    for name in dict.fromkeys(key for info in infos for key in info):
        values = [info[name] for info in infos if info.get(name) is not None]
        merged[name] = _merged(name, values, len(infos)) if values else None
    return merged


def _merged(name: str, values: list[Any], count: int) -> Any:
    first = values[0]
    if name == "learner_done":
        return len(values) == count and all(values)
    if all(isinstance(value, dict) for value in values):
        keys = dict.fromkeys(key for value in values for key in value)
        return {
            key: _merged(key, [value[key] for value in values if key in value], len(values))
            for key in keys
        }
    if all(isinstance(value, list) for value in values):
        return [item for value in values for item in value]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return first
    if name in _LEAST:
        return min(values)
    return sum(values) if name in _SUMS else sum(values) / len(values)
