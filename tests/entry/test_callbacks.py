"""Which events the callbacks of a run receive, and how they can change the run."""

import os
import threading

import pytest

from ding.entry import (
    collect_demo_data,
    serial_pipeline,
    serial_pipeline_bc,
    serial_pipeline_offline,
    serial_pipeline_onpolicy,
)
from ding.entry.run.state import state_path
from ding.utils.callbacks import RunCallback
from ding.utils.errors import CallbackError, ConfigError
from tests.entry.runs import episodes, run_json, walk_config, walk_envs


class Diary(RunCallback):
    """Records every event; ``do`` is called with the event of the method ``where``."""

    def __init__(self, where="", do=None):
        self.events = []
        self._where, self._do = where, do

    def received(self, name):
        return [event for called, event in self.events if called == name]

    def _keep(self, name, event):
        self.events.append((name, event))
        return self._do(event) if name == self._where else None

    def on_start(self, event):
        return self._keep("on_start", event)

    def on_collect(self, event):
        return self._keep("on_collect", event)

    def on_episode(self, event):
        return self._keep("on_episode", event)

    def on_evaluation(self, event):
        return self._keep("on_evaluation", event)

    def on_checkpoint(self, event):
        return self._keep("on_checkpoint", event)

    def on_end(self, event):
        self.record = run_json(event.exp_name)
        return self._keep("on_end", event)


class Named(Diary):
    """Named by a config; instances are kept in ``made`` for the tests."""

    made = []

    def __init__(self):
        super().__init__()
        self.made.append(self)


def fail(event):
    raise ZeroDivisionError("raised by a callback")


def test_a_run_reports_its_events():
    diary = Diary()
    serial_pipeline(walk_config(), 0, walk_envs(), max_train_iter=40, callbacks=[diary])
    last = run_json()["train_iter"]
    names = [name for name, _ in diary.events]
    assert names[0] == "on_start"
    assert names[-1] == "on_end"
    (start,) = diary.received("on_start")
    assert (start.exp_name, start.env_step, start.train_iter) == ("run", 0, 0)
    assert start.config.policy.learn.batch_size == 8

    collected = diary.received("on_collect")
    assert sum(event.sample_count for event in collected) == 8 * len(collected)
    assert [event.env_step for event in collected] == sorted(e.env_step for e in collected)

    rows = [(row["source"], float(row["return"]), int(row["envstep"])) for row in episodes()]
    ends = diary.received("on_episode")
    assert [(e.source, e.episode_return, e.env_step) for e in ends] == rows
    assert {event.source for event in ends} == {"collector", "evaluator"}
    assert all(event.length == 10 for event in ends)

    judged = diary.received("on_evaluation")
    assert [event.train_iter for event in judged] == [0, 30, last]
    assert judged[0].is_best
    assert all(len(e.returns) == 2 and e.result == sum(e.returns) / 2 for e in judged)
    best = [event.result for event in judged if event.is_best]
    assert best == sorted(set(best))

    saved = [os.path.basename(event.path) for event in diary.received("on_checkpoint")]
    assert saved.count("ckpt_best.pth.tar") == len(best)
    assert {"iteration_0.pth.tar", "iteration_20.pth.tar", f"iteration_{last}.pth.tar"} <= set(
        saved
    )
    assert all(os.path.exists(event.path) for event in diary.received("on_checkpoint"))

    (end,) = diary.received("on_end")
    assert (end.status, end.reason) == ("finished", "reached max_train_iter 40")
    assert (end.train_iter, end.best_return) == (last, max(best))
    assert diary.record["status"] == "finished"  # the folder was complete by then


@pytest.mark.parametrize("where", ["on_start", "on_collect", "on_episode", "on_evaluation"])
def test_true_ends_the_run_in_good_order(where):
    diary = Diary(where, lambda event: True)
    serial_pipeline(walk_config(), 0, walk_envs(), max_train_iter=500, callbacks=[diary])
    record = run_json()
    assert (record["status"], record["reason"]) == (
        "finished",
        f"Diary.{where} asked for the end",
    )
    assert record["train_iter"] < 30
    assert os.path.exists(state_path("run"))
    assert diary.received("on_end")[0].reason == record["reason"]


@pytest.mark.parametrize(
    "where", ["on_start", "on_collect", "on_episode", "on_evaluation", "on_checkpoint"]
)
def test_an_error_ends_the_run_with_its_cause_and_saves_the_state(where):
    diary = Diary(where, fail)
    words = f"Diary.{where}: ZeroDivisionError: raised by a callback"
    with pytest.raises(CallbackError, match=words) as caught:
        serial_pipeline(walk_config(), 0, walk_envs(), max_train_iter=500, callbacks=[diary])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert run_json()["status"] == "failed"
    assert words in run_json()["reason"]
    assert os.path.exists(state_path("run"))
    (end,) = diary.received("on_end")
    assert end.status == "failed"
    assert words in end.reason


