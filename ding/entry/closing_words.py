"""What a run says at its end: where things are, and what to do with them."""

import importlib.util
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ding.config.save import runs_as_it_is
from ding.entry.ending import Ending
from ding.entry.run_files import read_record
from ding.utils.console import say

CONFIG_FILE = "formatted_total_config.py"
STATE_FILE = os.path.join("ckpt", "coordinator_state.pth.tar")


def how_it_ended(exp_name: str) -> Ending:
    """How a run ended whose coordinator has let its workers go."""
    record = read_record(exp_name)
    if record.get("status") in (None, "running"):
        return Ending("finished", "the coordinator has ended")
    return Ending(record["status"], record.get("reason", ""))


def print_ending(main: Mapping[str, Any], status: str, reason: str, mode: str = "parallel") -> None:
    """Print where things are, and as the last line how the run ended.

    Args:
        main: The compiled main config.
        status: One of `RunLog`.
        reason: One line.
        mode: ``parallel``, or ``dist`` for a run whose parts were started by hand.
    """
    exp = main["exp_name"]
    config = shlex.quote(os.path.join(exp, CONFIG_FILE))
    lines = [f"  run folder  {exp}", *evaluation_line(exp, main["seed"])]
    if status != "converged" and os.path.exists(os.path.join(exp, STATE_FILE)):
        how = f"parallel -c {config}"
        if mode == "dist":
            how = f"dist -M coordinator -c {shlex.quote(os.path.join(exp, 'total_config.py'))}"
        lines.append(f"  go on       ding -m {how} -s {main['seed']} --resume")
    lines.append(curves_line(exp))
    best = read_record(exp).get("best_return")
    ending = f"{status}: {reason}"
    if best is not None:
        ending += f"; best mean return {best:.4g}"
    say("\n".join([*lines, ending]))


def evaluation_line(exp_name: str, seed: int, given: Sequence[str] = ()) -> list[str]:
    """How to evaluate a run's best policy, if there is one.

    Args:
        exp_name: The run's folder.
        seed: The run's seed.
        given: Arguments that the run was given beside its config: no command can give them.
    """
    checkpoint = os.path.join(exp_name, "ckpt", "ckpt_best.pth.tar")
    if not os.path.exists(checkpoint):
        return []
    config = os.path.join(exp_name, CONFIG_FILE)
    if not given and runs_as_it_is(config):
        how = f"ding -m eval -c {shlex.quote(config)} -s {seed}"
        return [f"  evaluate    {how} --load-path {shlex.quote(checkpoint)}"]
    whole = repr(config) if runs_as_it_is(config) else "(main_config, create_config)"
    named = "".join(f", {name}={name}" for name in given)
    call = f"ding.entry.eval({whole}, seed={seed}{named}, load_path={checkpoint!r})"
    return [f"  evaluate    in Python: {call}"]


def curves_line(exp_name: str) -> str:
    """How to look at a run's curves."""
    missing = importlib.util.find_spec("tensorboard") is None
    hint = "  (after: pip install tensorboard)" if missing else ""
    return f"  curves      tensorboard --logdir {shlex.quote(exp_name)}{hint}"
