"""The hooks through which a learner publishes its policy and gives its results."""

import time
from typing import Any

from ding.worker.learner.learner_hook import LearnerHook, register_learner_hook

#: The parts of a policy's state that acting takes.
PUBLISHED = ("model", "env_statistics")


class SendPolicyHook(LearnerHook):
    """Publishes the weights at the position's every ``ext_args.send_policy_freq``-th call.

    Between updates it asks ``engine.policy_due()``, where there is one, and puts a version off
    while that says no.
    """

    def __init__(self, *args: Any, ext_args: dict[str, Any] = {}, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._freq = ext_args.get("send_policy_freq", 1)
        self._put_off = False

    def __call__(self, engine: Any) -> None:
        if engine.rank != 0:
            return
        if self.position != "after_iter":
            self._send(engine, engine.last_iter.val)
            return
        done = engine.last_iter.val + 1  # the counter moves on after the hooks
        if done % self._freq == 0:
            self._put_off = True
        due = getattr(engine, "policy_due", None)
        if self._put_off and (due is None or due()):
            self._send(engine, done)

    def flush(self, engine: Any) -> None:
        """Publish what was put off; called between updates."""
        if self._put_off:
            self._send(engine, engine.last_iter.val)

    def _send(self, engine: Any, policy_iter: int) -> None:
        self._put_off = False
        state = engine.policy.state_dict()
        shared = {name: state[name] for name in PUBLISHED if name in state}
        engine.send_policy(
            {
                **shared,
                "iter": policy_iter,
                "envstep": engine.collector_envstep,
                "time": time.time(),
            }
        )


class SendLearnInfoHook(LearnerHook):
    """Gives ``engine.learn_info`` at the position's every ``ext_args.freq``-th call."""

    def __init__(self, *args: Any, ext_args: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._freq = ext_args.get("freq", 1)

    def __call__(self, engine: Any) -> None:
        if self.position != "after_iter" or engine.last_iter.val % self._freq == 0:
            engine.send_learn_info(engine.learn_info)


register_learner_hook("send_policy", SendPolicyHook)
register_learner_hook("send_learn_info", SendLearnInfoHook)
