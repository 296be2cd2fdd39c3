"""What a run prints at its end: how it ended, where things are, and what to do with them."""

import importlib.util
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ding.config.save import runs_as_it_is
from ding.data.offline.saved_items import STATE_FILE
from ding.entry.run_folder import read_record
from ding.utils.console import say
from ding.utils.ending import Ending

CONFIG_FILE = "formatted_total_config.py"
#: What a run of a mode goes on from, and the config that says how; other modes have the serial one.
_PARALLEL_STATE = os.path.join("ckpt", "coordinator_state.pth.tar")
_PARALLEL = ("parallel", "dist")
_DIST_CONFIG = "total_config.py"


@dataclass(frozen=True)
class EndReport:
    """A run, for what is to be said of it.

    Attributes:
        mode: Of the command line: ``serial``, ``parallel``, ...; ``dist`` if its parts were
            started by hand; empty if no command can start it.
        given: Arguments that the run was given beside its config: no command can give them.
        limits: Options of the command that begin with a blank.
    """

    exp_name: str
    seed: int
    mode: str
    given: tuple[str, ...] = ()
    limits: str = ""

    def verdict(self, ending: Ending, best: float | None) -> str:
        """How it ended, in one line."""
        return f"{ending}" + ("" if best is None else f"; best mean return {best:.4g}")

    def next_steps(self, ending: Ending) -> Iterator[str]:
        """Where things are, and the commands that go on from there."""
        yield f"  run folder  {self.exp_name}"
        checkpoint = os.path.join(self.exp_name, "ckpt", "ckpt_best.pth.tar")
        if os.path.exists(checkpoint):
            yield f"  evaluate    {self._evaluating(checkpoint)}"
        state = _PARALLEL_STATE if self.mode in _PARALLEL else STATE_FILE
        if ending.status != "converged" and os.path.exists(os.path.join(self.exp_name, state)):
            yield f"  go on       {self._resuming()}"
        missing = importlib.util.find_spec("tensorboard") is None
        hint = "  (after: pip install tensorboard)" if missing else ""
        yield f"  curves      tensorboard --logdir {shlex.quote(self.exp_name)}{hint}"

    @property
    def _config(self) -> str:
        return os.path.join(self.exp_name, CONFIG_FILE)

    def _evaluating(self, checkpoint: str) -> str:
        runs = runs_as_it_is(self._config)
        if runs and not self.given:
            return f"ding eval {shlex.quote(self.exp_name)} -s {self.seed}"
        whole = repr(self._config) if runs else "(main_config, create_config)"
        named = "".join(f", {name}={name}" for name in self.given)
        call = f"ding.entry.eval({whole}, seed={self.seed}{named}, load_path={checkpoint!r})"
        return f"in Python: {call}"

    def _resuming(self) -> str:
        config = self._config
        if self.mode == "dist":
            config = os.path.join(self.exp_name, _DIST_CONFIG)
        elif self.mode not in _PARALLEL and not (
            self.mode and runs_as_it_is(config) and not self.given
        ):
            return (
                f"in Python: the same call, with exp_name={self.exp_name!r} and "
                "policy.learn.resume_training=True in the config"
            )
        mode = "dist -M coordinator" if self.mode == "dist" else self.mode
        return f"ding -m {mode} -c {shlex.quote(config)} -s {self.seed}{self.limits} --resume"


def print_ending(main: Mapping[str, Any], ending: Ending, mode: str) -> None:
    """Print the report of a run of several processes; its last line is how the run ended.

    Args:
        main: The compiled main config.
        mode: ``parallel`` or ``dist``.
    """
    report = EndReport(main["exp_name"], main["seed"], mode)
    best = read_record(report.exp_name).get("best_return")
    say("\n".join([*report.next_steps(ending), report.verdict(ending, best)]))
