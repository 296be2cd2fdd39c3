"""Runs of a coordinator with workers that behave well, and with others."""

import contextlib
import json
import logging
import os
import socket
import threading
import time
from pathlib import Path

import pytest
import requests
import torch
from easydict import EasyDict

from ding.interaction.slave import TaskRefuse
from ding.torch_utils.weights_file import read_weights, write_weights
from ding.utils import durations, read_file
from ding.utils.errors import ConfigError, PortTakenError
from ding.utils.run_log import RunLog
from ding.utils.shared_folder import SharedFolder
from ding.worker import NaiveCommander
from ding.worker.collector.comm import NaiveCollector
from ding.worker.coordinator import Coordinator
from ding.worker.coordinator.chunk_buffer import ChunkBuffer
from ding.worker.coordinator.core import Core
from ding.worker.coordinator.worker_jobs import CollectorJob, LearnerJob
from ding.worker.learner.comm import NaiveLearner
from tests.worker.coordinator.fake_workers import (
    BUFFER,
    FakeCollector,
    FakeLearner,
    Run,
    evaluating,
    eventually,
    fail_task,
    make_config,
)

KEY = "the key of this run"


def left_files():
    return [name for folder in ("data", "policy") for name in os.listdir(folder)]


# ---------------------------------------------------------------------- the usual


def test_naive_workers_do_all_tasks_of_a_naive_commander(monkeypatch):
    # A sample that is written while the run ends is removed only if its collector reports it in
    # time: wait long enough for the answer, however busy the machine is.
    for name in ("LOOP_CLOSE", "COMM_CLOSE", "REQUEST_TIMEOUT", "STEP_TIMEOUT"):
        monkeypatch.setattr(durations, name, 60.0)
    workers = {
        "collector0": NaiveCollector(port=0, prefix="data"),
        "collector1": NaiveCollector(port=0, prefix="data"),
        "learner0": NaiveLearner(port=0),
    }
    for worker in workers.values():
        worker.start()
    tables = {
        kind: {n: [n, w.host, w.port] for n, w in workers.items() if n.startswith(kind)}
        for kind in ("collector", "learner")
    }
    other = {
        "commander": {"type": "naive", "collector_task_space": 2, "learner_task_space": 1},
        "replay_buffer": {"type": "naive", "replay_buffer_size": 100},
    }
    main = {"exp_name": "exp", "policy": {"other": other}}
    system = {"coordinator": {"path_data": "data", "path_policy": "policy", "port": 0, **tables}}
    coordinator = Coordinator(EasyDict(main=main, system=system))
    coordinator.start()
    commander = coordinator.commander
    assert isinstance(commander, NaiveCommander)
    eventually(lambda: commander.collector_task_finish_count >= 4, 60)
    eventually(lambda: commander.learner_task_finish_count >= 2, 60)
    assert not coordinator.system_shutdown_flag
    coordinator.close()
    assert coordinator.system_shutdown_flag
    assert left_files() == []
    for worker in workers.values():
        worker.close()


def test_updates_that_only_the_report_contains_count():
    class LateLearner(FakeLearner):
        def _close(self, task):
            return {**self.ids(), "learner_step": self.step + 1}

    learner = LateLearner(iterations=4)
    with Run({"c": FakeCollector(chunks=4), "l": learner}, commander={"finish": True}) as run:
        assert run.coordinator.wait(20) is not None
        assert run.coordinator.status()["train_iter"] == learner.step + 1


@pytest.mark.parametrize("ours", [True, False])
def test_data_go_from_collector_to_learner(ours):
    collector = FakeCollector(chunks=4, ours=ours)
    learner = FakeLearner(iterations=5, ours=ours)
    with Run({"c": collector, "l": learner}, commander={"finish": True}) as run:
        verdict = run.coordinator.wait(20)
        assert verdict == ("finished", "the learner is done")
        assert run.commander.finished["learner"][0]["learner_step"] >= 5
        assert run.commander.infos[0]["learner_step"] >= 1
        assert learner.info["learner_id"] == "l"
        assert learner.info["state_path"].startswith("exp")
        if ours:
            assert len(set(learner.chunks)) == len(learner.chunks) >= 1
            assert collector.quotas[0] > 0
        else:
            assert {row["task_id"][:9] for batch in learner.batches for row in batch} == {
                "collector"
            }
            assert collector.quotas[0] is None
            assert collector.info["collector_cfg"]["compressor"] == "none"
    assert left_files() == []
    assert not os.path.exists("exp/coordinator.json")
    assert read_file("exp/ckpt/coordinator_state.pth.tar")["is_of_end"]


# The first sample lets batches of 4 begin, 31 more may come before any is drawn, and 16 batches may
# be drawn ahead.
LIMITS = dict(samples_per_insert=2.0, samples_per_insert_tolerance=64.0)


