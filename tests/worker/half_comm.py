"""A user's comm types with observations in half precision, as ``docs/comm_types.md`` shows."""

import torch

from ding.utils import COMM_COLLECTOR_REGISTRY, COMM_LEARNER_REGISTRY, ENV_REGISTRY
from ding.worker import FlaskFileSystemCollector, FlaskFileSystemLearner
from tests.entry.runs import WalkEnv


def cast(samples, dtype):
    """Samples with observations of another precision."""
    columns = {name: torch.as_tensor(samples.column(name)) for name in ("obs", "next_obs")}
    return samples.with_columns(**{name: column.to(dtype) for name, column in columns.items()})


@COMM_COLLECTOR_REGISTRY.register("half", force_overwrite=True)
class HalfCollector(FlaskFileSystemCollector):
    def send_stepdata(self, path, stepdata):
        super().send_stepdata(path, cast(stepdata, torch.float16))


@COMM_LEARNER_REGISTRY.register("half", force_overwrite=True)
class HalfLearner(FlaskFileSystemLearner):
    def get_data(self, batch_size):
        batch = super().get_data(batch_size)
        return None if batch is None else cast(batch, torch.float32)


@ENV_REGISTRY.register("side_walk", force_overwrite=True)
class SideWalkEnv(WalkEnv):
    """The right action depends on where an episode starts, so that it has to be learned."""

    def step(self, action):
        return super().step(action if self._start[0] > 0.5 else 1 - action)
