"""What a parallel run makes, marks and removes: its own files, and nothing else."""

import json
import os
from pathlib import Path

import pytest
from easydict import EasyDict

from ding.data.chunks import chunk_name
from ding.entry.run.parallel_folders import RunFolders
from ding.utils import get_task_uid
from ding.utils.errors import ConfigError
from ding.utils.file_helper import read_facts, write_facts
from ding.utils.processes import process_identity
from ding.utils.run_claims import MARK_FILE, RunMark


def folders(exp="run", data=None, policy=None, **more):
    system = dict(path_data=data or f"{exp}/data", path_policy=policy or f"{exp}/policy", **more)
    return RunFolders(EasyDict(main=dict(exp_name=exp), system=system))


def files(folder="."):
    """All files and links below a folder, links not followed."""
    found = []
    for outer, below, names in os.walk(folder):
        links = [name for name in below if os.path.islink(os.path.join(outer, name))]
        found += [os.path.relpath(os.path.join(outer, name), folder) for name in names + links]
    return sorted(found)


def write(*paths):
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")


def leave_files(data, policy, exp="run"):
    """What a killed run leaves: chunks and weights, finished and not; returns their names."""
    RunMark(data, exp).note("buffers", ["buffer_1"])
    RunMark(policy, exp).note("weights", ["policy_1"])
    uid = get_task_uid()
    chunk = chunk_name("buffer_1", "collector0", f"{uid}_0")
    names = [f"{data}/{chunk}", f"{data}/.{chunk}.{'ab' * 8}", f"{policy}/policy_1"]
    write(*names, f"{policy}/policy_1.{uid}_7", f"{policy}/.policy_1.{'12' * 8}")


def test_a_run_leaves_no_folder_of_its_own():
    run = folders(data="big/disk/data")
    run.prepare()
    leave_files("big/disk/data", "run/policy")
    run.clean()
    assert files() == []
    assert os.listdir(".") == ["run"]


def test_a_state_that_was_being_written_when_its_learner_was_killed_is_removed():
    run = folders()
    run.prepare()
    write("run/ckpt/learner.pth.tar", f"run/ckpt/.learner.pth.tar.{'0a' * 8}")
    run.clean()
    assert files("run") == ["ckpt/learner.pth.tar"]


def test_foreign_files_stay_and_so_do_their_folders():
    write("run/data/notes.txt", "run/data/deep/er/thesis.tex", "run/policy/policy_1.bak")
    write("run/data/.hidden", "run/data/buffer_1.old.csv", "run/data/buffer_2.collector0.1")
    os.mkdir("run/data/empty")
    before = files()
    run = folders()
    run.prepare()
    leave_files("run/data", "run/policy")
    run.clean()
    assert files() == before
    assert os.path.isdir("run/data/empty")


def test_folders_that_were_there_before_stay():
    os.makedirs("big/disk")
    run = folders(data="big/disk")
    run.prepare()
    run.clean()
    assert sorted(os.listdir(".")) == ["big", "run"]
    assert os.listdir("run") == []
    assert os.listdir("big") == ["disk"]


def test_links_are_not_followed():
    write("disk/other/results.csv", "elsewhere/model.pt")
    os.mkdir("run")
    os.symlink("../disk", "run/data")
    os.symlink("../elsewhere", "disk/way")
    os.symlink("../elsewhere/model.pt", "disk/buffer_1.collector0.7")
    before = files()
    run = folders()
    run.prepare()
    leave_files("run/data", "run/policy")
    run.clean()
    assert files() == before
    assert Path("elsewhere/model.pt").read_text() == "precious"


def test_a_folder_without_the_mark_is_not_touched():
    run = folders()
    run.prepare()
    leave_files("run/data", "run/policy")
    os.remove(f"run/data/{MARK_FILE}")
    left = len(os.listdir("run/data"))
    run.clean()
    assert len(os.listdir("run/data")) == left == 2
    assert not os.path.exists("run/policy")


def test_what_was_being_written_is_removed_and_what_only_looks_like_it_stays():
    run = folders()
    run.prepare()
    ours = [f"run/.run.json.{'a' * 16}", f"run/ckpt/.ckpt_best.pth.tar.{'0' * 16}"]
    theirs = [f"run/.notes.{'0' * 16}", "run/ckpt/my.tmp", "run/ckpt/.mine", "run/.run.json.bak"]
    write(*ours, *theirs)
    for path in ours:
        os.utime(path, (0, 0))
    run.clean()
    assert files() == sorted(theirs)