def ratio(run):
    return run.status()["buffers"][BUFFER]["samples_per_insert"]


def slow(learner, seconds):
    learner.on["learn"] = lambda task: learner.released.wait(seconds) or learner.usual(task)
    return learner


@pytest.mark.parametrize("ours", [True, False])
def test_a_learner_waits_for_collectors_that_are_behind(ours):
    collector, learner = FakeCollector(), FakeLearner(iterations=1e9, ours=ours)

    def data(task):
        if collector.sent < 2:
            return [collector.chunk(8)]
        time.sleep(0.02)
        return [{**collector.ids(), "collector_done": False}]

    collector.on["data"] = data
    with Run({"c": collector, "l": learner}, **LIMITS) as run:
        words = "learner waits for collectors (samples per insert)"
        eventually(lambda: words in run.status()["waits"])
        assert learner.step == (2 * 15 + 64) // 4
        assert ratio(run) == {
            "target": 2.0,
            "reached": 4 * learner.step / 16,
            "balance": 2.0 * 15 - 4 * learner.step,
            "tolerance": 64.0,
        }
        step, collector.sent = learner.step, 1  # one chunk more
        eventually(lambda: learner.step == step + 4)


def test_collectors_wait_for_a_learner_that_is_behind():
    collector, learner = endless(ours=False), slow(FakeLearner(iterations=1e9), 0.5)
    with Run({"c": collector, "l": learner}, **LIMITS) as run:
        words = "collector waits for the learner (samples per insert)"
        eventually(lambda: words in run.status()["waits"])
        assert ratio(run)["balance"] <= 64.0
        sent = collector.sent
        eventually(lambda: collector.sent > sent)
        assert ratio(run)["balance"] <= 64.0


def test_the_ratio_can_be_turned_off():
    collector, learner = endless(), slow(FakeLearner(iterations=1e9), 30)
    with Run({"c": collector, "l": learner}, samples_per_insert=None) as run:
        eventually(lambda: collector.sent > 50)
        assert ratio(run) is None


def test_converged_run_reports_so():
    with Run(
        {"c": FakeCollector(), "l": FakeLearner(iterations=1e9)}, commander={"converge_after": 3}
    ) as run:
        status, reason = run.coordinator.wait(20)
        assert status == "converged"
        assert "collector_" in reason
        run.coordinator.close()
    assert left_files() == []


def test_callbacks_may_be_called_before_the_start():
    coordinator = Coordinator(make_config({}))
    coordinator.deal_with_collector_send_data("no", BUFFER, "x", {"data_id": "x"})
    assert coordinator.deal_with_collector_judge_finish("no", {}) is False
    coordinator.deal_with_collector_finish_task("no", {})
    for call in (
        lambda: coordinator.deal_with_learner_get_data("no", BUFFER, 4, 0),
        lambda: coordinator.deal_with_learner_send_info("no", BUFFER, {}),
        lambda: coordinator.deal_with_learner_judge_finish("no", {}),
        lambda: coordinator.deal_with_learner_finish_task("no", {}),
    ):
        with pytest.raises(RuntimeError, match="no learner task 'no'"):
            call()
    coordinator.load_state_dict({})
    space = coordinator.commander.space["collector"]
    coordinator.deal_with_increase_collector()
    assert coordinator.commander.space["collector"] == space + 1
    coordinator.deal_with_decrease_collector()
    assert coordinator.commander.space["collector"] == space
    coordinator.info("a line")
    coordinator.error("a line")
    assert not coordinator.system_shutdown_flag
    coordinator.close()
    coordinator.close()


def test_defaults():
    cfg = Coordinator.default_config()
    assert (cfg.collector_task_timeout, cfg.learner_task_timeout) == (30, 600)
    assert cfg.operator_server == {}


def test_a_task_that_no_worker_takes_goes_back():
    with Run(collector_task_timeout=0.3, learner_task_timeout=0.3) as run:
        eventually(lambda: {t["task_id"][:4] for t in run.commander.failed} == {"coll", "lear"})
        assert "within 0.3 s" in run.commander.failed[0]["message"]
        assert run.status()["tasks"]["timed_out"] >= 2
        assert run.coordinator.verdict is None


# ---------------------------------------------------------------------- workers that fail


def endless(**kwargs):
    return FakeCollector(chunks=float("inf"), **kwargs)


