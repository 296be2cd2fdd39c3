"""What a parallel run says at its end."""

import os
import shlex
from collections.abc import Mapping
from typing import Any

from ding.entry.run_files import read_record
from ding.utils.console import say

STATE_FILE = os.path.join("ckpt", "coordinator_state.pth.tar")


def how_it_ended(exp_name: str) -> tuple[str, str]:
    """Status and reason of a run whose coordinator has let its workers go."""
    record = read_record(exp_name)
    if record.get("status") in (None, "running"):
        return "finished", "the coordinator has ended"
    return record["status"], record.get("reason", "")


def print_ending(main: Mapping[str, Any], status: str, reason: str, mode: str = "parallel") -> None:
    """Print where things are, and as the last line how the run ended.

    Args:
        main: The compiled main config.
        status: One of `RunLog`.
        reason: One line.
        mode: ``parallel``, or ``dist`` for a run whose parts were started by hand.
    """
    exp = main["exp_name"]
    config = shlex.quote(os.path.join(exp, "formatted_total_config.py"))
    best_ckpt = os.path.join(exp, "ckpt", "ckpt_best.pth.tar")
    lines = [f"  run folder  {exp}"]
    if os.path.exists(best_ckpt):
        load = shlex.quote(best_ckpt)
        lines.append(f"  evaluate    ding -m eval -c {config} -s {main['seed']} --load-path {load}")
    if status != "converged" and os.path.exists(os.path.join(exp, STATE_FILE)):
        how = f"parallel -c {config}"
        if mode == "dist":
            how = f"dist -M coordinator -c {shlex.quote(os.path.join(exp, 'total_config.py'))}"
        lines.append(f"  go on       ding -m {how} -s {main['seed']} --resume")
    lines.append(f"  curves      tensorboard --logdir {shlex.quote(exp)}")
    best = read_record(exp).get("best_return")
    ending = f"{status}: {reason}"
    if best is not None and "best mean return" not in reason:
        ending += f"; best mean return {best:.4g}"
    say("\n".join([*lines, ending]))