def test_an_error_at_the_last_checkpoint_counts_as_well():
    diary = Diary("on_checkpoint", lambda event: fail(event) if event.train_iter >= 50 else None)
    with pytest.raises(CallbackError, match="on_checkpoint"):
        serial_pipeline(walk_config(), 0, walk_envs(), max_train_iter=50, callbacks=[diary])
    assert run_json()["status"] == "failed"


def test_an_error_in_on_end_is_reported_and_changes_nothing_else():
    diary = Diary("on_end", fail)
    serial_pipeline(walk_config(), 0, walk_envs(), max_train_iter=10, callbacks=[diary])
    assert run_json()["status"] == "finished"
    assert run_json()["reason"] == (
        "reached max_train_iter 10; Diary.on_end: ZeroDivisionError: raised by a callback"
    )


def test_other_ends_are_reported_too():
    diary = Diary()
    config = walk_config(policy="faulty_dqn")
    config[0].policy.other.fault = "nan_loss"
    with pytest.raises(Exception, match="NaN"):
        serial_pipeline(config, 0, walk_envs(), max_train_iter=500, callbacks=[diary])
    (end,) = diary.received("on_end")
    assert end.status == "failed"
    assert "NaN" in end.reason
    assert run_json()["reason"] == end.reason


def test_configs_name_them():
    config = walk_config(callbacks=[f"{__name__}:Named"])
    Named.made.clear()
    serial_pipeline(config, 0, walk_envs(), max_train_iter=10)
    (diary,) = Named.made
    assert diary.received("on_end")


def test_configs_hold_classes_which_saved_configs_name():
    Named.made.clear()
    config = walk_config(callbacks=[Named])
    serial_pipeline(config, 0, walk_envs(), max_train_iter=10)
    serial_pipeline("run/formatted_total_config.py", 0, walk_envs(), max_train_iter=10)
    assert len(Named.made) == 2


def test_configs_hold_callbacks_which_are_called_themselves():
    diary = Diary()
    diary.lock = threading.Lock()  # of which there is no copy
    main, create = walk_config()
    main.callbacks = [diary]
    serial_pipeline((main, create), 0, walk_envs(), max_env_step=8)
    assert [name for name, _ in diary.events][-1] == "on_end"


def test_what_is_wrong_with_them_is_said_before_there_is_a_folder():
    with pytest.raises(ConfigError, match="callbacks: 'Named' names no class"):
        serial_pipeline(walk_config(callbacks=["Named"]), 0, walk_envs(), max_train_iter=10)
    assert not os.path.exists("run")


def test_a_resumed_run_begins_where_it_was():
    serial_pipeline(walk_config(), 0, walk_envs(), max_train_iter=20)
    before = run_json()
    config = walk_config()
    config[0].policy.learn.resume_training = True
    diary = Diary()
    serial_pipeline(config, 0, walk_envs(), max_train_iter=30, callbacks=[diary])
    (start,) = diary.received("on_start")
    assert (start.train_iter, start.env_step) == (before["train_iter"], before["envstep"])


def test_on_policy_runs():
    diary = Diary()
    config = walk_config(policy="ppo")
    serial_pipeline_onpolicy(config, 0, walk_envs(), max_train_iter=8, callbacks=[diary])
    assert diary.received("on_collect")[0].sample_count == 64
    assert diary.received("on_end")


def test_runs_on_a_data_set():
    collect_demo_data(walk_config("expert"), 0, 64, "data.pkl", walk_envs(), state_dict=_weights())
    for number, pipeline in enumerate((serial_pipeline_offline, serial_pipeline_bc)):
        policy = "dqn" if pipeline is serial_pipeline_offline else "bc"
        config = walk_config(f"run{number}", policy=policy)
        config[0].policy.collect = dict(data_path="data.pkl")
        config[0].policy.learn.train_epoch = 1
        diary = Diary()
        pipeline(config, 0, env_setting=walk_envs(), callbacks=[diary])
        assert not diary.received("on_collect")
        assert diary.received("on_evaluation")
        assert diary.received("on_end")[0].env_step == 0


def _weights():
    policy = serial_pipeline(walk_config("expert"), 0, walk_envs(), max_train_iter=1)
    return policy.collect_mode.state_dict()