@pytest.mark.slow
def test_silent_worker_is_lost_and_its_task_given_to_another():
    first, second = endless(), endless()
    with Run({"c0": first, "c1": second}) as run:
        eventually(lambda: first.asked.count("data") + second.asked.count("data") > 3)
        worker, other = (first, second) if first.info else (second, first)
        worker.on["data"] = worker.hang
        count = worker.asked.count("data")
        eventually(lambda: worker.asked.count("data") > count)
        worker.fall_silent()
        eventually(lambda: other.info)
        assert "no sign of life" in run.commander.failed[0]["message"]
        # It still listens; the coordinator uses it again as soon as it can work.
        worker.on.clear()
        worker.released.set()
        eventually(lambda: sum(w["state"] == "idle" for w in run.status()["workers"].values()) == 1)


def test_worker_that_dies_in_the_middle_of_a_task():
    first, second = endless(), endless()
    with Run({"c0": first, "c1": second}) as run:
        eventually(lambda: first.info or second.info)
        worker, other = (first, second) if first.info else (second, first)
        worker.die()
        eventually(lambda: other.info)
        assert run.coordinator.verdict is None


BAD_META = [{"data_id": 7}, {"data_id": "../x"}, {"data_id": "x", "sample_num": -1}]


@pytest.mark.parametrize("answer", ["text", None, 7, ["text"], [[]], *BAD_META], ids=repr)
def test_nonsense_from_a_collector_fails_its_task(answer):
    good, bad = endless(), endless()
    bad.on["data"] = lambda task: answer
    with Run({"c0": bad, "c1": good}, commander={"collectors": 2}) as run:
        eventually(lambda: run.commander.failed)
        eventually(lambda: good.asked.count("data") > 3)
        bad.on.clear()
        eventually(lambda: bad.asked.count("data") > 20 and bad.sent > 2)
        assert run.coordinator.verdict is None
        assert run.status()["failures"][0]["worker"] == "c0"


@pytest.mark.parametrize("step", ["get_data", "learn"])
@pytest.mark.parametrize("answer", ["text", {}, {"info": 3, "batch_size": "x"}], ids=repr)
def test_nonsense_from_a_learner_fails_its_task_and_keeps_the_buffer(step, answer):
    learner = FakeLearner(iterations=1e9)
    learner.on[step] = lambda task: answer
    with Run({"c": FakeCollector(chunks=4), "l": learner}, max_task_retry=100) as run:
        eventually(lambda: run.commander.failed)
        learner.on.clear()
        eventually(lambda: learner.step > 3)
        assert run.status()["buffers"][BUFFER]["count"] >= 8
        assert len({info["task_id"] for info in learner.infos}) > 1
        assert len({info["state_path"] for info in learner.infos}) == 1


def test_workers_that_are_lost_together_do_not_end_the_run():
    collectors = {f"c{n}": FakeCollector() for n in range(6)}
    for collector in collectors.values():
        collector.on["data"] = lambda task, one=collector: {**one.ids(), "cur_step": 0}
    with Run(collectors, commander={"collectors": 6}) as run:
        eventually(lambda: run.status()["tasks"]["running"] == 6)
        ends = [threading.Thread(target=collector.die) for collector in collectors.values()]
        for end in ends:
            end.start()
        eventually(lambda: run.status()["tasks"]["failed"] == 6)
        for end in ends:
            end.join()
        assert run.coordinator.verdict is None


def test_worker_that_refuses_tasks():
    class Refusing(FakeCollector):
        def _before_task(self, task):
            if task["name"] != "resource":
                raise TaskRefuse

    bad, good = Refusing(), endless()
    with Run({"c0": bad, "c1": good}, commander={"collectors": 2}) as run:
        eventually(lambda: any("refuses" in task["message"] for task in run.commander.failed))
        eventually(lambda: good.asked.count("data") > 3)


@pytest.mark.slow
def test_endless_step_loses_the_worker(monkeypatch):
    monkeypatch.setattr(durations, "STEP_TIMEOUT", 1.0)
    bad, good = endless(), endless()
    bad.on["data"] = bad.hang
    with Run({"c0": bad, "c1": good}, commander={"collectors": 2}) as run:
        eventually(lambda: any("no answer" in task["message"] for task in run.commander.failed))
        eventually(lambda: good.asked.count("data") > 3)
        # It is connected again, but still works on its previous task: it gets no task.
        eventually(lambda: run.status()["workers"]["c0"]["state"] == "connecting")
        bad.on.clear()
        bad.released.set()
        eventually(lambda: bad.sent > 2)


def test_failure_that_every_worker_has_ends_the_run_with_its_cause():
    workers = {f"c{i}": FakeCollector() for i in range(2)}
    for worker in workers.values():
        worker.on["data"] = fail_task("EnvError: env 3:\n\x1b[31m no such level")
    with Run(workers) as run:
        status, reason = run.coordinator.wait(20)
        assert status == "failed"
        assert reason.endswith("EnvError: env 3: [31m no such level")
        assert len(run.commander.failed) == 4
    assert os.path.exists("exp/ckpt/coordinator_state.pth.tar")


