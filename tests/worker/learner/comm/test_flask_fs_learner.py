"""A comm learner over real HTTP: tasks, batches, weights and reports."""

import gc
import os
import threading
import time
import weakref

import numpy as np
import pytest
import torch

from ding.data import Columns
from ding.data.chunks import write_chunk
from ding.policy import DQNPolicy
from ding.torch_utils.weights_file import read_weights
from ding.utils import POLICY_REGISTRY, save_file
from ding.worker.engines import shared_folder
from ding.worker.learner.comm.flask_fs_learner import FlaskFileSystemLearner
from tests.worker.learner.comm.rig import BATCH, Failed, Rig, report, rows, task_info, until


def test_trains_on_what_it_asks_for(rig):
    assert rig.ask("resource").keys() == {"cpu", "gpu", "ours"}
    assert rig.begin()["task_id"] == "learner_task_1"
    rig.chunk()
    demand = rig.ask("learner_get_data_task")
    assert (demand["batch_size"], demand["batch_num"]) == (BATCH, 8)
    assert (demand["buffer_id"], demand["cur_learner_iter"]) == ("buffer_1", 0)
    info = rig.feed(20)
    assert info["learner_step"] >= 20
    assert not info["learner_done"]
    finish = rig.close_task()
    assert finish["learner_step"] >= 20
    assert finish["policy_id"] == "policy_1"
    state, facts = read_weights(rig.policy, "policy_1")
    assert facts["policy_iter"] == finish["learner_step"]
    assert all(torch.isfinite(torch.as_tensor(v)).all() for v in state["model"].values())


def test_policies_get_columns(tmp_path):
    seen = []

    class Columnar(DQNPolicy):
        def _forward_learn(self, data):
            seen.append(isinstance(data, Columns) and data.is_columnar)
            return super()._forward_learn(data)

    POLICY_REGISTRY.register("columnar_dqn", Columnar, force_overwrite=True)
    with Rig(tmp_path) as rig:
        rig.begin(policy={"type": "columnar_dqn"})
        rig.chunk()
        rig.feed(3)
        rig.close_task()
    assert seen
    assert all(seen)


def test_trains_on_no_sample_that_became_too_old_while_it_waited(rig):
    seen = []

    class Watched(DQNPolicy):
        def _forward_learn(self, data):
            seen.append([self.updates - row["collect_iter"] for row in data])
            self.updates += 1
            return super()._forward_learn(data)

        updates = 0

    POLICY_REGISTRY.register("watched_dqn", Watched, force_overwrite=True)
    limits = {"replay_buffer_size": 1000, "max_staleness": 3}
    rig.begin(policy={"type": "watched_dqn"}, replay_buffer_cfg=limits)
    young = rows()
    young.column("collect_iter")[:16] = 5
    write_chunk(rig.data, "c0", young)
    rig.unnamed.append(report("c0"))
    rig.learn(12)
    until(lambda: rig.learn()["starved"])
    # Four batches of all of them, five of those that are young enough by then.
    assert len(seen) == 9
    assert max(age for ages in seen for age in ages) == 3
    assert [name for info in rig.infos for name in info["left"]] == ["c0"]
    write_chunk(rig.data, "c1", young)
    rig.unnamed.append({**report("c1"), "collect_iter": 0})
    rig.learn()
    rig.chunk("c2")
    until(lambda: rig.learn()["own_rows"] == 0)
    assert len(seen) == 9


def test_priorities_stay_with_the_samples(rig):
    rig.begin()
    rig.chunk()
    rig.learn(2)
    until(lambda: rig.learn()["learner_step"] == 2)
    assert not any(info["priority_info"] for info in rig.infos)
    state = rig.replay()
    assert state["chunks"] == ["c0"]
    # Two batches of eight, which may have samples in common, have others than the rest.
    assert 9 <= len(set(state["priority"].tolist())) <= 17
    assert rig.trained == 2


def test_reports_chunks_that_it_has_and_that_have_left(rig):
    rig.begin(replay_buffer_cfg={"replay_buffer_size": 40})
    for i in range(3):
        rig.chunk(f"c{i}")
    info = rig.learn()
    assert (info["received"], info["left"], info["own_rows"]) == (
        ["c0", "c1", "c2"],
        ["c0"],
        40,
    )
    info = rig.learn()
    assert (info["received"], info["left"], info["starved"]) == ([], [], False)


