"""The naive learner for tests of coordinators."""

import pytest

from ding.worker.learner.comm import NaiveLearner
from tests.worker.learner.comm.rig import Asker, Failed


def test_takes_every_step_and_is_done_soon():
    with (
        NaiveLearner("127.0.0.1", 0, prefix="a_") as learner,
        Asker(learner.my_address) as master,
    ):
        assert "gpu" in master.ask("resource")
        info = {"task_id": "t", "buffer_id": "b"}
        assert master.ask("learner_start_task", task_info=info)["message"].startswith("a_")
        done = []
        while not (done and done[-1]):
            demand = master.ask("learner_get_data_task")
            assert (demand["task_id"], demand["cur_learner_iter"]) == ("t", len(done))
            data = [{"replay_buffer_idx": i, "replay_unique_id": str(i)} for i in range(2)]
            answer = master.ask("learner_learn_task", data=data)
            assert answer["info"]["priority_info"]["replay_buffer_idx"] == [0, 1]
            done.append(answer["info"]["learner_done"])
            assert len(done) <= 5
        assert master.ask("learner_close_task")["learner_step"] == len(done)
        with pytest.raises(Failed, match="dance"):
            master.ask("dance")