def test_answers_for_a_task_of_before_are_ignored(caplog):
    collector = endless()
    step = collector.usual
    old = {"task_id": "collector_0", "collector_done": True}
    collector.on["data"] = lambda task: old if collector.asked.count("data") == 2 else step(task)
    with Run({"c": collector, "l": FakeLearner(iterations=1e9)}) as run:
        eventually(lambda: collector.sent > 3)
        assert run.commander.finished["collector"] == []
        assert run.commander.failed == []
    assert sum("collector_0" in record.message for record in caplog.records) == 1


def test_commander_that_raises_ends_the_run():
    run = Run()
    run.commander.get_collector_task = lambda: 1 / 0
    with run:
        status, reason = run.coordinator.wait(20)
        assert status == "failed"
        assert "ZeroDivisionError" in reason


def test_chunk_that_the_learner_cannot_read_is_dropped():
    learner = FakeLearner(iterations=1e9)
    step = learner.usual

    def learn(task):
        answer = step(task)
        if learner.chunks and len(learner.batches) < 3:
            answer["info"]["bad_chunks"] = [[learner.chunks[0], "truncated"]]
        return answer

    learner.on["learn"] = learn
    with Run({"c": FakeCollector(chunks=4), "l": learner}) as run:
        eventually(lambda: learner.step > 20)
        bad = learner.chunks[0]
        assert bad not in os.listdir("data")
        assert run.coordinator.verdict is None


@pytest.mark.parametrize("wanted", [True, False])
def test_priorities_count_if_the_policy_wants_them(wanted, monkeypatch):
    updates = []
    monkeypatch.setattr(ChunkBuffer, "update", lambda self, info: updates.append(info))
    learner = FakeLearner(iterations=1e9)
    step = learner.usual

    def learn(task):
        answer = step(task)
        answer["info"]["priority_info"] = {"priority": [2.0]}
        return answer

    learner.on["learn"] = learn
    commander = {"policy": {"priority": wanted}}
    with Run({"c": FakeCollector(chunks=4), "l": learner}, commander=commander) as run:
        eventually(lambda: run.coordinator.status()["train_iter"] > 3)
    assert bool(updates) is wanted


# ---------------------------------------------------------------------- joining


def test_workers_join_and_leave():
    with Run(run_key=KEY, commander={"collectors": 0}) as run:
        run.add("c0", endless(key=KEY), KEY)
        run.add("c1", endless(key=KEY), KEY)
        run.add("l0", FakeLearner(iterations=1e9, key=KEY), KEY)
        eventually(lambda: run.commander.space["collector"] == 2)
        eventually(lambda: run.workers["l0"].step > 3)
        assert run.status()["workers"]["c1"]["pid"] == os.getpid()
        run.workers["c1"].close()
        eventually(lambda: run.commander.space["collector"] == 1)
        assert "c1" not in run.status()["workers"]


def test_worker_that_was_started_again_takes_its_place():
    with Run(run_key=KEY) as run:
        old = endless(key=KEY)
        run.add("c0", old, KEY)
        eventually(lambda: old.sent > 2)
        old.die()
        new = endless(key=KEY)
        run.add("c0", new, KEY)
        eventually(lambda: new.sent > 2, 8)
        old.close()


def test_silent_worker_that_comes_back_joins_again():
    with Run(run_key=KEY) as run:
        worker = endless(key=KEY)
        run.add("c0", worker, KEY)
        eventually(lambda: worker.sent > 2)
        worker.fall_silent()
        eventually(lambda: run.commander.failed)
        eventually(lambda: "c0" not in run.status()["workers"])
        worker.joiner.lost()
        count = worker.asked.count("start")
        eventually(lambda: worker.asked.count("start") > count)


@pytest.mark.slow
def test_worker_that_hangs_is_asked_to_end(monkeypatch):
    monkeypatch.setattr(durations, "WORKER_END", 1.0)
    monkeypatch.setattr(durations, "STEP_TIMEOUT", 1.0)
    with Run(run_key=KEY) as run:
        worker = endless(key=KEY)
        worker.on["data"] = worker.hang
        causes = run.add("c0", worker, KEY)
        eventually(lambda: causes)
        assert "still works on a task of before" in causes[0]
        # After a restart, it is another worker.
        fresh = endless(key=KEY)
        run.add("c0", fresh, KEY)
        eventually(lambda: fresh.sent > 1)
        worker.close()


def test_name_of_a_worker_that_lives_is_not_given_away():
    with Run(run_key=KEY) as run:
        first = endless(key=KEY)
        run.add("c0", first, KEY)
        eventually(lambda: first.sent > 1)
        second = endless(key=KEY)
        second.start()
        causes = second.join_at(run.coordinator, "c0", KEY)
        eventually(lambda: causes)
        assert "choose another name" in causes[0]
        second.close()