def test_one_that_begins_again_has_priorities_and_uses_of_the_one_before(tmp_path):
    limits = {"replay_buffer_cfg": {"replay_buffer_size": 1000, "max_use": 1000}}
    with Rig(tmp_path) as rig:
        rig.begin(state_path="exp/kept/state", **limits)
        rig.chunk("c0")
        rig.chunk("c1")
        rig.feed(10)
        rig.close_task()
        before = rig.replay()
    with Rig(tmp_path) as rig:
        rig.begin(state_path="exp/kept/state", task_id="learner_task_2", **limits)
        rig.unnamed += [report("c0"), report("c1")]
        rig.learn()
        after = rig.replay()
    assert after["chunks"] == before["chunks"]
    for name in ("rows", "priority", "use"):
        assert after[name].tolist() == before[name].tolist()


def test_a_task_with_another_buffer_frees_that_of_the_one_before(rig):
    rig.begin()
    rig.chunk("c0")
    rig.feed(2)
    rig.close_task()
    before = weakref.ref(rig.learner.replays["buffer_1"])
    rig.begin(task_id="learner_task_2", buffer_id="buffer_1")
    assert rig.learn()["own_rows"] == 32
    rig.close_task()
    rig.begin(task_id="learner_task_3", buffer_id="buffer_2")
    rig.chunk("c1")
    assert rig.learn()["own_rows"] == 32
    gc.collect()
    assert list(rig.learner.replays) == ["buffer_2"]
    assert before() is None


def test_checkpoints_and_logs_of_players_are_apart(rig):
    for player_id in ("main_0", "main_1"):
        own = {"player_id": player_id, "train_iterations": 2, "hook": {"save_ckpt_after_iter": 1}}
        rig.begin(learner={**own, "hook": {**own["hook"], "keep_ckpt": 1}}, buffer_id=player_id)
        rig.chunk(f"chunk_{player_id}")
        rig.feed(2)
        until(lambda: rig.learn()["learner_done"])
        rig.close_task()
    kept = ["main_0_iteration_2.pth.tar", "main_1_iteration_2.pth.tar"]
    assert sorted(os.listdir("exp/ckpt")) == kept
    assert {"learner_main_0", "learner_main_1"} <= set(os.listdir("exp/log"))


def test_says_what_it_waits_for(rig):
    rig.begin()
    until(lambda: rig.learn()["waiting"] == "data")
    until(lambda: rig.learn()["wait_share"] > 0.2)


def test_answers_with_the_next_demand_when_asked_to_wait(rig):
    rig.begin()
    rig.chunk()
    info = rig.learn(8, wait=5)
    assert info["batch_num"] > 0


def test_demand_waits_while_enough_is_ready(rig, slow_policy):
    rig.begin(policy=dict(type="slow_dqn"))
    rig.chunk()
    rig.learn(9)
    start = time.monotonic()
    assert rig.ask("learner_get_data_task", wait=0.2)["batch_num"] == 0
    assert time.monotonic() - start >= 0.2
    slow_policy.set()
    assert rig.ask("learner_get_data_task", wait=5)["batch_num"] > 0


def test_is_done_after_its_iterations(rig):
    rig.begin(learner=dict(train_iterations=3))
    rig.chunk()
    rig.learn(5)
    until(lambda: rig.learn()["learner_done"])
    info = rig.learn()
    assert info["learner_step"] == 3
    assert rig.close_task()["learner_done"]
    assert os.path.exists("exp/ckpt/iteration_3.pth.tar")


def test_publishes_what_environments_normalise_by(rig):
    rig.begin()
    rig.chunk()
    moments = {"count": 2.0, "mean": [1.0, 3.0], "m2": [0.5, 0.25]}
    rig.learn(1, {"env_statistics": {"ObsNormWrapper": moments}, "envstep": 640})
    until(lambda: rig.learn()["learner_step"] == 1)
    until(lambda: rig.learn()["envstep"] == 640)
    rig.close_task()
    weights, facts = read_weights(rig.policy, "policy_1")
    assert facts["envstep"] == 640
    state = weights["env_statistics"]["ObsNormWrapper"]
    assert {name: np.asarray(value).tolist() for name, value in state.items()} == moments


