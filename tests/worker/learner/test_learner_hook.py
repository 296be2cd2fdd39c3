"""Hooks: what a config builds, their order, and the built-in ones."""

import errno
import os
from types import SimpleNamespace

import pytest
import torch
from easydict import EasyDict

from ding.torch_utils import CountVar, build_log_buffer
from ding.utils import read_file, save_file
from ding.utils.errors import CheckpointError, CheckpointWriteError, ConfigError
from ding.worker.learner import (
    Hook,
    LearnerHook,
    LoadCkptHook,
    SaveCkptHook,
    add_learner_hook,
    build_learner_hook_by_cfg,
    find_char,
    learner_hook,
    merge_hooks,
    register_learner_hook,
    show_hooks,
)
from ding.worker.learner.learner_hook import simplified_hook_mapping


class Note(LearnerHook):
    """Records its call in ``engine.calls``."""

    def __init__(self, *args, ext_args=EasyDict(), **kwargs):
        super().__init__(*args, **kwargs)
        self.ext_args = ext_args

    def __call__(self, engine):
        engine.calls.append(self.name)


class Engine:
    def __init__(self):
        self.calls, self.lines = [], []
        self.rank, self.exp_name, self.instance_name = 0, "exp", "learner"
        self.last_iter, self.collector_envstep, self.ckpt_name = CountVar(0), 0, None
        self.policy, self.weight = self, torch.zeros(2)
        self.logger = SimpleNamespace(warning=lambda text, *args: self.lines.append(text % args))
        self.log_buffer = {"scalar": build_log_buffer()}
        self.only_monitor_rank0, self.shown = True, 0

    def update_monitor(self):
        pass

    def log_monitor(self):
        self.shown += 1

    def info(self, line):
        self.lines.append(line)

    def state_dict(self):
        return {"weight": self.weight}

    def load_state_dict(self, state):
        if set(state) != {"weight"}:
            raise KeyError(f"unknown {sorted(state)}")
        self.weight = state["weight"]


def names(hooks, position):
    return [hook.name for hook in hooks[position]]


class TestBuild:
    #: What is false builds its hook as well.
    OFF = dict(
        load_ckpt_before_run="",
        save_ckpt_after_run=False,
        log_show_after_iter=0,
        save_ckpt_after_iter=None,
        log_reduce_after_iter=False,
    )
    ON = dict(
        load_ckpt_before_run="a/path",
        log_show_after_iter=100,
        save_ckpt_after_iter=10000,
        save_ckpt_after_run=True,
        log_reduce_after_iter=True,
    )

    @pytest.mark.parametrize("cfg", [ON, OFF])
    def test_short_forms(self, cfg):
        hooks = build_learner_hook_by_cfg(EasyDict(cfg))
        assert names(hooks, "before_run") == ["load_ckpt"]
        assert names(hooks, "before_iter") == []
        assert names(hooks, "after_run") == ["save_ckpt_after_run"]
        # Averaging over ranks comes before what shows the averages.
        assert names(hooks, "after_iter") == [
            *("log_reduce_after_iter", "log_show", "save_ckpt_after_iter"),
        ]
        priorities = {hook.name: hook.priority for place in hooks.values() for hook in place}
        assert priorities == {
            "load_ckpt": 20,
            "save_ckpt_after_run": 20,
            "log_reduce_after_iter": 10,
            "log_show": 20,
            "save_ckpt_after_iter": 20,
        }

    def test_hooks_of_false_values_have_nothing_to_do(self):
        hooks, engine = build_learner_hook_by_cfg(EasyDict(self.OFF)), Engine()
        hooks["before_run"][0](engine)  # no path: nothing to load
        for hook in hooks["after_iter"]:  # a frequency of 0: never
            hook(engine)
        assert not os.path.exists("exp/ckpt")
        assert engine.shown == 0
        hooks["after_run"][0](engine)
        assert os.listdir("exp/ckpt") == ["iteration_0.pth.tar"]

    def test_short_forms_are_open(self, monkeypatch):
        short = {"note_after_iter": lambda value: Note("note", value, position="after_iter")}
        monkeypatch.setattr(
            learner_hook, "simplified_hook_mapping", {**simplified_hook_mapping, **short}
        )
        (hook,) = build_learner_hook_by_cfg(EasyDict(note_after_iter=7))["after_iter"]
        assert (hook.name, hook.priority) == ("note", 7)
        assert isinstance(simplified_hook_mapping["load_ckpt_before_run"]("path"), LoadCkptHook)

    def test_keeping_checkpoints_in_short_form(self):
        cfg = EasyDict(keep_ckpt=2, save_ckpt_after_iter=1)
        (hook,) = build_learner_hook_by_cfg(cfg)["after_iter"]
        engine = Engine()
        for number in range(4):
            engine.last_iter.update(number)
            hook(engine)
        kept = sorted(os.listdir("exp/ckpt"))
        assert kept == ["iteration_2.pth.tar", "iteration_3.pth.tar"]

    def test_full_form(self):
        register_learner_hook("note", Note)
        full = dict(
            name="mine", type="note", priority=5, position="before_iter", ext_args=dict(freq=3)
        )
        hooks = build_learner_hook_by_cfg(EasyDict(anything=full))
        (hook,) = hooks["before_iter"]
        assert (hook.name, hook.priority, hook.ext_args.freq) == ("mine", 5, 3)
        del full["name"], full["priority"]
        (hook,) = build_learner_hook_by_cfg(EasyDict(anything=full))["before_iter"]
        assert (hook.name, hook.priority) == ("anything", 100)

    @pytest.mark.parametrize(
        ("cfg", "words"),
        [
            (dict(save_after_iter=3), "unknown hook 'save_after_iter'"),
            (dict(a=dict(type="nothing", position="after_iter")), "unknown type 'nothing'"),
            (dict(a=dict(type="save_ckpt", position="later")), "position must be one of"),
            (
                dict(a=dict(type="save_ckpt", position="after_run", priority=-1)),
                "priority must be >= 0",
            ),
        ],
    )
    def test_nonsense_is_refused(self, cfg, words):
        with pytest.raises(ConfigError, match=words):
            build_learner_hook_by_cfg(EasyDict(cfg))