@pytest.mark.slow
def test_worker_that_does_not_prove_to_have_the_key_gets_no_task(caplog):
    stranger = FakeCollector()
    with Run({"c0": stranger}, run_key=KEY) as run:
        eventually(lambda: "c0: " in caplog.text)
        assert run.status()["workers"]["c0"]["state"] == "connecting"
    assert stranger.asked == []


def test_server_that_cannot_go_on_ends_the_run_with_its_cause(monkeypatch):
    monkeypatch.setattr(durations, "SHORTAGE_LIMIT", 0.2)
    start = threading.Thread.start

    def refuse(thread):
        if thread.name == "http-client":
            raise RuntimeError("can't start new thread")
        start(thread)

    with Run() as run:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        address = run.coordinator.address

        def knock():
            with contextlib.suppress(OSError):
                socket.create_connection(address, timeout=1).close()
            return run.coordinator.verdict

        eventually(knock)
        monkeypatch.undo()
        status, reason = run.coordinator.verdict
        assert status == "failed"
        assert "can't start new thread" in reason


def test_no_worker_joins_a_coordinator_without_a_key():
    with Run() as run:
        causes = run.add("c0", FakeCollector(), None)
        eventually(lambda: causes)
        assert "run key" in causes[0]


# ---------------------------------------------------------------------- state, status, end


def test_another_coordinator_goes_on():
    collector, learner = FakeCollector(chunks=6), FakeLearner(iterations=1e9)
    run = Run({"c": collector, "l": learner}, commander={"converge_after": 1})
    with run:
        run.coordinator.wait(20)
        state = run.coordinator.state_dict()
        held = run.status()["buffers"][BUFFER]
        assert held["count"] == 48
        other = Coordinator(make_config({}))
        other.load_state_dict(state)
        assert other.status()["buffers"][BUFFER]["count"] == 48
        assert other.status()["envstep"] == run.status()["envstep"]
        assert other.commander.issued == run.commander.issued
        assert other.status()["tasks"]["done"] == state["tasks"]["totals"]["done"] >= 1


def test_status_is_open_to_everybody():
    with Run({"c": endless(), "l": FakeLearner(iterations=1e9)}, run_key=None) as run:
        eventually(lambda: run.status()["train_iter"] > 3)
        with open("exp/coordinator.json") as file:
            address = json.load(file)
        url = f"http://{address['host']}:{address['port']}/status"
        body = requests.get(url, timeout=5).json()
        assert body["success"]
        data = body["data"]
        assert data["state"] == "running"
        assert data["workers"]["c"]["state"] == "running"
        assert data["workers"]["l"]["iters_per_s"] == 100.0
        assert data["data_rate"]["samples_per_s"] > 0
        assert data["policy"]["policy_fake"]["lag_iters"] >= 0
        assert data["waits"]


def test_stop_is_one_end_for_all_reasons():
    threads = threading.active_count()
    run = Run({"c": endless(), "l": FakeLearner(iterations=1e9)})
    with run:
        eventually(lambda: run.status()["train_iter"] > 3)
        run.coordinator.stop("Ctrl-C")
        assert run.coordinator.wait(1) == ("interrupted", "Ctrl-C")
        run.coordinator.close()
        assert left_files() == []
    eventually(lambda: threading.active_count() <= threads)
    assert os.path.exists("exp/ckpt/coordinator_state.pth.tar")


@pytest.mark.slow
def test_end_does_not_wait_for_a_worker_that_hangs():
    learner = FakeLearner(iterations=1e9)
    learner.on["learn"] = learner.hang
    with Run({"c": endless(), "l": learner}) as run:
        eventually(lambda: "learn" in learner.asked)
        run.coordinator.stop("SIGTERM")
        run.coordinator.close()
    assert left_files() == []


def test_best_evaluation_becomes_a_checkpoint():
    reports = [
        {"reward_mean": reward, "episode_info": [[0, reward, 5], ["x", None, 1], 3]}
        for reward in (3.0, 9.0, 5.0)
    ]
    collector = evaluating(reports, then={"reward_mean": 0.0})
    workers = {"c": collector, "l": FakeLearner(iterations=1e9)}
    with (
        RunLog("exp", quiet=True) as log,
        Run(workers, run_log=log, commander={"eval": True}) as run,
    ):
        eventually(lambda: len(run.commander.finished["collector"]) >= 4)
        best = read_file("exp/ckpt/ckpt_best.pth.tar")
        assert best["model"]["w"].tolist() == [9.0, 9.0]
        assert (best["last_iter"], best["last_step"], best["eval_result"]) == (7, 70, 9.0)
        assert run.status()["best_return"] == 9.0
        log.flush()
        with open("exp/episodes.csv") as file:
            rows = file.read().splitlines()[1:]
        assert [row.split(",")[1:5] for row in rows][:2] == [
            ["c_eval", "0", "3.0", "5"],
            ["c_eval", "0", "9.0", "5"],
        ]
    assert left_files() == []