def test_publishes_at_most_every_50_ms(rig, monkeypatch):
    times = []
    write = shared_folder.write_weights
    monkeypatch.setattr(
        shared_folder, "write_weights", lambda *args: (times.append(time.monotonic()), write(*args))
    )
    start = time.monotonic()
    rig.begin()
    rig.chunk()
    fed = 0
    while len(times) < 4:
        rig.feed(20)
        fed += 20
    rig.close_task()
    # The last one is not put off.
    assert len(times) <= (time.monotonic() - start) / 0.05 + 3
    assert read_weights(rig.policy, "policy_1")[1]["policy_iter"] >= fed


def test_newest_weights_go_out_while_data_is_missing(rig):
    rig.begin()
    rig.chunk()
    rig.learn(5)
    until(lambda: rig.learn()["policy_iter"] == 5)


def test_publishes_every_few_updates(tmp_path):
    with Rig(tmp_path, send_policy_freq=1000) as rig:
        rig.begin()
        rig.chunk()
        rig.feed(20)
        assert rig.learn()["policy_iter"] == 0


def test_reads_a_part_of_a_trajectory(tmp_path):
    path = str(tmp_path / "trajectory")
    save_file(path, [{"obs": i} for i in range(10)])
    meta = {"unroll_split_begin": 4, "unroll_len": 3}
    part = FlaskFileSystemLearner.load_data_fn(path, meta, lambda data: data)
    assert [step["obs"] for step in part] == [4, 5, 6]


def test_the_documented_calls_do_a_task(rig):
    learner = rig.learner
    assert learner.deal_with_resource()["ours"] is True
    learner.deal_with_learner_start(task_info())
    assert learner.deal_with_get_data()["batch_size"] == BATCH
    write_chunk(rig.data, "c0", rows())
    learner.deal_with_learner_learn({"draws": 3, "chunks": [report("c0")]})
    until(lambda: learner.deal_with_learner_learn({})["learner_step"] == 3)
    assert learner.deal_with_learner_close()["policy_id"] == "policy_1"


class TestConnections:
    def test_end_of_the_run_ends_it_and_another_master_may_come(self, rig):
        rig.begin()
        assert not rig.learner.join(0)
        rig.connection.disconnect()
        assert rig.learner.join(5)
        assert rig.learner.failed is None
        rig.connect("again")
        rig.begin()
        rig.chunk()
        rig.feed(3)
        # The first was never closed.
        rig.begin(task_id="learner_task_2", policy_id="policy_2")
        demand = rig.ask("learner_get_data_task")
        assert (demand["task_id"], demand["cur_learner_iter"]) == ("learner_task_2", 0)
        until(lambda: rig.learn()["policy_iter"] == 0)
        assert rig.close_task()["policy_id"] == "policy_2"

    def test_close_may_be_called_twice_and_unstarted(self, tmp_path):
        with Rig(tmp_path) as rig:
            rig.begin()
            rig.learner.close()
            rig.learner.close()
            assert rig.learner.join(0)
        idle = Rig(tmp_path)
        idle.learner.close()

    def test_close_does_not_wait_for_an_open_poll(self, rig):
        rig.begin()
        rig.chunk()
        rig.learn(8)
        rig.connection.new_task({"name": "learner_get_data_task", "wait": 10}).start()
        start = time.monotonic()
        rig.learner.close()
        assert time.monotonic() - start < 8

    @pytest.mark.slow
    def test_unknown_steps_and_wrong_data_are_reported(self, rig):
        with pytest.raises(Failed, match="unknown task 'dance'"):
            rig.ask("dance")
        with pytest.raises(Failed, match="no learner task"):
            rig.ask("learner_get_data_task")
        with pytest.raises(Failed, match="expected an object"):
            rig.ask("learner_start_task", task_info=3)
        with pytest.raises(Failed, match="policy_id"):
            rig.ask("learner_start_task", task_info={})
        rig.begin()
        with pytest.raises(Failed, match="expected an object"):
            rig.ask("learner_learn_task", data=7)
        with pytest.raises(Failed, match="DataError"):
            rig.learn(-1)
        rig.chunk()
        rig.feed(2)

    @pytest.mark.parametrize("name", ["../out", "/etc/out", "a/b/c", ""])
    def test_files_stay_in_the_folder(self, rig, name):
        with pytest.raises(Failed, match="DataError"):
            rig.begin(policy_id=name)
        with pytest.raises(Failed, match="DataError"):
            rig.begin(state_path=name if name[:1] in ("/", ".") else "../state")
        assert not [t for t in threading.enumerate() if t.name.startswith("policy-pub")]
