"""Comm types of a user's own: samples are numpy files, weights are rows of a database.

``docs/comm_types.md`` shows them.
"""

import contextlib
import io
import os
import sqlite3

import numpy as np
import torch

from ding.data import Columns
from ding.utils import COMM_COLLECTOR_REGISTRY, COMM_LEARNER_REGISTRY, ENV_REGISTRY
from ding.utils.errors import ChunkError
from ding.worker import BaseCommCollector, BaseCommLearner
from tests.entry.runs import WalkEnv


class Depot:
    """A folder of ``.npz`` files, and a database with the weights."""

    def __init__(self, path):
        os.makedirs(path, exist_ok=True)
        self.path = path
        with self._database() as database:
            database.execute("CREATE TABLE IF NOT EXISTS weights (name PRIMARY KEY, iter, state)")

    def _database(self):
        return sqlite3.connect(os.path.join(self.path, "weights.sqlite"), timeout=10)

    def put(self, name, samples):
        arrays = {key: np.asarray(column) for key, column in samples.columns.items()}
        np.savez(os.path.join(self.path, f"{name}.npz"), **arrays)

    def get(self, name):
        try:
            with np.load(os.path.join(self.path, f"{name}.npz")) as arrays:
                return Columns({key: torch.from_numpy(arrays[key]) for key in arrays})
        except OSError as error:
            raise ChunkError(name, str(error)) from error

    def remove(self, name):
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.path, f"{name}.npz"))

    def publish(self, name, state_dict):
        content = io.BytesIO()
        torch.save(state_dict["model"], content)
        with self._database() as database:
            row = (name, state_dict["iter"], content.getvalue())
            database.execute("REPLACE INTO weights VALUES (?, ?, ?)", row)

    def newest(self, name):
        with self._database() as database:
            query = "SELECT iter, state FROM weights WHERE name = ?"
            row = database.execute(query, (name,)).fetchone()
        if row is None:
            return None
        model = torch.load(io.BytesIO(row[1]), weights_only=True)
        return {"iter": row[0], "model": model}


@COMM_COLLECTOR_REGISTRY.register("numpy", force_overwrite=True)
class NumpyCollector(BaseCommCollector):
    """Writes samples into files, reads weights from the database."""

    def __init__(self, cfg):
        super().__init__(cfg)
        self._depot = Depot(cfg.depot)

    def get_policy_update_info(self, path):
        return self._depot.newest(path)

    def send_stepdata(self, path, stepdata):
        self._depot.put(path, stepdata)

    def send_metadata(self, metadata):
        super().send_metadata(metadata)

    @classmethod
    def remove_stepdata(cls, cfg, path):
        Depot(cfg.depot).remove(path)


@COMM_LEARNER_REGISTRY.register("numpy", force_overwrite=True)
class NumpyLearner(BaseCommLearner):
    """Reads samples from files, writes weights into the database."""

    def __init__(self, cfg):
        super().__init__(cfg)
        self._depot = Depot(cfg.depot)

    def get_data(self, batch_size):
        return self.next_batch(self._depot.get)

    def send_policy(self, state_dict):
        self._depot.publish(self.policy_id, state_dict)

    def send_learn_info(self, learn_info):
        super().send_learn_info(learn_info)

    @property
    def hooks4call(self):
        return super().hooks4call


@ENV_REGISTRY.register("side_walk", force_overwrite=True)
class SideWalkEnv(WalkEnv):
    """The right action depends on where an episode starts, so that it has to be learned."""

    def step(self, action):
        return super().step(action if self._start[0] > 0.5 else 1 - action)