def test_the_best_evaluation_is_one_against_the_hardest_opponent():
    player = {**PLAYER, "one_phase_step": 10**9, "eval_opponent_difficulty": ["random", "rule"]}
    league = {"path_policy": "policy", "naive_sp_player": player}
    own = {"type": "one_vs_one", "league": league, "eval_interval": 0.0}
    collector = evaluating([{"reward_mean": 9.0}], then={"reward_mean": 2.0})
    run = Run({"c": collector, "l": publishing()}, commander=own)
    run.commander._stop_value = 5.0
    with run:
        eventually(lambda: run.status()["best_return"] == 2.0)
        eventually(lambda: read_file("exp/ckpt/ckpt_best.pth.tar")["eval_result"] == 2.0)
        assert run.commander.league.active_players[0].eval_difficulty == 1


def test_machine_use_of_workers_is_shown_and_logged(monkeypatch):
    monkeypatch.setattr(durations, "USAGE_SPAN", 0.05)
    workers = {"c": FakeCollector(), "l": slow(FakeLearner(iterations=1e9), 0.01)}
    with RunLog("exp", quiet=True) as log, Run(workers, run_log=log) as run:

        def shown():
            workers = run.status()["workers"].values()
            return [worker["usage"] for worker in workers if worker["kind"] == "learner"]

        eventually(lambda: shown() == [{"cpu_percent": 50.0}])

        def logged(figure):
            log.flush()
            rows = Path("exp/metrics.jsonl")
            lines = rows.read_text().splitlines() if rows.exists() else []
            tags = set().union(*map(json.loads, lines))
            return sum(tag.startswith(f"usage_iter/{figure}/") for tag in tags)

        eventually(lambda: logged("cpu_percent") == 2)  # the coordinator's, too
        assert logged("memory_mb") == 1


def test_failing_evaluations_end_the_run_though_collecting_goes_on():
    collectors = {f"c{i}": endless() for i in range(2)}
    for collector in collectors.values():
        collector.on["data"] = fail_task("EnvError: no evaluation here")
    with Run(collectors, commander={"eval": True}) as run:
        status, reason = run.coordinator.wait(20)
        assert status == "failed"
        assert "evaluation" in reason


def test_the_state_at_the_end_has_what_workers_report_last():
    learner = FakeLearner(iterations=1e9)

    def close(task):
        return {**learner.ids(), "learner_step": learner.step + 100}

    learner.on["close"] = close
    with Run({"c": endless(), "l": learner}) as run:
        eventually(lambda: run.status()["train_iter"] > 3)
        run.coordinator.stop("Ctrl-C")
        run.coordinator.close()
        train_iter = run.status()["train_iter"]
        assert train_iter > 100
    saved = read_file("exp/ckpt/coordinator_state.pth.tar")["state"]
    assert saved["facts"]["train_iter"] == train_iter


def test_the_state_at_the_end_has_the_tasks_that_the_end_has_closed():
    learner = FakeLearner(iterations=1e9)
    with Run({"c": endless(), "l": learner}, commander={"type": "solo"}) as run:
        eventually(lambda: run.status()["train_iter"] > 3)
        run.coordinator.stop("Ctrl-C")
        eventually(lambda: not run.coordinator.table.live())  # the program may close it much later
    saved = read_file("exp/ckpt/coordinator_state.pth.tar")["state"]
    [trainee] = saved["commander"]["trainees"]
    assert trainee["policy_id"] == learner.info["policy_id"]
    assert trainee["learner_step"] > 3


PLAYER = dict(one_phase_step=1, branch_probs=dict(pfsp=1.0), strong_win_rate=0.7)


@pytest.mark.parametrize("learner_num", [None, 1, 2])
def test_each_player_of_a_league_needs_a_learner(learner_num):
    league = {"active_players": {"naive_sp_player": 2}, "naive_sp_player": PLAYER}
    config = make_config({}, {"type": "one_vs_one", "learner_task_space": 2, "league": league})
    if learner_num is not None:
        config.main.policy.learn = {"learner": {"learner_num": learner_num}}
    if learner_num == 2:
        Coordinator(config).close()
        return
    words = "policy.learn.learner.learner_num is 1, but the commander trains 2 policies"
    with pytest.raises(ConfigError, match=words):
        Coordinator(config)


LEAGUE = {
    "path_policy": "policy",
    "naive_sp_player": PLAYER,
    "payoff": {"type": "battle", "decay": 0.5, "min_win_rate_games": 1},
}


