"""Where the time of one round goes: collecting, the buffer, updates and what is around them.

    python benchmarks/breakdown.py [dqn ppo sac] [--seconds S]

A round is what a serial pipeline does again and again. DQN: 8 CartPoles step once, 3 updates of 64.
PPO: 2048 steps of 8 CartPoles, 4 passes in minibatches of 64. SAC: 8 environments of random numbers
in MuJoCo's shapes step once, one update of 256. The networks are those of ``policies.py``.

A part's time is that of its calls without the parts that it calls itself. Reading the clock costs
about a microsecond a call, which counts to the part around it.
"""

import argparse
import functools
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import _policy_sides as sides
from _timing import CLOCK

_NOW = time.thread_time if CLOCK is time.process_time else time.perf_counter
REST = "update: targets, loss, log"
BATCH = {"dqn": 64, "sac": 256}


class Stopwatch:
    """Time by part; a part that another one calls stops that one's clock."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._running: list[str] = []
        self._since = 0.0

    def watch(self, part: str, owner: Any, *methods: str, within: str | None = None) -> None:
        """Count calls of methods of a class or an object to ``part``.

        Args:
            within: Only those that this part makes.
        """
        for method in methods:
            setattr(owner, method, self._watched(part, getattr(owner, method), within))

    def _watched(
        self, part: str, function: Callable[..., Any], within: str | None
    ) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if within is not None and self._running[-1:] != [within]:
                return function(*args, **kwargs)
            self._turn_to(part)
            try:
                return function(*args, **kwargs)
            finally:
                self._turn_to(None)

        return call

    def _turn_to(self, part: str | None) -> None:
        now = _NOW()
        if self._running:
            self.spent[self._running[-1]] += now - self._since
        if part is None:
            self._running.pop()
        else:
            self._running.append(part)
        self._since = now


def build(name: str, watch: Stopwatch) -> Callable[[], None]:
    """The round of a policy, its parts watched."""
    import os
    import tempfile

    import torch

    os.chdir(tempfile.mkdtemp())
    from ding.entry.components import build_components, load_config
    from ding.model.wrapper.target import TargetNetworkWrapper
    from ding.policy import Policy
    from ding.torch_utils import Adam
    from ding.utils.run_log import RunLog

    main, create = sides.ding_config(name)
    if name != "sac":
        main["env"].update(env_id="CartPole-v1", kwargs={})
    # Before anything holds on to them.
    watch.watch("collect: policy", Policy, "_collect_columns")
    watch.watch("update: batch", Policy, "_batch")
    watch.watch("update: backward", torch.Tensor, "backward")
    watch.watch("update: optimiser", Adam, "step")
    watch.watch("update: target network", TargetNetworkWrapper, "update")
    cfg = load_config((main, create), 0)
    parts = build_components(cfg, RunLog(cfg.exp_name).writer)
    learner, buffer, collector = parts.learner, parts.replay_buffer, parts.collector
    explore = {"eps": 0.1} if name == "dqn" else {}
    for _ in range(100 if buffer is not None else 0):
        buffer.push(collector.collect(policy_kwargs=explore), collector.envstep)
    # Of the class; DQN's update is left to autograd then, as with every changed network.
    watch.watch("update: forward", type(parts.policy._model), "forward", within=REST)
    env = _bare_env(name)
    watch.watch("collect: environments", env, "step", "reset")
    watch.watch("collect: all else", collector, "collect")
    watch.watch(REST, parts.policy, "_forward_learn")
    learner.policy = parts.policy.learn_mode
    watch.watch("learner: hooks and log", learner, "train")
    if buffer is None:
        return lambda: learner.train(collector.collect(policy_kwargs=explore), collector.envstep)
    watch.watch("push", buffer, "push")
    watch.watch("sample", buffer, "sample")
    updates = cfg.policy.learn.update_per_collect

    def play() -> None:
        buffer.push(collector.collect(policy_kwargs=explore), collector.envstep)
        for _ in range(updates):
            learner.train(buffer.sample(BATCH[name], learner.train_iter), collector.envstep)

    return play


def _bare_env(name: str) -> type:
    if name == "sac":
        return sides.Noise
    from gymnasium.envs.classic_control import CartPoleEnv

    return CartPoleEnv


def measure(name: str, seconds: float) -> str:
    """The table of a policy."""
    watch = Stopwatch()
    play = build(name, watch)
    for _ in range(3):
        play()
    watch.spent.clear()
    begin, rounds = _NOW(), 0
    while (total := _NOW() - begin) < seconds:
        play()
        rounds += 1
    parts = {**watch.spent, "the loop itself": total - sum(watch.spent.values())}
    rows = [f"| {name}: part | µs a round | share |", "|---|---|---|"]
    rows += [
        f"| {part} | {spent / rounds * 1e6:,.0f} | {spent / total:.1%} |"
        for part, spent in sorted(parts.items())
    ]
    return "\n".join([*rows, f"| all of {rounds} rounds | {total / rounds * 1e6:,.0f} | |"])


def main() -> None:
    import contextlib
    import logging
    import sys

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="of dqn, ppo, sac; each in a separate process")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each policy")
    args = parser.parse_args()
    if len(args.names) == 1:
        logging.disable(logging.INFO)
        with contextlib.redirect_stdout(sys.stderr):
            text = measure(args.names[0], args.seconds)
        print(text)
        return
    import subprocess

    for name in args.names or ("dqn", "ppo", "sac"):
        command = [sys.executable, __file__, name, "--seconds", str(args.seconds)]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
