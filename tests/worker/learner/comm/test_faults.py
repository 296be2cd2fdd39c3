"""What goes wrong around a comm learner ends in a recovery or in a cause."""

import os
import shutil
import time

import numpy as np
import pytest
import torch

from ding.policy.dqn import DQNPolicy
from ding.torch_utils.weights_file import read_weights
from ding.utils import POLICY_REGISTRY, durations, read_file
from tests.worker.learner.comm.rig import Failed, Rig, report, until

STATE = "exp/kept/state"


class TestChunks:
    @pytest.mark.parametrize("name", ["gone", "../../etc/passwd"])
    def test_one_that_cannot_be_found_is_reported_and_others_are_trained_on(self, rig, name):
        rig.begin()
        rig.chunk("c0")
        rig.unnamed.append(report(name))
        info = rig.learn(1)
        assert [bad for bad, _ in info["bad_chunks"]] == [name]
        assert info["received"] == ["c0"]
        until(lambda: rig.learn()["learner_step"] == 1)
        assert not rig.learn()["bad_chunks"]  # reported once

    @pytest.mark.parametrize("size", [0, 10, 300, None])
    def test_damaged_chunk_is_reported(self, rig, size):
        rig.begin()
        rig.chunk("c0")
        rig.chunk("cut")
        if size is None:
            with open(rig.data.file("cut"), "wb") as file:
                file.write(b"\xff" * 5000)
        else:
            os.truncate(rig.data.file("cut"), size)
        info = rig.learn(1)
        assert [name for name, _ in info["bad_chunks"]] == ["cut"]
        until(lambda: rig.learn()["learner_step"] == 1)

    def test_a_batch_waits_for_a_chunk_that_can_be_read(self, rig):
        rig.begin()
        rig.unnamed.append(report("gone"))
        rig.learn(1)
        until(lambda: rig.learn()["starved"])
        rig.chunk()
        rig.learn()
        until(lambda: rig.learn()["learner_step"] == 1)


class TestTraining:
    def test_nan_fails_the_next_poll_and_the_learner_can_begin_again(self, rig):
        rig.begin()
        rig.chunk("nan", nan=True)
        rig.learn(1)
        with pytest.raises(Failed, match="DataError") as failed:
            until(lambda: rig.ask("learner_get_data_task") is None)
        assert failed.value.result["type"] == "DataError"
        assert "Traceback" in failed.value.result["traceback"]
        with pytest.raises(Failed, match="DataError"):
            rig.close_task()
        assert rig.learner.failed is None
        rig.begin(policy_id="policy_2", buffer_id="buffer_2")
        rig.chunk()
        rig.feed(3)

    def test_error_of_users_code_wakes_a_poll_that_waits(self, tmp_path):
        class Failing(DQNPolicy):
            def _forward_learn(self, data):
                time.sleep(0.2)
                raise RuntimeError("own words")

        POLICY_REGISTRY.register("failing_dqn", Failing, force_overwrite=True)
        with Rig(tmp_path, prefetch=1) as rig:
            rig.begin(policy=dict(type="failing_dqn"))
            rig.chunk()
            rig.learn(2)
            start = time.monotonic()
            with pytest.raises(Failed, match="RuntimeError: own words"):
                rig.ask("learner_get_data_task", wait=10)
            assert time.monotonic() - start < 5

    def test_policy_that_cannot_be_built_fails_the_start(self, rig):
        with pytest.raises(Failed, match="no_such_policy"):
            rig.begin(policy=dict(type="no_such_policy"))
        rig.begin()

    def test_endless_update_is_named_when_the_task_is_closed(self, rig, slow_policy, monkeypatch):
        monkeypatch.setattr(durations, "LEARNER_STOP", 0.5)
        rig.leaves_threads = True
        rig.begin(policy=dict(type="slow_dqn"))
        rig.chunk()
        rig.learn(1)
        until(lambda: rig.learn()["iteration_seconds"] > 0)
        with pytest.raises(Failed, match=r"iteration 0 .* did not end .*threading\.py") as hung:
            rig.close_task()
        assert "_forward_learn" in hung.value.result["traceback"]
        assert "did not end" in rig.learner.failed
        assert rig.learner.join(0)
        slow_policy.set()

    def test_endless_update_fails_a_poll(self, rig, slow_policy):
        rig.begin(learner=dict(iteration_timeout=0.3), policy=dict(type="slow_dqn"))
        rig.chunk()
        rig.learn(1)
        with pytest.raises(Failed, match=r"LearnerHung: iteration 0 .* under way"):
            until(lambda: rig.ask("learner_get_data_task", wait=0.1) is None)
        slow_policy.set()


