"""The commander of one policy."""

import uuid

from ding.utils import COMMANDER_REGISTRY

from ._commander_tasks import OpenTask, Trainee
from ._policy_commander import PolicyCommander
from ._types import StateDict


@COMMANDER_REGISTRY.register("solo")
class SoloCommander(PolicyCommander):
    """One policy and one buffer, made with the learner's task; all collectors work for them."""

    config: StateDict = dict(eval_share=0.1, greedy_share=0.5)
    _begins_with_eval = True

    def _new_trainee(self) -> Trainee | None:
        if self._is_trained_out:
            return None
        uid = uuid.uuid4().hex[:8]
        return Trainee(policy_id=f"policy_{uid}", buffer_id=f"buffer_{uid}")

    def _let_go(self, trainee: Trainee) -> None:
        self._current.remove(trainee)

    def _make_job(self, is_eval: bool) -> OpenTask:
        return OpenTask(self._current[-1], is_eval)
