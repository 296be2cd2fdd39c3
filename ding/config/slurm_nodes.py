"""The nodes of a Slurm job, from the environment."""

import itertools
import os
import re
from collections.abc import Iterator

from ding.utils.errors import ConfigError

_NODE_VARIABLES = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")


def job_nodes() -> list[str]:
    """The nodes of the Slurm job that this process runs in.

    Raises:
        ConfigError: It runs in none.
    """
    for name in _NODE_VARIABLES:
        if os.environ.get(name):
            return expand_nodes(os.environ[name])
    raise ConfigError(
        f"no Slurm nodes: run inside a job ({' or '.join(_NODE_VARIABLES)} is set there), or name "
        "the hosts of learners and collectors"
    )


def expand_nodes(text: str) -> list[str]:
    """The nodes of a Slurm list such as ``gpu[01-03,7],login-a``.

    Raises:
        ConfigError: Brackets that do not match.
    """
    nodes: list[str] = []
    if set(re.sub(r"\[[^\[\]]*\]", "", text)) & set("[]"):
        raise ConfigError(f"cannot read the list of Slurm nodes {text!r}")
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        pieces = re.split(r"\[([^\]]*)\]", part.strip())
        choices = [
            [piece] if index % 2 == 0 else list(_numbers(piece))
            for index, piece in enumerate(pieces)
        ]
        nodes += ["".join(chosen) for chosen in itertools.product(*choices)]
    return nodes


def _numbers(text: str) -> Iterator[str]:
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not dash:
            yield first
            continue
        if not (first.isdigit() and last.isdigit()):
            raise ConfigError(f"cannot read the range {part!r} in a list of Slurm nodes")
        for number in range(int(first), int(last) + 1):
            yield str(number).zfill(len(first))