def publishing():
    """A learner that has published weights when it begins."""
    weights, learner = SharedFolder("policy"), FakeLearner(iterations=1e9)

    def start(task):
        state = {"model": {"w": torch.full((2,), 7.0)}}
        write_weights(weights, learner.info["policy_id"], state, {"policy_iter": 1})
        return {"message": "started"}

    learner.on["start"] = start
    return learner


def playing(*results):
    """A collector that plays against an old player until it is asked to end, and then reports these
    games; its tasks of before there is one are short."""
    collector = FakeCollector()

    def start(task):
        collector.chunks = float("inf") if meets_an_old_player(collector) else 1
        return collector.usual(task)

    def close(task):
        games = list(results) if meets_an_old_player(collector) else []
        return {**collector.usual(task), "game_result": games}

    collector.on.update(start=start, close=close)
    return collector


def meets_an_old_player(collector):
    return len(set(collector.info.get("collector_cfg", {}).get("policy_update_path", []))) == 2


def best_win_rate(run):
    """That against the old players; 0.5 against those that were never met."""
    [player] = run.commander.league.active_players
    return run.commander.league.payoff[player, run.commander.league.historical_players].max()


def test_a_resumed_league_has_the_games_that_were_reported_and_no_others():
    own = {"type": "one_vs_one", "league": LEAGUE, "collector_task_space": 1}
    collectors = [playing("wins", "losses", "wins") for _ in range(2)]
    workers = dict(zip(("c0", "c1"), collectors), l=publishing())
    with Run(workers, commander=own) as run:
        eventually(lambda: any(map(meets_an_old_player, collectors)))
        killed, other = sorted(collectors, key=meets_an_old_player, reverse=True)
        killed.die()
        eventually(lambda: meets_an_old_player(other))
        late = {"real_episode_count": 4, "game_result": ["losses"] * 4}
        run.coordinator.deal_with_collector_finish_task(killed.info["task_id"], late)
        run.coordinator.close()
        envstep = run.status()["envstep"]
    with Run(commander=own, resume=True) as resumed:
        # Each game counts half as much as the next: (1/4 + 1) / (1/4 + 1/2 + 1).
        assert best_win_rate(resumed) == pytest.approx(5 / 7)
        [trainee] = resumed.commander.state_dict()["trainees"]
        assert trainee["envstep"] == resumed.status()["envstep"] == envstep


def test_a_resumed_league_has_the_weights_of_its_old_players():
    own = {"type": "one_vs_one", "league": {"path_policy": "policy", "naive_sp_player": PLAYER}}
    weights, learner = SharedFolder("policy"), publishing()

    def old_players(run):
        return [
            os.path.basename(old.checkpoint_path) for old in run.commander.league.historical_players
        ]

    with Run({"c": endless(), "l": learner}, commander=own) as run:
        eventually(lambda: old_players(run))
        run.coordinator.stop("Ctrl-C")
        eventually(lambda: not run.coordinator.table.live())
    assert left_files() == []
    with Run(commander=own, resume=True) as resumed:
        names = old_players(resumed)
        assert names
        for name in names:
            state, facts = read_weights(weights, name)
            assert (state["model"]["w"].tolist(), facts["policy_iter"]) == ([7.0, 7.0], 1)
        resumed.coordinator.stop("enough", "finished")
    assert left_files() == []


@pytest.mark.parametrize(("resume", "goes_on"), [(None, True), (True, True), (False, False)])
def test_state_is_gone_on_from_if_wanted(resume, goes_on):
    with Run({"c": FakeCollector(chunks=1)}) as run:
        eventually(lambda: len(run.commander.finished["collector"]) >= 1)
        run.coordinator.stop("Ctrl-C")
    with Run(resume=resume) as other:
        assert (other.status()["envstep"] > 0) is goes_on


def test_limit_that_can_never_do_ends_the_run_at_once():
    with Run({"c": endless(), "l": FakeLearner(iterations=1e9)}, path_data_limit=1) as run:
        status, reason = run.coordinator.wait(20)
        assert status == "failed"
        assert reason.startswith(BUFFER)
        assert "path_data_limit=1 " in reason


def test_worker_that_joins_twice_at_once_works_once():
    with Run(run_key=KEY) as run:
        worker = endless(key=KEY)
        worker.start()
        causes = [worker.join_at(run.coordinator, "c0", KEY)]
        first = worker.joiner
        causes.append(worker.join_at(run.coordinator, "c0", KEY))
        run.workers["c0"] = worker
        eventually(lambda: worker.sent > 5)
        try:
            # It is absent between its two sessions.
            eventually(lambda: run.status()["workers"].get("c0", {}).get("state") == "running")
            assert causes == [[], []]
        finally:
            first.close()


# ---------------------------------------------------------------------- deaths of its threads


