"""A resumed run of a user's policy restores the policy's whole state."""

import importlib
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from easydict import EasyDict

import tests
from ding.entry import serial_pipeline
from ding.entry.components import build_components, load_config
from ding.entry.run.state import load_run_state, own_states
from ding.policy import DQNPolicy
from ding.utils import BUFFER_REGISTRY, POLICY_REGISTRY, SERIAL_COLLECTOR_REGISTRY, read_file
from ding.utils.log_writer import DistributedWriter
from ding.worker import LearnerHook, SampleSerialCollector
from tests.entry.runs import WalkEnv, run_json, save_run_state, walk_config, walk_envs

GUIDE = Path(next(iter(tests.__path__))).parent / "docs/extending.md"


def code_of(heading):
    """The code under a heading of the guide."""
    section = GUIDE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.S)
    return code


@pytest.fixture
def reservoir(tmp_path, monkeypatch):
    """Config of the buffer that the guide shows."""
    (tmp_path / "own_reservoir.py").write_text(code_of("A reservoir buffer"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield EasyDict(type="reservoir", import_names=["own_reservoir"])
    sys.modules.pop("own_reservoir", None)
    BUFFER_REGISTRY.pop("reservoir", None)


@pytest.fixture
def averaged(tmp_path, monkeypatch):
    """The module with the class that the guide shows."""
    code = code_of("A variant of DQN")
    assert len(code.strip().splitlines()) <= 40
    (tmp_path / "own_averaged.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("own_averaged")
    sys.modules.pop("own_averaged")
    POLICY_REGISTRY.pop("averaged_dqn", None)
    POLICY_REGISTRY.pop("averaged_dqn_command", None)


@pytest.fixture
def register():
    def register_(cls):
        POLICY_REGISTRY.register("own_state_dqn", cls, force_overwrite=True)

    yield register_
    POLICY_REGISTRY.pop("own_state_dqn", None)
    POLICY_REGISTRY.pop("own_state_dqn_command", None)


class SteadyEnv(WalkEnv):
    """All episodes begin in the same state: one more reset, as at a resume, changes nothing."""

    def reset(self):
        super().reset()
        self._start = np.zeros(2)
        return self._obs()


def run(exp_name, limit, policy="own_state_dqn", resume=False, buffer=None, **learn):
    """A run whose collections end with the episodes, as those that run at the end begin again."""
    config = walk_config(exp_name, policy=policy)
    if buffer is not None:
        config[0].policy.other.replay_buffer.replay_buffer_size = 50
        config[1].replay_buffer = buffer
    # Episodes have ten steps: each collection is a whole one of both environments.
    config[0].policy.collect.n_sample = 20
    config[0].policy.learn.update(update_per_collect=5, resume_training=resume, **learn)
    envs = [SteadyEnv, *walk_envs()[1:]]
    serial_pipeline(config, seed=0, env_setting=envs, max_train_iter=limit)
    return read_file(f"{exp_name}/ckpt/iteration_{limit}.pth.tar")


def same(left, right):
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, torch.Tensor | np.ndarray):
        return bool((left == right).all())
    return left == right


def assert_resumes_exactly(policy="own_state_dqn", **options):
    whole = run("whole", 60, policy, **options)
    half = run("parts", 30, policy, **options)
    rest = run("parts", 60, policy, resume=True, **options)
    assert not same(half["model"], rest["model"])
    for name in whole:
        assert same(whole[name], rest[name]), name
    return rest


@pytest.mark.slow
def test_averaged_dqn(averaged):
    state = assert_resumes_exactly("averaged_dqn", networks=3, network_freq=4)
    assert len(state["own_state"]["_older"]["items"]) == 3
    assert "resume_inexact" not in run_json("parts")


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["dqn_by_priority", "averaged_dqn"])
def test_a_reservoir(averaged, reservoir, policy):
    """In place of the newest items; ``dqn`` of this config learns by priority."""
    assert_resumes_exactly(policy.removesuffix("_by_priority"), buffer=reservoir)
    config = Path("parts/total_config.py").read_text()
    assert "reservoir" in config
    slots = read_file("parts/ckpt/resume.pth.tar")["buffer"]["ring"]["slots"]
    assert len(slots) == 50
    # Not the newest ones in turn.
    assert set(np.diff(slots)) - {1, -49}


@pytest.mark.slow
def test_a_generator_of_ones_own(register):
    class Noisy(DQNPolicy):
        """Disturbs its targets."""

        def _init_learn(self):
            super()._init_learn()
            self._rng = np.random.default_rng(7)

        def _target_output(self, batch):
            target = super()._target_output(batch)
            noise = self._rng.normal(size=tuple(target["logit"].shape))
            return {**target, "logit": target["logit"] + torch.from_numpy(noise).float()}

    register(Noisy)
    assert_resumes_exactly()


@pytest.mark.slow
def test_what_cannot_be_saved_is_named_at_the_start_and_when_it_comes(register, capsys):
    class Opaque:
        pass

    class Locked(DQNPolicy):
        def _init_learn(self):
            super()._init_learn()
            self._lock, self._seen = threading.Lock(), []

        def _learn(self, batch):
            self._seen = [Opaque()]
            return super()._learn(batch)

    register(Locked)
    run("run", 30)
    shown = capsys.readouterr().out
    assert shown.count("attribute _lock (a _thread.lock) is not part of the state") == 1
    assert shown.count("attribute _seen[0] (a ") == 1
    assert shown.index("_lock") < shown.index("_seen")
    for attribute in ("_lock", "_seen[0]"):
        assert attribute in run_json()["resume_inexact"]


@pytest.fixture
def parts():
    """``parts()``: a run's parts, with a learner, a collector and a hook of the user."""

    class CountingHook(LearnerHook):
        seen = None

        def __call__(self, engine):
            self.losses = [*getattr(self, "losses", ()), 1.0]

    class Collector(SampleSerialCollector):
        def collect(self, *args, **kwargs):
            self.calls = getattr(self, "calls", 0) + 1
            return super().collect(*args, **kwargs)

    SERIAL_COLLECTOR_REGISTRY.register("own_counting", Collector)
    built = []

    def build():
        config = walk_config()
        config[1].collector = dict(type="own_counting")
        cfg = load_config(config, 0, walk_envs())
        built.append(build_components(cfg, DistributedWriter("run/log/serial"), walk_envs()))
        built[-1].learner.register_hook(CountingHook("own", 50, position="after_iter"))
        own_states(built[-1])
        return built[-1]

    yield build
    for one in built:
        one.close()
    del SERIAL_COLLECTOR_REGISTRY["own_counting"]


def test_what_users_collectors_and_hooks_add_is_kept(parts):
    first, second = parts(), parts()
    assert set(first.own_states) == {"collector", "hook own"}
    for _ in range(3):
        first.collector.collect(policy_kwargs={"eps": 0.5})
    first.learner.call_hook("after_iter")
    save_run_state(first)
    load_run_state(second)
    assert second.collector.calls == 3
    assert [hook.losses for hook in second.learner.hooks("after_iter") if hook.name == "own"] == [
        [1.0]
    ]
