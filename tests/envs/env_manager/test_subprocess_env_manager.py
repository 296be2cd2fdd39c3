import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from easydict import EasyDict

from ding.envs import (
    AsyncSubprocessEnvManager,
    BaseEnvManager,
    BaseEnvTimestep,
    DingEnvWrapper,
    SyncSubprocessEnvManager,
)
from ding.envs.env_manager.subprocess_env_manager import is_abnormal_timestep
from ding.utils import durations
from ding.utils.errors import EnvDiedError, EnvError, EnvTimeoutError
from tests.envs.env_manager.env_fakes import (
    CountEnv,
    DictObsEnv,
    TupleObsEnv,
    TwoPlayerEnv,
    env_fns,
    one_faulty,
    zeros,
)

ACTIONS = np.zeros(4, np.int64)


@pytest.fixture
def launch(launch):
    return lambda fns, cls=SyncSubprocessEnvManager, **cfg: launch(fns, cls, **cfg)


def pid_of(manager, env_id):
    """Of the process that an environment is in."""
    return manager.own_pid[env_id]


def assert_equal(left, right):
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            assert_equal(left[key], right[key])
    elif isinstance(left, tuple):
        for a, b in zip(left, right):
            assert_equal(a, b)
    else:
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("cls", [CountEnv, DictObsEnv, TwoPlayerEnv])
@pytest.mark.parametrize("cfg", [{}, {"shared_memory": False}, {"envs_per_worker": 3}])
def test_columns_agree_with_the_base_manager(launch, cls, cfg):
    fns = [*env_fns(cls, 2), *env_fns(cls, 2, length=2, truncate=True)]
    base = launch(fns, BaseEnvManager, episode_num=3)
    manager = launch(fns, episode_num=3, **cfg)
    assert manager.supports_columns
    while not base.done:
        ids, obs = manager.ready_columns()
        base_ids, base_obs = base.ready_columns()
        assert_equal(ids, base_ids)
        assert_equal(obs, base_obs)
        step = manager.step_columns(ACTIONS[: len(ids)], ids)
        base_step = base.step_columns(ACTIONS[: len(ids)], ids)
        for name in ("obs", "reward", "done", "truncated", "env_ids"):
            assert_equal(getattr(step, name), getattr(base_step, name))
        assert step.infos == base_step.infos
        assert step.reward.dtype == np.float32
    assert manager.done


@pytest.mark.parametrize("cls", [CountEnv, DictObsEnv, TupleObsEnv])
@pytest.mark.parametrize("shared_memory", [True, False])
def test_dicts_agree_with_the_base_manager(launch, cls, shared_memory):
    base = launch(env_fns(cls), BaseEnvManager)
    manager = launch(env_fns(cls), shared_memory=shared_memory)
    for _ in range(5):
        assert_equal(manager.ready_obs, base.ready_obs)
        timesteps, base_timesteps = manager.step(zeros(manager)), base.step(zeros(base))
        for env_id in range(4):
            assert_equal(timesteps[env_id].obs, base_timesteps[env_id].obs)
            assert timesteps[env_id].info == base_timesteps[env_id].info
            assert timesteps[env_id].done == base_timesteps[env_id].done
            assert timesteps[env_id].reward.shape == (1,)


def test_workers_have_their_share_of_environments(launch):
    manager = launch(env_fns(CountEnv, 5), envs_per_worker=2)
    pids = [pid_of(manager, i) for i in range(5)]
    assert len(set(pids)) == 3
    assert os.getpid() not in pids
    assert pids[0] == pids[1] != pids[2]


@pytest.mark.slow
@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_started_workers_with_functions_that_only_cloudpickle_takes(launch, context):
    length = 2
    fns = [lambda i=i: CountEnv({"id": i, "length": length}) for i in range(2)]
    manager = launch(fns, context=context)
    step = manager.step_columns(ACTIONS[:2], manager.ready_columns()[0])
    np.testing.assert_array_equal(step.obs, [[0, 1, 1, 0], [1, 1, 1, 0]])