@pytest.mark.parametrize("error", [MemoryError(), SystemExit(3), KeyboardInterrupt(), OSError("x")])
def test_whatever_ends_the_loop_ends_the_run(error, monkeypatch):
    with Run({"c": endless(), "l": FakeLearner(iterations=1e9)}) as run:
        eventually(lambda: run.status()["envstep"] > 0)
        monkeypatch.setattr(Core, "schedule", raiser(error))
        verdict = run.coordinator.wait(20)
        assert verdict.status == "failed"
        assert verdict.reason.startswith(f"the coordinator failed: {type(error).__name__}")


@pytest.mark.parametrize("error", [MemoryError(), SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("job", [CollectorJob, LearnerJob])
def test_whatever_ends_a_session_ends_the_run(job, error, monkeypatch):
    with Run({"c": endless(), "l": FakeLearner(iterations=1e9)}) as run:
        eventually(lambda: run.status()["envstep"] > 0)
        monkeypatch.setattr(job, "work", raiser(error))
        verdict = run.coordinator.wait(20)
        assert verdict.status == "failed"
        name = {"collector": "c", "learner": "l"}[job.kind]
        words = f"the session of {name} failed: {type(error).__name__}"
        assert verdict.reason.startswith(words)


@pytest.mark.slow
def test_a_log_handler_that_raises_changes_nothing():
    class Broken(logging.Handler):
        def emit(self, record):
            raise OSError(24, "no descriptors")

    handler = Broken()
    logging.getLogger().addHandler(handler)
    try:
        collector = FakeCollector()
        collector.on["start"] = fail_task("no luck")
        with Run({"c": collector, "l": FakeLearner()}) as run:
            verdict = run.coordinator.wait(20)
            assert verdict == ("failed", verdict.reason)
            assert verdict.reason.startswith("collector tasks failed 4 times in a row")
    finally:
        logging.getLogger().removeHandler(handler)


def test_a_coordinator_that_cannot_start_says_why_in_the_record():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = make_config({}, port=taken.getsockname()[1])
        with RunLog("exp", name="coordinator") as log:
            coordinator = Coordinator(config, run_log=log)
            with pytest.raises(PortTakenError):
                coordinator.start()
            coordinator.close()
    with open("exp/run.json") as file:
        record = json.load(file)
    assert record["status"] == "failed"
    assert record["reason"].startswith("the coordinator could not start: cannot listen on 127")


@pytest.mark.slow
def test_the_root_of_a_failure_is_reported_first():
    learner = FakeLearner(iterations=1e9)
    trouble = "weights cannot be published: disk full"

    def learn(task):
        answer = learner.usual(task)
        return {**answer, "info": {**answer["info"], "trouble": trouble}}

    learner.on["learn"] = learn
    collector = FakeCollector()
    collector.on["data"] = fail_task("no policy to begin with")
    with Run({"c": collector, "l": learner}) as run:
        eventually(lambda: run.status()["workers"]["l"]["state"] == "running")
        (task_id,) = run.commander.open["learner"]
        for _ in range(50):
            run.coordinator.deal_with_learner_send_info(task_id, BUFFER, {"trouble": trouble})
        status, reason = run.coordinator.wait(20)
        assert status == "failed"
        assert reason.startswith("l: weights cannot be published: disk full; collector tasks")
        assert run.status()["troubles"] == {"l": trouble}


def raiser(error):
    def fail(*args, **kwargs):
        raise error

    return fail


def test_the_lag_is_that_of_the_player_whose_iteration_is_reported():
    with Run() as run:
        cfg = {"policy_update_path": ["a", "b"]}
        task = {"task_id": "t", "buffer_id": "buffer", "collector_cfg": cfg}
        run.coordinator.table.add("collector", task)
        run.coordinator.open_buffer("buffer", {"type": "naive"})
        for policy_id, step in (("a", 100), ("b", 50)):
            run.coordinator.facts.trained(policy_id, {"learner_step": step})
        meta = {"sample_num": 8, "size": 1, "policy_iter": 90}
        run.coordinator.deal_with_collector_send_data("t", "buffer", "c0", meta)
        lags = run.coordinator.status()["policy"]
        assert (lags["a"]["lag_iters"], lags["b"]["lag_iters"]) == (10, None)


def test_chunks_that_left_after_the_state_was_saved_are_no_alarm(caplog):
    with Run() as run:
        cfg = {"type": "naive"}
        run.coordinator.open_buffer("buffer", cfg).push({"data_id": "c0", "size": 9}, 0)
        state = run.coordinator.state_dict()
    with Run() as other, caplog.at_level(logging.WARNING):
        other.coordinator.load_state_dict(state)
        assert other.status()["buffers"]["buffer"]["count"] == 0
    assert "1 chunks of the saved state were used up since, or their files are lost" in caplog.text
