"""What a process writes into a folder that another process keeps."""

import os

import pytest

from ding.utils import read_file, remove_file, save_file, sent_files
from ding.utils.errors import CheckpointNotFoundError, DataError
from ding.utils.file_helper import names_by_age
from ding.utils.log_file import AppendFile
from ding.utils.sent_files import FileChange
from ding.worker.engines.shared_folder import apply_changes, files_of_task
from ding.worker.messages import StartTask


@pytest.fixture
def folder(tmp_path):
    """The folder that this process does not write; its files go to ``home``."""
    yield str(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.fixture
def sent(folder, monkeypatch):
    monkeypatch.setattr(sent_files, "_sent", None)
    return sent_files.send_files_of(folder)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def test_logs_grow_where_they_are_sent(sent, folder, home):
    log = AppendFile(f"{folder}/log/learner0/a.txt", flush_seconds=0)
    for line in ("one\n", "two\n", "three\n"):
        log.write(line)
        apply_changes(str(home), sent.take() if line != "one\n" else ())
    assert (home / "log/learner0/a.txt").read_text() == "one\ntwo\nthree\n"
    assert sent.take() == ()


def test_checkpoints_are_replaced_and_removed(sent, folder, home):
    path = f"{folder}/ckpt/a.pth.tar"
    save_file(path, {"iter": 1})
    save_file(path, {"iter": 2})
    save_file(f"{folder}/ckpt/b.pth.tar", {"iter": 3})
    apply_changes(str(home), sent.take())
    assert read_file(str(home / "ckpt/a.pth.tar")) == {"iter": 2}
    assert names_by_age(f"{folder}/ckpt") == ["a.pth.tar", "b.pth.tar"]
    remove_file(path)
    apply_changes(str(home), sent.take())
    assert os.listdir(home / "ckpt") == ["b.pth.tar"]
    assert names_by_age(f"{folder}/ckpt") == ["b.pth.tar"]


def test_files_that_a_task_names_can_be_read(sent, folder, home, tmp_path):
    home.mkdir()
    save_file(str(home / "state"), {"iter": 4})
    (tmp_path / "secret").write_text("not of the run")
    save_file(str(home / "demo"), {"iter": 5})
    outside = {"c": str(home / "../secret"), "d": str(home / "no")}
    paths = {"a": str(home / "state"), "b": [outside, {"e": (str(home / "demo"), 1)}]}
    files = files_of_task(str(home), StartTask("learner", paths))
    assert list(files) == ["state", "demo"]
    with pytest.raises(CheckpointNotFoundError):
        read_file(f"{folder}/state")
    sent.give(files)
    assert read_file(f"{folder}/state") == {"iter": 4}
    assert sent.take() == ()


def test_other_folders_are_written_as_ever(sent, tmp_path):
    save_file(str(tmp_path / "runs" / "a"), {"x": 1})
    assert read_file(str(tmp_path / "runs" / "a")) == {"x": 1}
    assert sent.take() == ()


def test_output_is_sent_with_that_of_children(sent, folder, home):
    handle = sent.output("log/learner0/output.txt")
    os.write(handle, b"one\n")
    apply_changes(str(home), sent.take())
    os.posix_spawn(
        "/bin/echo", ["echo", "two"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, handle, 1)]
    )
    os.wait()
    apply_changes(str(home), sent.take())
    os.close(handle)
    assert (home / "log/learner0/output.txt").read_text() == "one\ntwo\n"


def test_paths_that_lead_out_of_the_folder_are_refused(home):
    home.mkdir()
    with pytest.raises(DataError, match="does not lie in the run folder"):
        apply_changes(str(home), [FileChange("../a", b"bad")])
    assert not (home.parent / "a").exists()