def test_a_part_of_wrapped_environments_can_be_stepped(launch):
    manager = launch([lambda: DingEnvWrapper(cfg=EasyDict(env_id="CartPole-v1"))] * 3)
    manager.step_columns(np.array([0, 1]), np.array([0, 2]))
    manager.step_columns(np.array([0, 1, 1]), np.arange(3))
    assert np.all(manager.step_columns(np.array([1]), np.array([1])).reward == 1)


# ---- faults -----------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [True, False])
def test_a_failing_step_carries_the_workers_traceback(launch, columns):
    manager = launch(one_faulty(fault="raise"))

    def step():
        if columns:
            return manager.step_columns(ACTIONS, np.arange(4))
        return manager.step(zeros(manager))

    step()
    with pytest.raises(EnvError, match=r"env 1 \(FaultyEnv.*the env's own words") as caught:
        step()
    # Others in other processes have been stepped, and their answers are lost.
    assert manager.ready_obs_id == []
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert "in _fault" in str(cause.__cause__)
    assert caught.value.env_id == 1
    with pytest.raises(EnvError, match="does not wait for an action"):
        manager.step({1: 0})
    manager.reset()
    assert manager.ready_obs_id == [0, 1, 2, 3]
    step()


@pytest.mark.parametrize(("where", "at"), [("step", 1), ("reset", 1), ("init", 1)])
@pytest.mark.parametrize(("fault", "how"), [("kill", "SIGKILL"), ("exit", "exit code 3; .*'base'")])
def test_a_worker_that_dies_again_and_again(fault, how, where, at, caplog):
    manager = SyncSubprocessEnvManager(
        one_faulty(fault=fault, where=where, at=at),
        EasyDict(envs_per_worker=2, retry_waiting_time=0),
    )
    often = "" if where == "init" else "died 6 times within 100 steps, at last it "
    with pytest.raises(EnvDiedError, match=f"envs 0, 1 {often}.*{how}"):
        manager.launch()
        while True:
            manager.step_columns(ACTIONS, np.arange(4))
    assert caplog.text.count("starting another worker") == (0 if where == "init" else 5)
    manager.close()


@pytest.mark.parametrize("cls", [SyncSubprocessEnvManager, AsyncSubprocessEnvManager])
@pytest.mark.parametrize("where", ["step", "reset"])
def test_a_killed_worker_is_replaced(launch, tmp_path, cls, where, caplog):
    fault = dict(fault="kill", where=where, episode=2, once=str(tmp_path / "mark"))
    manager = launch(
        one_faulty(**fault), cls, envs_per_worker=2, wait_num=4, step_wait_timeout=None
    )
    manager.seed([5, 6, 7, 8])
    manager.reset()
    steps = [manager.step(zeros(manager)) for _ in range(8)]
    failed = [[i for i, t in step.items() if is_abnormal_timestep(t)] for step in steps]
    assert [ids for ids in failed if ids] == ([[0, 1]] if where == "step" else [])
    shown = [obs.tolist() for obs in manager.ready_obs.values()]
    assert [obs[1] for obs in shown[2:]] == [4, 4]
    assert [obs[3] for obs in shown[2:]] == [7, 8]
    # Its environments continue with other seeds: not with those that they had begun with.
    assert not {5, 6} & {obs[3] for obs in shown[:2]}
    (warning,) = caplog.messages
    assert "envs 0, 1 was killed by signal 9" in warning


def test_environments_that_were_not_stepped_are_reset_with_their_worker(launch):
    manager = launch(env_fns(CountEnv), envs_per_worker=2)
    manager.step_columns(ACTIONS, np.arange(4))
    before = manager.reset_counts
    os.kill(pid_of(manager, 0), signal.SIGKILL)
    step = manager.step_columns(ACTIONS[:3], np.arange(1, 4))
    assert step.env_ids.tolist() == [1, 2, 3]
    assert step.abnormal.tolist() == [True, False, False]
    assert (manager.reset_counts - before).tolist() == [1, 0, 0, 0]
    assert [obs[2] for obs in manager.ready_obs.values()] == [0, 0, 2, 2]
    os.kill(pid_of(manager, 0), signal.SIGKILL)
    manager.reset({1: None})
    assert (manager.reset_counts - before).tolist() == [2, 1, 0, 0]
    assert manager.step_columns(ACTIONS, np.arange(4)).obs[:, 2].tolist() == [1, 1, 3, 3]


