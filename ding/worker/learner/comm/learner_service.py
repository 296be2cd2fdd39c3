"""The learner that takes samples from a sample store and publishes policies in a weight store."""

from collections.abc import Mapping
from typing import cast

from easydict import EasyDict

from ding.worker.learner.comm.base_comm_learner import BaseCommLearner
from ding.worker.learner.comm.learn_report import LearnInfo
from ding.worker.learner.comm.policy_publisher import PUBLISHED, Version
from ding.worker.learner.comm.training_task import TrainingTask
from ding.worker.learner.learner_hook import LearnerHook
from ding.worker.messages import Json
from ding.worker.seams import Artifacts, Samples, SampleStore, Weights, WeightStore


class LearnerService(BaseCommLearner):
    """Works on learner tasks over the stores of an engine.

    Args:
        cfg: As `BaseCommLearner` takes it.
        samples: Where samples come from.
        weights: Where policies go.
        artifacts: Where the state is kept.
    """

    def __init__(
        self,
        cfg: Mapping[str, object],
        samples: SampleStore,
        weights: WeightStore,
        artifacts: Artifacts,
    ) -> None:
        super().__init__(EasyDict(cfg))
        self._read_now, self._weights, self._artifacts = samples.get, weights, artifacts

    def _begin(self, task: TrainingTask) -> None:
        self._weights.version(task.info.policy_id)  # a name that cannot be used is found now
        super()._begin(task)

    # What the learner calls

    def send_policy(self, state_dict: Version) -> None:
        """Publish a version of the policy for the collectors.

        Args:
            state_dict: ``model`` and ``env_statistics``, beside facts of the version.
        """
        facts: dict[str, Json] = {
            "policy_iter": cast(Json, state_dict.get("iter")),
            **{n: cast(Json, state_dict.get(n)) for n in ("envstep", "time", "learner")},
        }
        state = {name: state_dict[name] for name in PUBLISHED if name in state_dict}
        self._weights.publish(self.policy_id, Weights(state, facts))

    def get_data(self, batch_size: int) -> Samples | None:
        """The next batch; waits until there is one, and is ``None`` if there will be no more."""
        return self.next_batch()

    def send_learn_info(self, learn_info: LearnInfo) -> None:
        """Keep results until the coordinator asks."""
        super().send_learn_info(learn_info)

    @property
    def hooks4call(self) -> list[LearnerHook]:
        """Publish before the first and after every update and at the end; give every result."""
        return super().hooks4call