@pytest.mark.parametrize("key", ["path_data", "path_policy"])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("run", "is the run's own folder"),
        (".", "contains the run's own folder"),
        ("run/ckpt", "'ckpt', where files are kept"),
        ("run/ckpt/deeper", "'ckpt', where files are kept"),
        ("run/log", "'log', where files are kept"),
        ("run/data/..", "is the run's own folder"),
        ("link", "is the run's own folder"),
        ("link/ckpt", "'ckpt', where files are kept"),
        ("around", "contains the run's folder 'ckpt'"),
        ("other", "contains '.*other', where a run keeps"),
        ("runs", "contains '.*runs/first', where a run keeps"),
        ("other/ckpt", "is in '.*other', where another run keeps"),
        ("other/log/deeper", "is in '.*other', where another run keeps"),
        ("work", "contains '.*work/ckpt', where a run keeps"),
    ],
)
def test_folders_in_which_something_is_kept_are_refused(key, value, words):
    write("other/run.json", "runs/first/run.json", "work/ckpt/model.pth.tar", "around/kept/x")
    os.mkdir("run")
    os.symlink("run", "link")
    os.symlink("../around/kept", "run/ckpt")
    before = files()
    run = folders(**{key.removeprefix("path_"): value})
    with pytest.raises(ConfigError, match=words) as caught:
        run.prepare()
    assert f"system_config.{key} is {value!r}, which" in str(caught.value)
    assert "give it a separate folder" in str(caught.value)
    run.clean()
    assert files() == before


def test_a_worker_s_own_folder_is_looked_at_too():
    run = folders(collector1=dict(path_data="run/ckpt"))
    with pytest.raises(ConfigError, match=r"system_config.collector1.path_data is 'run/ckpt'"):
        run.prepare()


def test_two_runs_with_one_folder():
    first, second = folders("run1", data="data"), folders("run2", data="data")
    first.prepare()
    leave_files("data", "run1/policy", exp="run1")
    before = files("data")
    with pytest.raises(
        ConfigError, match=rf"path_data: the folder .*run1' \(process {os.getpid()}"
    ):
        second.prepare()
    second.clean()
    assert files("data") == before
    first.clean()
    second.prepare()
    second.clean()
    assert not os.path.exists("data")


def test_the_folder_of_a_run_that_was_killed_can_be_used_and_its_files_stay():
    first, second = folders("run1", data="data"), folders("run2", data="data")
    first.prepare()
    leave_files("data", "run1/policy", exp="run1")
    set_mark("data", started="before")
    second.prepare()
    second.clean()
    assert len(files("data")) == 2  # the first may be resumed


def test_a_run_on_another_host_is_unknown():
    first, second = folders("run1", data="data"), folders("run2", data="data")
    first.prepare()
    set_mark("data", host="elsewhere")
    with pytest.raises(ConfigError, match=r"on elsewhere.*if that is not there any more, remove"):
        second.prepare()


def test_a_run_that_goes_on_after_a_kill_removes_what_is_left():
    folders().prepare()
    leave_files("run/data", "run/policy")
    for folder in ("run/data", "run/policy"):
        set_mark(folder, started="before")
    again = folders()
    again.prepare()
    again.clean()
    assert files() == []
    assert os.listdir(".") == ["run"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"run": 3}', "null", '{"run": "x", "made": 1}'])
def test_a_mark_that_is_none(text):
    write("run/data/notes.txt")
    Path("run/data", MARK_FILE).write_text(text)
    RunMark("run/data", "run").note("buffers", ["b"])
    assert RunMark("run/data", "run").own is None
    run = folders()
    run.prepare()
    run.clean()
    assert files() == ["run/data/notes.txt"]


def test_the_address_of_a_dead_coordinator_blocks_no_run():
    os.mkdir("run")
    facts = {"host": "127.0.0.1", "port": 1, "pid": os.getpid(), "process": process_identity()}
    with open("run/coordinator.json", "w") as file:
        json.dump(facts, file)
    with pytest.raises(ConfigError, match=f"is running.*process {os.getpid()}; stop that first"):
        folders().prepare()
    facts["process"]["started"] = "before"
    with open("run/coordinator.json", "w") as file:
        json.dump(facts, file)
    run = folders()
    run.prepare()
    run.clean()


def set_mark(folder, **changes):
    path = Path(folder, MARK_FILE)
    write_facts(path, {**read_facts(path), **changes})
