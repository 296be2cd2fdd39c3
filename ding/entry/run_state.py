"""All that a run needs to go on as if it had never stopped."""

import os
import random
from typing import Any

import numpy as np
import torch

from ding.entry.components import Components
from ding.torch_utils import to_device
from ding.utils import read_file, save_file
from ding.utils.errors import CheckpointError

FILE_NAME = "resume.pth.tar"


def state_path(exp_name: str) -> str:
    """Where a run's state is kept."""
    return os.path.join(exp_name, "ckpt", FILE_NAME)


def save_run_state(parts: Components) -> None:
    """Save policy, optimiser, buffer, counters, the evaluator's best, RNG and env seeds.

    Episodes that are running are not saved: they start anew.

    Raises:
        CheckpointError: The file cannot be written; the previous one is intact.
    """
    state = {
        "policy": to_device(dict(parts.learner.policy.state_dict()), "cpu"),
        "train_iter": parts.learner.train_iter,
        "collector": parts.collector.state_dict(),
        "evaluator": parts.evaluator.state_dict(),
        "buffer": parts.replay_buffer.state_dict() if parts.replay_buffer is not None else None,
        "rng": _rng_state(),
    }
    save_file(state_path(parts.cfg.exp_name), state)


def load_run_state(parts: Components) -> None:
    """Take up the state that :func:`save_run_state` saved in the same run folder.

    Raises:
        CheckpointError: There is none, or it does not fit this config.
    """
    path = state_path(parts.cfg.exp_name)
    if not os.path.exists(path):
        raise CheckpointError(
            f"nothing to resume: {path} does not exist. Use the exp_name of the run to go on with"
        )
    state = read_file(path)
    try:
        parts.learner.policy.load_state_dict(state["policy"])
        parts.learner.last_iter.update(state["train_iter"])
        parts.collector.load_state_dict(state["collector"])
        parts.learner.collector_envstep = parts.collector.envstep
        parts.evaluator.load_state_dict(state["evaluator"])
        if parts.replay_buffer is not None:
            parts.replay_buffer.load_state_dict(state["buffer"])
    except (KeyError, RuntimeError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{path} does not fit this config: {type(error).__name__}: {error}"
        ) from error
    # Last: building and loading the parts may have drawn from the generators.
    _set_rng_state(state["rng"])


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