class TestState:
    def run_some(self, rig, batches=10, **kwargs):
        rig.begin(state_path=STATE, **kwargs)
        rig.chunk()
        rig.feed(batches)
        return rig.close_task()["learner_step"]

    def test_goes_on_from_it(self, tmp_path):
        with Rig(tmp_path) as rig:
            step = self.run_some(rig)
            state = read_file(STATE)
            assert state["learner"]["last_iter"] == step
        with Rig(tmp_path) as rig:
            rig.begin(state_path=STATE, task_id="learner_task_2")
            until(lambda: rig.learn()["policy_iter"] is not None)
            assert rig.learn()["learner_step"] == step
            weights, facts = read_weights(rig.policy, "policy_1")
            assert facts["policy_iter"] == step
            for name, value in state["policy"]["model"].items():
                assert torch.equal(torch.as_tensor(np.asarray(weights["model"][name])), value)
            assert rig.close_task()["learner_step"] == step
            after = read_file(STATE)["policy"]
            assert after["target_update_count"] == state["policy"]["target_update_count"]
            steps = [s["step"] for s in after["optimizer"]["state"].values()]
            assert steps == [s["step"] for s in state["policy"]["optimizer"]["state"].values()]

    def test_is_saved_now_and_then_while_it_trains(self, rig, monkeypatch):
        monkeypatch.setattr("ding.utils.durations.LEARNER_SAVE_INTERVAL", 0.05)
        monkeypatch.setattr("ding.worker.learner.comm.state_keeper.MAX_SHARE", 1.0)
        rig.begin(state_path=STATE)
        rig.chunk()
        rig.feed(1)
        path = STATE

        def step():
            rig.learn(8)  # it hardly ever waits for data
            return read_file(path)["learner"]["last_iter"] if os.path.exists(path) else 0

        until(lambda: step() > 0)
        assert step() <= rig.learn()["learner_step"]

    def test_is_saved_when_the_master_is_lost(self, rig):
        rig.begin(state_path=STATE)
        rig.chunk()
        rig.feed(10)
        rig.master.lose("learner", "as a test")
        until(lambda: os.path.exists(STATE))
        rig.connect("again")
        with pytest.raises(Failed, match="no learner task"):
            rig.ask("learner_get_data_task")
        rig.begin(state_path=STATE)
        until(lambda: rig.ask("learner_get_data_task")["cur_learner_iter"] >= 10)

    def test_damaged_one_fails_the_start(self, rig):
        self.run_some(rig)
        os.truncate(STATE, 100)
        with pytest.raises(Failed, match=r"CheckpointError.*state"):
            rig.begin(state_path=STATE)

    def test_state_of_another_model_fails_the_task(self, rig):
        self.run_some(rig)
        model = dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[8])
        rig.begin(state_path=STATE, policy=dict(model=model))
        with pytest.raises(Failed, match=r"state .* cannot be used: Error"):
            until(lambda: rig.ask("learner_get_data_task") is None)

    def test_processes_that_go_on_from_different_states_are_reported(self, rig, monkeypatch):
        module = "ding.worker.learner.comm.state_keeper"
        monkeypatch.setattr(f"{module}.get_world_size", lambda: 2)
        monkeypatch.setattr(f"{module}.allreduce_data", lambda value, op: value + 0.5)
        rig.begin(state_path=STATE)
        with pytest.raises(Failed, match=r"DataError: rank 0 .* another state"):
            until(lambda: rig.ask("learner_get_data_task") is None)

    def test_iterations_count_over_all_tries(self, rig):
        step = self.run_some(rig)
        rig.begin(state_path=STATE, learner=dict(train_iterations=step + 2))
        rig.learn(8)
        until(lambda: rig.learn()["learner_done"])
        assert rig.close_task()["learner_step"] == step + 2

    def test_one_that_cannot_be_written_is_reported(self, rig):
        rig.begin(state_path=STATE)
        os.makedirs(STATE)
        rig.chunk()
        rig.feed(3)
        finish = rig.close_task()
        lines = [line for info in [*rig.infos, finish] for line in info["warnings"]]
        assert any("state cannot be" in line for line in lines)


class TestPublishing:
    def test_failing_is_reported_and_tried_again(self, rig):
        rig.begin()
        until(lambda: rig.learn()["policy_iter"] == 0)
        shutil.rmtree(rig.policy.path)
        with open(rig.policy.path, "w"):
            pass
        rig.chunk()
        rig.feed(3)
        until(lambda: "cannot be published" in (rig.learn()["trouble"] or ""))
        os.remove(rig.policy.path)
        os.mkdir(rig.policy.path)
        until(lambda: rig.learn()["policy_iter"] >= 3)
        assert not rig.learn()["warnings"]

    def test_failing_for_long_fails_the_task(self, rig, monkeypatch):
        monkeypatch.setattr("ding.utils.durations.PUBLISH_PATIENCE", 0.5)
        rig.begin()
        until(lambda: rig.learn()["policy_iter"] == 0)
        shutil.rmtree(rig.policy.path)
        with open(rig.policy.path, "w"):
            pass
        with pytest.raises(Failed, match=r"CheckpointWriteError.*policy"):
            rig.chunk()
            rig.feed(10**6)

    def test_weights_of_one_whose_master_is_silent_stay_back(self, tmp_path):
        with Rig(tmp_path, heartbeat_span=30, heartbeat_tolerance=0.3) as rig:
            rig.begin()
            until(lambda: rig.learn()["policy_iter"] == 0)
            rig.chunk()
            rig.learn(1)
            until(lambda: rig.learn()["policy_iter"] == 1)
            time.sleep(0.5)
            rig.learner.task.send_policy({"model": {"w": torch.zeros(1)}, "iter": 99})
            time.sleep(0.2)
            assert read_weights(rig.policy, "policy_1")[1]["policy_iter"] == 1
            rig.learn()  # it is heard of again
            until(lambda: read_weights(rig.policy, "policy_1")[1]["policy_iter"] == 99)

    def test_given_up_learner_publishes_nothing(self, rig, slow_policy):
        rig.begin(policy=dict(type="slow_dqn"))
        rig.chunk()
        rig.learn(1)
        until(lambda: rig.learn()["iteration_seconds"] > 0)
        task = rig.learner.task
        rig.master.lose("learner", "as a test")
        until(lambda: rig.learner.task is None)
        slow_policy.set()
        until(lambda: task.ended)
        assert read_weights(rig.policy, "policy_1")[1]["policy_iter"] == 0
