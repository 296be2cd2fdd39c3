"""What tests of learning share: the seed that they train with, and how far they are from failing.

A test that trains and then asks for a result takes the fixture ``learned``, seeds everything with
``learned.seed`` and states its result by one of the methods below. ``--learning-seed`` sets the
seed (0 by default), ``--margins FILE`` appends the margin of each result to ``FILE`` as a JSON
line. `benchmarks/learning_margins.py` runs these tests over many seeds and instruction sets.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Learned:
    """Results of one test of learning.

    Attributes:
        test: The test's id.
        seed: Seeds networks, data and environments of the test.
        margins: File that margins are appended to; ``None`` for no file.
    """

    test: str
    seed: int
    margins: Path | None = None

    def at_most(self, value: float, limit: float, what: str = "") -> None:
        """Fail unless ``0 <= value < limit``; the margin is the share of ``limit`` that is left."""
        is_good = 0 <= value < limit
        margin = 1 - float(value) / limit if value >= 0 else -1.0
        if self.margins is not None:
            row = {"test": self.test, "seed": self.seed, "margin": margin}
            with self.margins.open("a") as file:
                file.write(json.dumps(row) + "\n")
        assert is_good, f"{what or 'got'} {value}, wanted 0 to {limit} (seed {self.seed})"

    def near(self, values: Iterable[float], expected: Iterable[float], tolerance: float) -> None:
        """Fail unless each of ``values`` is within ``tolerance`` of the expected one."""
        miss = np.abs(np.asarray(values, float) - np.asarray(expected, float)).max()
        self.at_most(float(miss), tolerance, "largest deviation")

    def is_true(self, success: bool, what: str) -> None:
        """Fail unless ``success``, a result of which there is no nearly."""
        self.at_most(0.0 if success else 1.0, 0.5, what)

    def converged(self, run: Path, max_env_step: int) -> None:
        """Fail unless the run in this folder reached its goal within ``max_env_step``."""
        end = json.loads((run / "run.json").read_text())
        reached = end["status"] == "converged"
        self.at_most(end["envstep"] if reached else 2 * max_env_step, max_env_step + 1, f"{end}")

    def lowered(self, losses: list[float], share: float) -> None:
        """Fail unless the mean of the last five losses is below ``share`` of that of the first."""
        self.at_most(float(np.mean(losses[-5:]) / np.mean(losses[:5])), share, "loss: last / first")