def test_seeds_after_a_death_are_new_in_a_resumed_run_too(launch):
    def seed_after_death(manager):
        os.kill(pid_of(manager, 0), signal.SIGKILL)
        return manager.step(zeros(manager))[0].obs[3]

    manager = launch(env_fns(CountEnv, 1), retry_waiting_time=0)
    manager.seed([5])
    manager.reset()
    seeds = [5, seed_after_death(manager), seed_after_death(manager)]
    resumed = launch(env_fns(CountEnv, 1), retry_waiting_time=0)
    resumed.load_state_dict(manager.state_dict())
    seeds.append(seed_after_death(resumed))
    assert len(set(seeds)) == 4


def test_deaths_that_are_far_apart_do_not_add_up(launch):
    manager = launch(env_fns(CountEnv, 1), retry_waiting_time=0)
    for _ in range(7):
        for _ in range(100):
            manager.step_columns(ACTIONS[:1], np.arange(1))
        os.kill(pid_of(manager, 0), signal.SIGKILL)
        assert manager.step_columns(ACTIONS[:1], np.arange(1)).abnormal.all()


def test_between_steps_a_killed_worker_is_replaced(launch):
    manager = launch(env_fns(CountEnv), envs_per_worker=2, retry_waiting_time=0)
    manager.seed([5, 6, 7, 8])
    manager.reset()
    before = manager.reset_counts
    os.kill(pid_of(manager, 2), signal.SIGKILL)
    assert not manager.normalises
    assert [cfg["id"] for cfg in manager.cfg] == [0, 1, 2, 3]
    manager.seed([1, 2, 3, 4], dynamic_seed=False)
    state = manager.state_dict()
    # A run that continues from here does not play the first episodes again.
    assert [env["renewals"] for env in state["envs"]] == [0, 0, 1, 1]
    step = manager.step_columns(ACTIONS[:3], np.arange(3))
    assert step.abnormal.tolist() == [0, 0, 1]
    assert "SIGKILL" in step.infos[2]["error"]
    assert (manager.reset_counts - before).tolist() == [0, 0, 0, 1]
    assert [obs[2] for obs in manager.ready_obs.values()] == [1, 1, 0, 0]
    os.kill(pid_of(manager, 2), signal.SIGKILL)
    assert set(manager.random_action()) == {0, 1, 2, 3}
    manager.reset({3: None})
    assert (manager.reset_counts - before).tolist() == [0, 0, 1, 2]
    assert manager.step_columns(ACTIONS, np.arange(4)).obs[:, 2].tolist() == [2, 2, 1, 1]


@pytest.mark.parametrize("fault", ["kill", "hang"])
@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize("shared_memory", [True, False])
def test_a_lost_worker_is_replaced_if_asked(launch, tmp_path, fault, columns, shared_memory):
    manager = launch(
        one_faulty(fault=fault, once=str(tmp_path / "mark")),
        max_retry=2,
        retry_type="renew",
        retry_waiting_time=0,
        envs_per_worker=2,
        step_timeout=0.3,
        shared_memory=shared_memory,
    )
    manager.step_columns(ACTIONS, np.arange(4))
    if columns:
        step = manager.step_columns(ACTIONS, np.arange(4))
        # The whole process is lost with a kill; a hang is ended in the worker.
        assert step.abnormal.tolist() == [fault == "kill", True, False, False]
        assert step.reward[1] == 0
        obs, info = step.obs[1], step.infos[1]
    else:
        timestep = manager.step(zeros(manager))[1]
        assert is_abnormal_timestep(timestep)
        assert timestep.reward.shape == (1,)
        obs, info = timestep.obs, timestep.info
    assert info["abnormal"]
    assert obs[2] == 0
    step = manager.step_columns(ACTIONS, np.arange(4))
    assert step.obs[1, 2] == 1
    assert step.obs[2, 2] == 3
    assert step.abnormal is None


def test_killed_from_outside_before_a_reset(launch):
    manager = launch(env_fns(CountEnv), envs_per_worker=2)
    os.kill(pid_of(manager, 2), signal.SIGKILL)
    manager.reset()
    np.testing.assert_array_equal(manager.ready_obs[3], [3, 1, 0, 0])
    manager.step_columns(ACTIONS, np.arange(4))


