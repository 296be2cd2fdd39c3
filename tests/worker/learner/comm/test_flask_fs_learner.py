"""A comm learner over real HTTP: tasks, batches, weights, state, and what goes wrong."""

import numpy as np

from ding.torch_utils.weights_file import read_weights
from tests.worker.learner.comm.rig import BATCH, Rig


def test_trains_on_what_it_asks_for(tmp_path):
    with Rig(tmp_path) as rig:
        assert rig.ask("resource")["ours"] == 1
        assert rig.begin()["task_id"] == "learner_task_1"
        chunk = rig.chunk()
        demand = rig.ask("learner_get_data_task")
        assert (demand["batch_size"], demand["batch_num"]) == (BATCH, 8)
        info = rig.feed([chunk], until=20)
        assert info["learner_step"] >= 20
        assert not info["learner_done"]
        finish = rig.close_task()
        assert finish["learner_step"] >= 20
        assert finish["policy_id"] == "policy_1"
        state, facts = read_weights(rig.policy, "policy_1")
        assert facts["policy_iter"] == finish["learner_step"]
        assert all(np.isfinite(value).all() for value in state["model"].values())
