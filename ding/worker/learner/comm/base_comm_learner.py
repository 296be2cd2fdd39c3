"""Learner workers whose samples and weights travel by methods of the user's."""

from abc import abstractmethod

from easydict import EasyDict

from ding.utils import COMM_LEARNER_REGISTRY, import_module
from ding.worker.learner.comm.learner_service import LearnerService
from ding.worker.learner.comm.policy_publisher import Version
from ding.worker.learner.comm.training_task import LearnInfo
from ding.worker.learner.learner_hook import LearnerHook


class BaseCommLearner(LearnerService):
    """Base class of comm types: methods in place of a run's sample and weight stores.

    Args:
        cfg: As `LearnerService` takes it, and what the comm type reads.
    """

    def __init__(self, cfg: EasyDict) -> None:
        super().__init__(cfg)

    @abstractmethod
    def send_policy(self, state_dict: Version) -> None:
        """Publish a version of the policy, under the name `policy_id`; called in a separate thread
        with a copy.

        Args:
            state_dict: ``model`` and perhaps ``env_statistics``; ``iter``, the number of updates;
                ``envstep``, ``time``, ``learner``.

        Raises:
            OSError: It cannot be stored now; it will be tried again.
        """

    @abstractmethod
    def get_data(self, batch_size: int) -> object:
        """The next batch: samples, or functions that each load one; ``None`` if there will be no
        more. Called in the training thread; see `next_batch`."""

    @abstractmethod
    def send_learn_info(self, learn_info: LearnInfo) -> None:
        """Take the results of an update; ``super()`` keeps them until the coordinator asks."""
        super().send_learn_info(learn_info)

    @property
    @abstractmethod
    def hooks4call(self) -> list[LearnerHook]:
        """Hooks to register in a learner that was made; those of ``super()`` call the methods above
        when they are due."""
        return super().hooks4call


def create_comm_learner(cfg: EasyDict) -> BaseCommLearner:
    """Build the registered comm learner ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    learner: BaseCommLearner = COMM_LEARNER_REGISTRY.build(cfg.type, cfg=cfg)
    return learner