def test_a_worker_that_cannot_be_started_again_leaves_the_others_in_order(launch, tmp_path):
    class Once(CountEnv):
        def __init__(self, cfg):
            super().__init__(cfg)
            if self.cfg["id"] == 2 and (tmp_path / "made").exists():
                raise ValueError("no second time")
            if self.cfg["id"] == 3:
                (tmp_path / "made").touch()

    manager = launch(env_fns(Once), envs_per_worker=2)
    os.kill(pid_of(manager, 2), signal.SIGKILL)
    for ask in (lambda: manager.step_columns(ACTIONS, np.arange(4)), manager.reset):
        with pytest.raises(EnvError, match="no second time"):
            ask()
    assert manager.ready_obs_id == [0, 1]
    assert [obs[1] for obs in manager.ready_obs.values()] == [2, 2]
    step = manager.step_columns(ACTIONS[:2], np.arange(2))
    assert step.obs[:, 2].tolist() == [1, 1]


@pytest.mark.parametrize("where", ["step", "reset"])
def test_a_hang_names_the_environment(where):
    manager = SyncSubprocessEnvManager(
        one_faulty(fault="hang", where=where), EasyDict(step_timeout=0.2, reset_timeout=0.3)
    )
    with pytest.raises(EnvTimeoutError, match=rf"env 1 \(FaultyEnv.* {where}_timeout=0") as caught:
        manager.launch()
        for _ in range(2):
            manager.step_columns(ACTIONS, np.arange(4))
    assert caught.value.env_id == 1
    manager.close()


@pytest.mark.slow
def test_a_hang_that_no_signal_ends(launch, caplog):
    class Deaf(CountEnv):
        def step(self, action):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
            time.sleep(1000)

    limits = dict(step_timeout=0.1, reset_timeout=0.1, retry_waiting_time=0)
    manager = launch(env_fns(Deaf, 2), envs_per_worker=1, max_retry=2, **limits)
    assert manager.step_columns(ACTIONS[:2], np.arange(2)).abnormal.all()
    with pytest.raises(EnvTimeoutError, match=r"env 0 did not answer in time.*step_timeout=0\.1"):
        manager.step_columns(ACTIONS[:2], np.arange(2))
    assert caplog.text.count("starting another worker") == 2
    manager.reset()
    assert manager.ready_obs_id == [0, 1]


@pytest.mark.slow
def test_a_step_limit_does_not_cut_resets_short(launch):
    class Slow(CountEnv):
        def reset(self):
            if self._obs[1] >= 1:
                time.sleep(1.5)
            return super().reset()

    manager = launch(env_fns(Slow, 1, length=1), step_timeout=0.05)
    assert manager.step_columns(ACTIONS[:1], np.arange(1)).done.tolist() == [True]


def test_an_answer_that_cannot_be_pickled(launch):
    class Odd(CountEnv):
        def step(self, action):
            return BaseEnvTimestep(*super().step(action)[:3], {"lock": threading.Lock()})

    manager = launch(env_fns(Odd))
    with pytest.raises(EnvError, match="cannot be sent to the main process"):
        manager.step(zeros(manager))


# ---- ends -------------------------------------------------------------------------------------


def test_close_is_bounded_even_if_environments_hang_in_it(monkeypatch):
    monkeypatch.setattr(durations, "ENV_CLOSE_PATIENCE", 0.3)

    class Clinging(CountEnv):
        def close(self):
            time.sleep(1000)

    manager = SyncSubprocessEnvManager(env_fns(Clinging))
    manager.launch()
    manager.close()
    manager.close()


def test_a_forgotten_manager_leaves_no_process():
    manager = SyncSubprocessEnvManager(env_fns(CountEnv))
    manager.launch()
    pid = pid_of(manager, 0)
    del manager
    gc.collect()
    assert _gone([pid])


SCRIPT = """
import os, sys, time
from ding.envs import SyncSubprocessEnvManager
from tests.envs.env_manager.env_fakes import CountEnv, env_fns
manager = SyncSubprocessEnvManager(env_fns(CountEnv), {})
manager.launch()
other = SyncSubprocessEnvManager(env_fns(CountEnv), {})
other.launch()
print(*manager.own_pid, *other.own_pid, flush=True)
if sys.argv[1] == "wait":
    time.sleep(60)
"""


