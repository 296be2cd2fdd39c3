"""All that a run needs to go on as if it had never stopped."""

import contextlib
import copy
import logging
import os
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from ding.data.buffer.ring_buffer import RingBuffer
from ding.data.offline.saved_items import ROWS_FOLDER, STATE_FILE
from ding.data.row_journal import RowJournal
from ding.entry.components import Components
from ding.entry.optimizer_options import keep_configured
from ding.torch_utils import to_device
from ding.utils import read_file, save_file
from ding.utils.errors import CheckpointError
from ding.utils.file_helper import temporary_name

logger = logging.getLogger(__name__)

#: The state before; it is taken up if the last one is damaged.
PREVIOUS_NAME = "resume_previous.pth.tar"
#: Where a run is and how it goes on; these change with every resume.
_PLACES = ("exp_name", "policy.learn.resume_training", "policy.learn.learner.hook")


def state_path(exp_name: str) -> str:
    """Where a run's state is kept."""
    return os.path.join(exp_name, STATE_FILE)


def rows_path(exp_name: str) -> str:
    """The folder of the replay buffer's rows that a run's state refers to."""
    return os.path.join(exp_name, ROWS_FOLDER)


def take_run_state(parts: Components, journal: RowJournal) -> dict[str, Any]:
    """Policy, optimiser, buffer, counters, the evaluator's best, RNG and env seeds, as a copy:
    training may go on before it is written.

    Episodes that are running are not in it: they start anew.

    Args:
        journal: The one of the saves before, so that rows that it has are not written again.
    """
    buffer = parts.replay_buffer
    own = {name: part for name, part in _stateful(parts).items() if part is not buffer}
    state = {
        "policy": to_device(dict(parts.learner.policy.state_dict()), "cpu"),
        **{name: part.state_dict() for name, part in own.items()},
        "rng": _rng_state(),
        "optimizer_options": parts.built_options,
        "config": _config_facts(parts.cfg),
    }
    state = copy.deepcopy(state)
    if isinstance(buffer, RingBuffer):
        with buffer.rows_in(journal):
            state["buffer"] = buffer.state_dict()  # copies already
    elif buffer is not None and hasattr(buffer, "state_dict"):
        state["buffer"] = copy.deepcopy(buffer.state_dict())
    return state


def write_run_state(exp_name: str, state: dict[str, Any], journal: RowJournal) -> None:
    """Write a state that `take_run_state` took.

    Raises:
        CheckpointWriteError: The file cannot be written; the previous one is intact.
        TypeError: A part's state holds something that cannot be stored.
    """
    journal.write()
    path = state_path(exp_name)
    _keep(path, os.path.join(os.path.dirname(path), PREVIOUS_NAME))
    save_file(path, state)
    journal.remove_unused()


def _keep(path: str, previous: str) -> None:
    """Let the state before stay, under another name; the journal keeps its rows as well."""
    temporary = temporary_name(previous)
    # A file system without hard links keeps the newest state alone.
    with contextlib.suppress(OSError):
        os.link(path, temporary)
        os.replace(temporary, previous)


def load_run_state(
    parts: Components,
    journal: RowJournal | None = None,
    warn: Callable[[str], None] = logger.warning,
) -> list[str]:
    """Take up the state that `write_run_state` wrote into the same run folder.

    Args:
        journal: For the saves to come, so that rows that are there are not written again.
        warn: Told which state is damaged.

    If it is damaged, and the one before is not, it goes on from that one, which takes its place.

    Returns:
        What the config has changed since; it holds from now on.

    Raises:
        CheckpointError: There is none, or it does not fit this config.
    """
    path = state_path(parts.cfg.exp_name)
    previous = os.path.join(os.path.dirname(path), PREVIOUS_NAME)
    if not os.path.exists(path):
        raise CheckpointError(
            f"nothing to resume: {path} does not exist. Use the exp_name of the run to go on with"
        )
    journal = journal or RowJournal(rows_path(parts.cfg.exp_name))
    try:
        return _load_state(path, parts, journal)
    except CheckpointError as error:
        if not os.path.exists(previous):
            raise
        try:
            changed = _load_state(previous, parts, journal)
        except CheckpointError:
            raise error from None
        os.replace(previous, path)
        warn(f"{error}; going on from the state that was saved before it")
        return changed


def _load_state(path: str, parts: Components, journal: RowJournal) -> list[str]:
    state = read_file(path)
    try:
        changed = _changes(state["config"], _config_facts(parts.cfg))
        parts.learner.policy.load_state_dict(state["policy"])
        keep_configured(parts.policy, parts.built_options, state["optimizer_options"])
        with _rows_in(journal, parts.replay_buffer):
            for name, part in _stateful(parts).items():
                part.load_state_dict(state[name])
        rng = state["rng"]
    except (KeyError, RuntimeError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{path} does not fit this config: {type(error).__name__}: {error}"
        ) from error
    # Last: building and loading the parts may have drawn from the generators.
    _set_rng_state(rng)
    return changed


def _rows_in(journal: RowJournal, buffer: Any) -> contextlib.AbstractContextManager[None]:
    return buffer.rows_in(journal) if isinstance(buffer, RingBuffer) else contextlib.nullcontext()


def load_best_result(parts: Components, warn: Callable[[str], None]) -> None:
    """Let the evaluator know the result of the ``ckpt_best`` that is in the run folder.

    It may be newer than the run's state, and no worse policy may replace it.
    """
    path = os.path.join(parts.cfg.exp_name, "ckpt", "ckpt_best.pth.tar")
    if not os.path.exists(path):
        return
    try:
        state = read_file(path)
    except CheckpointError as error:
        warn(f"{error}; the next evaluation replaces it")
        return
    if state.get("eval_result") is not None:
        parts.evaluator.best = state["eval_result"]


def _stateful(parts: Components) -> dict[str, Any]:
    found = {
        "learner": parts.learner,
        "collector": parts.collector,
        "evaluator": parts.evaluator,
        "buffer": parts.replay_buffer,
    }
    return {name: part for name, part in found.items() if hasattr(part, "state_dict")}


def _config_facts(cfg: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """All values of a compiled config as text, by their full path."""
    facts: dict[str, str] = {}
    for key, value in cfg.items():
        place = f"{path}.{key}" if path else str(key)
        if place in _PLACES:
            continue
        if isinstance(value, Mapping):
            facts.update(_config_facts(value, place))
        elif not callable(value):  # its text is another in each process
            facts[place] = repr(value)
    return facts


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """``key: before -> now`` of each key that both have and that differs."""
    return [
        f"{key}: {before[key]} -> {now[key]}"
        for key in before
        if key in now and now[key] != before[key]
    ]


def _rng_state() -> dict[str, Any]:
    kind, keys, position, has_gauss, gauss = np.random.get_state()
    return {
        "python": random.getstate(),
        "numpy": (kind, np.asarray(keys), position, has_gauss, gauss),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
    }


def _set_rng_state(state: dict[str, Any]) -> None:
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    np.random.set_state(tuple(state["numpy"]))
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
