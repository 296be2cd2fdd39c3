"""Workers that are deleted without a `close` end quietly, and no caller waits for that."""

import gc
import multiprocessing
import subprocess
import sys
import threading
import time
import weakref

import pytest
from easydict import EasyDict

from ding import worker
from ding.envs import SyncSubprocessEnvManager
from ding.utils import durations
from ding.worker import (
    AdvancedReplayBuffer,
    FlaskFileSystemLearner,
    InteractionSerialEvaluator,
    NaiveReplayBuffer,
    SampleSerialCollector,
)
from tests.fakes import LineEnv, StepPolicy, Writer, line_manager

CLASSES = [
    *("SampleSerialCollector", "EpisodeSerialCollector", "BattleSampleSerialCollector"),
    *("BattleEpisodeSerialCollector", "InteractionSerialEvaluator", "MetricSerialEvaluator"),
    *("BattleInteractionSerialEvaluator", "NaiveReplayBuffer", "SequenceReplayBuffer"),
    *("EpisodeReplayBuffer", "AdvancedReplayBuffer", "FlaskFileSystemLearner"),
    *("FlaskFileSystemCollector", "Coordinator"),
]


def make(cls, env):
    policy = StepPolicy(discount_factor=0.9)
    mode = policy.collect_mode if cls is SampleSerialCollector else policy.eval_mode
    cfg = cls.default_config()
    cfg.update(eval_freq=1, n_episode=2, stop_value=1e9)
    return cls(cfg, env, mode, tb_logger=Writer(), exp_name="exp")


@pytest.mark.parametrize("name", CLASSES)
def test_half_built(name):
    cls = getattr(worker, name)
    cls.__new__(cls).__del__()

    class Mine(cls):
        def __init__(self):
            raise RuntimeError("before anything is there")

    with pytest.raises(RuntimeError, match="before anything"):
        Mine()


@pytest.mark.parametrize("cls", [SampleSerialCollector, InteractionSerialEvaluator])
class TestEnvironments:
    @pytest.mark.slow
    def test_are_closed_with_their_only_user(self, cls):
        env = line_manager()
        one = make(cls, env)
        del one
        gc.collect()
        assert env.closed

    @pytest.mark.slow
    def test_are_left_to_who_took_them_over(self, cls):
        env = line_manager()
        one = make(cls, env)
        one = make(cls, env)  # as when a notebook's cell is run again
        gc.collect()
        assert not env.closed
        one.close()
        assert env.closed

    @pytest.mark.slow
    def test_nothing_is_kept_alive(self, cls):
        env = line_manager()
        seen = weakref.ref(env)
        make(cls, env)
        del env
        gc.collect()
        assert seen() is None

    def test_explicit_deletion_closes_once(self, cls):
        env = line_manager()
        one = make(cls, env)
        one.__del__()
        assert env.closed
        env.launch()
        one.__del__()
        one.close()
        assert not env.closed
        env.close()


class NeverClosed(LineEnv):
    """Does not come back from being closed."""

    def close(self):
        threading.Event().wait(600)


def test_processes_that_hang_are_not_waited_for(monkeypatch):
    monkeypatch.setattr(durations, "ENV_CLOSE_PATIENCE", 30.0)  # what `close` gives them
    env = SyncSubprocessEnvManager([lambda: NeverClosed({})] * 2, EasyDict())
    collector = make(SampleSerialCollector, env)
    processes = multiprocessing.active_children()
    start = time.monotonic()
    collector.__del__()
    assert env.closed
    assert time.monotonic() - start < 15
    assert processes
    assert not any(process.is_alive() for process in processes)


class TestBuffers:
    @pytest.mark.slow
    @pytest.mark.parametrize("cls", [NaiveReplayBuffer, AdvancedReplayBuffer])
    def test_the_removing_thread_is_not_waited_for(self, cls, monkeypatch, tmp_path):
        gate, removed = threading.Event(), threading.Event()

        def slowly(path):
            gate.wait(30)
            removed.set()

        monkeypatch.setattr("ding.data.buffer.monitors.remove_file", slowly)
        cfg = cls.default_config()
        cfg.update(enable_track_used_data=True, replay_buffer_size=2)
        buffer = cls(cfg, tb_logger=Writer(), exp_name="exp")
        buffer.start()
        buffer.push([{"data_id": str(i)} for i in range(4)], 0)
        start = time.monotonic()
        del buffer
        gc.collect()
        assert time.monotonic() - start < 10
        gate.set()
        assert removed.wait(10)

    def test_close_after_deletion_does_nothing(self):
        buffer = NaiveReplayBuffer(NaiveReplayBuffer.default_config(), tb_logger=Writer())
        buffer.__del__()
        buffer.close()


def test_a_learner_that_listens_ends_at_close(tmp_path):
    cfg = EasyDict(
        host="127.0.0.1",
        port=0,
        path_data=str(tmp_path),
        path_policy=str(tmp_path),
        run_key="k" * 32,
    )
    learner = FlaskFileSystemLearner(cfg)
    learner.start()
    learner.__del__()
    assert learner.join(0)
    learner.close()


SCRIPT = """
from easydict import EasyDict
from tests.fakes import StepPolicy, line_manager
from ding.worker import SampleSerialCollector, AdvancedReplayBuffer

policy = StepPolicy(discount_factor=0.9)
collector = SampleSerialCollector(
    SampleSerialCollector.default_config(), line_manager(), policy.collect_mode, exp_name="exp"
)
buffer = AdvancedReplayBuffer(AdvancedReplayBuffer.default_config(), exp_name="exp")
buffer.push(collector.collect(8), 0)
cycle = [collector, buffer]
cycle.append(cycle)
"""


@pytest.mark.slow
def test_quiet_at_the_interpreters_end():
    import tests

    root = next(iter(tests.__path__)).rpartition("/")[0]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, timeout=120, env={"PYTHONPATH": root}
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
