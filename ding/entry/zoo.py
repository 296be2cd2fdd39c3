"""Trained policies to use at once: those of a run's folder, and those that the package brings."""

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ding.config.read import read_config_directly
from ding.entry.end_report import CONFIG_FILE
from ding.utils.errors import CheckpointError, ConfigError

#: What names of policies that the package brings begin with.
PREFIX = "zoo:"
CHECKPOINT_ENDING = ".pth.tar"
_FOLDER = Path(__file__).resolve().parent.parent / "zoo"
_BEST = "ckpt_best.pth.tar"
_NUMBERED = re.compile(r"iteration_(\d+)\.pth\.tar")


@dataclass(frozen=True)
class TrainedFiles:
    """What there is of a trained policy.

    Attributes:
        config: File of the config.
        checkpoint: File of the weights; ``None`` if the run has none.
    """

    config: str
    checkpoint: str | None

    @property
    def weights(self) -> str:
        """File of the weights.

        Raises:
            CheckpointError: The run has none.
        """
        if self.checkpoint is None:
            folder = os.path.join(os.path.dirname(self.config), "ckpt")
            raise CheckpointError(f"{folder} holds no checkpoint; pass checkpoint")
        return self.checkpoint


def find_trained(name: str | os.PathLike) -> TrainedFiles:
    """The files of a trained policy.

    Args:
        name: Folder of a run, whose best checkpoint is taken, or else the newest; or
            ``zoo:NAME``.

    Raises:
        ConfigError: There is no such run, or nothing of that name in the zoo.
    """
    name = os.fspath(name)
    if name.startswith(PREFIX):
        return _find_in_zoo(name.removeprefix(PREFIX))
    config = os.path.join(name, CONFIG_FILE)
    if not os.path.isfile(config):
        raise ConfigError(f"no run in {os.path.abspath(name)!r}: there is no {CONFIG_FILE}")
    return TrainedFiles(config, _newest(os.path.join(name, "ckpt")))


def zoo_names() -> list[str]:
    """Names of the policies that the package brings."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def zoo_facts(name: str) -> dict[str, Any]:
    """How a policy of the zoo was trained and judged, by a few words."""
    return dict(read_config_directly(_find_in_zoo(name).config)["zoo"])


def _find_in_zoo(name: str) -> TrainedFiles:
    names = zoo_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
        meant = f"; did you mean {PREFIX}{near[0]}?" if near else "."
        raise ConfigError(f"the zoo has no {name!r}{meant} `ding eval zoo:` lists what there is")
    stem = os.path.join(_FOLDER, name)
    return TrainedFiles(f"{stem}.yaml", f"{stem}{CHECKPOINT_ENDING}")


def _newest(folder: str) -> str | None:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    if _BEST in names:
        return os.path.join(folder, _BEST)
    numbered = [match for match in map(_NUMBERED.fullmatch, names) if match]
    if not numbered:
        return None
    return os.path.join(folder, max(numbered, key=lambda match: int(match[1]))[0])