def _run_script(mode):
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SCRIPT, mode],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return process, [int(pid) for pid in process.stdout.readline().split()]


def _gone(pids, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed():
    process, pids = _run_script("wait")
    process.kill()
    process.communicate()
    assert pids
    assert _gone(pids)


@pytest.mark.slow
def test_an_exit_without_close_is_quiet():
    process, pids = _run_script("exit")
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert errors == ""
    assert pids
    assert _gone(pids)


# ---- asynchronous -----------------------------------------------------------------------------


class LateEnv(CountEnv):
    """The first of them ends no step before there is a file ``late``."""

    def step(self, action):
        while self.cfg["id"] == 0 and not os.path.exists("late"):
            time.sleep(0.01)
        return super().step(action)


def test_async_returns_when_enough_are_ready(launch):
    fns = env_fns(LateEnv, 3)
    manager = launch(fns, AsyncSubprocessEnvManager, wait_num=2, step_wait_timeout=None)
    timesteps = manager.step(zeros(manager))
    assert sorted(timesteps) == [1, 2]
    assert manager.ready_obs_id == [1, 2]
    with pytest.raises(EnvError, match="env 0"):
        manager.step({0: 0})
    with open("late", "w"):
        pass
    seen = []
    while 0 not in seen:
        ids, obs = manager.ready_columns()
        assert len(obs) == len(ids)
        seen.extend(manager.step_columns(np.zeros(len(ids), int), ids).env_ids.tolist())
    manager.reset()
    assert manager.ready_obs_id == [0, 1, 2]
    assert manager.ready_obs[0][2] == 0


def test_a_state_can_be_saved_while_an_environment_hangs(launch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    manager = launch(env_fns(LateEnv, 3), AsyncSubprocessEnvManager, step_wait_timeout=None)
    manager.seed([5, 6, 7])
    manager.step(zeros(manager))
    state = manager.state_dict()
    other = launch(env_fns(LateEnv, 3), AsyncSubprocessEnvManager)
    other.load_state_dict(state)
    assert other.ready_obs_id == [0, 1, 2]
    assert [obs[3] for obs in other.ready_obs.values()][1:] == [6, 7]


class SleepyEnv(CountEnv):
    def step(self, action):
        time.sleep(self.cfg["sleep"])
        return super().step(action)


def test_async_waits_for_at_least_one(launch):
    fns = env_fns(SleepyEnv, 1, sleep=0.2, length=1)
    manager = launch(fns, AsyncSubprocessEnvManager, step_wait_timeout=0.01, episode_num=2)
    assert manager.step(zeros(manager))[0].done
    manager.step(zeros(manager))
    assert manager.done
    assert manager.env_state_done(0)


def test_async_recovers_and_reports(launch, tmp_path):
    manager = launch(
        one_faulty(fault="kill", once=str(tmp_path / "mark")),
        AsyncSubprocessEnvManager,
        max_retry=2,
        retry_type="renew",
        wait_num=4,
        step_wait_timeout=None,
    )
    manager.step(zeros(manager))
    timesteps = manager.step(zeros(manager))
    assert [i for i, t in timesteps.items() if is_abnormal_timestep(t)] == [1]
    manager = launch(one_faulty(fault="kill"), AsyncSubprocessEnvManager, retry_waiting_time=0)
    with pytest.raises(EnvDiedError, match="env 1 died 6 times"):
        while True:
            manager.step(zeros(manager))


def test_wait():
    import multiprocessing

    ends = [multiprocessing.Pipe() for _ in range(3)]
    ends[1][1].send(1)
    ready, positions = AsyncSubprocessEnvManager.wait([a for a, _ in ends], 2, 0.05)
    assert positions == [1]
    assert ready == [ends[1][0]]


def test_workers_whose_answers_differ_in_kind(launch):
    class Odd(CountEnv):
        changes = dict(reward=1.0)

    manager = launch([*env_fns(Odd, 2, length=1), *env_fns(CountEnv, 2)], envs_per_worker=2)
    assert manager.step_columns(ACTIONS, np.arange(4)).reward.tolist() == [1, 1, 1, 1]