class TestOrder:
    def test_lower_priority_first_and_stable(self):
        hooks = build_learner_hook_by_cfg(EasyDict())
        for name, priority in (("b", 2), ("a", 1), ("c", 2), ("d", 0)):
            add_learner_hook(hooks, Note(name, priority, position="after_iter"))
        assert names(hooks, "after_iter") == ["d", "a", "b", "c"]

    def test_merge(self):
        one, two = build_learner_hook_by_cfg(EasyDict()), build_learner_hook_by_cfg(EasyDict())
        for hooks, *pairs in ((one, ("a", 1), ("b", 3)), (two, ("c", 1), ("d", 2))):
            for name, priority in pairs:
                add_learner_hook(hooks, Note(name, priority, position="before_run"))
        assert names(merge_hooks(one, two), "before_run") == ["a", "c", "d", "b"]
        assert names(one, "before_run") == ["a", "b"]
        with pytest.raises(ConfigError, match="different positions"):
            merge_hooks(one, {"before_run": []})

    def test_show(self, capsys):
        show_hooks(build_learner_hook_by_cfg(EasyDict(save_ckpt_after_run=True)))
        assert "after_run: save_ckpt_after_run(20)" in capsys.readouterr().out


def test_only_learner_hooks_are_registered():
    with pytest.raises(ConfigError, match="subclass of LearnerHook"):
        register_learner_hook("plain", Hook)


def test_find_char():
    assert find_char("a_b_c", "_", 2) == 3
    assert find_char("a_b_c", "_", 1, reverse=True) == 3
    with pytest.raises(ValueError, match="2 times"):
        find_char("a_b_c", "_", 3)


class TestSave:
    def hook(self, position="after_iter", **ext_args):
        return SaveCkptHook("save", 20, position=position, ext_args=EasyDict(ext_args))

    def test_frequency_and_content(self):
        engine, hook = Engine(), self.hook(freq=3)
        for number in range(7):
            engine.last_iter.update(number)
            engine.collector_envstep = 10 * number
            hook(engine)
        files = sorted(os.listdir("exp/ckpt"))
        assert files == [f"iteration_{n}.pth.tar" for n in (0, 3, 6)]
        state = read_file("exp/ckpt/iteration_6.pth.tar")
        assert (state["last_iter"], state["last_step"]) == (6, 60)
        assert state["weight"].tolist() == [0, 0]

    def test_keeps_the_newest_even_if_numbers_begin_again(self):
        engine, hook = Engine(), self.hook(freq=1, keep=2)
        others = ["ckpt_best.pth.tar", "iteration_one.pth.tar"]  # never removed
        for name in others:
            save_file(f"exp/ckpt/{name}", {})
        for number in (7, 8, 9, 3, 4):
            engine.last_iter.update(number)
            hook(engine)
            stamp = os.stat("exp/ckpt").st_mtime_ns
            path = f"exp/ckpt/iteration_{number}.pth.tar"
            os.utime(path, ns=(stamp, stamp))
        kept = {"iteration_3.pth.tar", "iteration_4.pth.tar", *others}
        assert set(os.listdir("exp/ckpt")) == kept

    @pytest.fixture
    def full_disk(self, monkeypatch):
        def fail(descriptor):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", fail)

    def test_full_disk_between_iterations_is_a_warning(self, full_disk):
        engine = Engine()
        self.hook(freq=1)(engine)
        (line,) = engine.lines
        assert "No space left on device" in line
        assert line.endswith("training continues")
        assert os.listdir("exp/ckpt") == []

    def test_full_disk_at_the_end_is_an_error(self, full_disk):
        with pytest.raises(CheckpointWriteError, match="iteration_0"):
            self.hook("after_run")(Engine())


class TestLoad:
    def hook(self, path):
        return LoadCkptHook("load", 20, position="before_run", ext_args=EasyDict(load_path=path))

    def test_restores_policy_and_counters(self):
        state = {"weight": torch.ones(2), "last_iter": 5, "last_step": 50, "eval_result": 1.0}
        save_file("a.pth.tar", state)
        engine = Engine()
        self.hook("a.pth.tar")(engine)
        assert engine.weight.tolist() == [1, 1]
        assert (engine.last_iter.val, engine.collector_envstep) == (5, 50)

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ([1], "holds a list"),
            ({"other": 1}, "a.pth.tar does not fit this policy"),
            (None, "there is no file"),
        ],
    )
    def test_wrong_file_is_named(self, content, words):
        if content is not None:
            save_file("a.pth.tar", content)
        with pytest.raises(CheckpointError, match=words):
            self.hook("a.pth.tar")(Engine())
