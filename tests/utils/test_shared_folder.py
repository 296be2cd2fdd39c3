"""Names from the network and the folder that they must not leave."""

import os
import re

import pytest
from hypothesis import given, settings, strategies as st

from ding.utils import ConfigError, DataError
from ding.utils.errors import CheckpointWriteError
from ding.utils.shared_folder import SharedFolder

BAD = [
    "", ".", "..", "../x", "x/..", "a/../../x", "/etc/passwd", "//x", "a//b", "a/b/c", "a/", "/",
    ".hidden", "a/.hidden",
    "./", "./.", "./..", "././x", "./.hidden", "./../x", "./a/b/c", ".//x",
    "nul\0", "line\nbreak", "tab\t", "back\\slash", "x" * 201, "é" * 101,
    "\ud800", "\x7f", "\u202e", None, 3, b"x", ["x"],
]  # fmt: skip


@pytest.mark.parametrize("name", BAD, ids=ascii)
def test_bad_names_are_refused(tmp_path, name):
    folder = SharedFolder(str(tmp_path / "data"))
    with pytest.raises(DataError):
        folder.file(name)
    with pytest.raises(DataError):
        folder.remove(name)


@pytest.mark.parametrize("name", ["a", "a.b-c_d 1", "folder/a", "é", "x" * 200, "a..b", "~"])
def test_plain_names_lie_in_the_folder(tmp_path, name):
    folder = SharedFolder(str(tmp_path / "data"))
    assert folder.file(name) == os.path.join(folder.path, name)


@pytest.mark.parametrize("name", ["a", "folder/a"])
def test_names_may_begin_with_the_folder_itself(tmp_path, name):
    folder = SharedFolder(str(tmp_path / "data"))
    path = folder.file(f"./{name}")
    assert path == folder.file(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write("12345")
    assert folder.size(f"./{name}") == 5
    folder.remove(f"./{name}")
    assert not os.path.exists(path)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=30), st.text("./\\\0a~%-", max_size=12), st.binary(max_size=9)))
def test_no_name_leaves_the_folder(tmp_path_factory, name):
    folder = SharedFolder(str(tmp_path_factory.getbasetemp() / "names" / "data"))
    try:
        path = folder.file(name)
    except DataError:
        return
    assert os.path.realpath(path).startswith(folder.path + os.sep)
    assert os.path.normpath(path) == path


def test_links_are_refused(tmp_path):
    folder = SharedFolder(str(tmp_path / "data"))
    secret = tmp_path / "secret"
    secret.write_text("secret")
    os.symlink(secret, os.path.join(folder.path, "link"))
    os.symlink(tmp_path, os.path.join(folder.path, "way"))
    for name in ("link", "way/secret", "./link", "./way/secret"):
        with pytest.raises(DataError, match="link"):
            folder.file(name)
    folder.remove("link")
    assert secret.read_text() == "secret"
    with pytest.raises(DataError, match="link"):
        folder.remove("way/secret")


def test_names_and_clear(tmp_path):
    folder = SharedFolder(str(tmp_path))
    unfinished, others = f".run.a.3.{'0af' * 5}1", f".other.1.{'0' * 16}"
    for name in ("run.a.1", "run.a.2", "run.b.1", "run.a.x", "other.1", unfinished, others):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "run.a.4").mkdir()
    (tmp_path / "run.a.5").symlink_to("other.1")
    assert folder.names("run.") == ["run.a.1", "run.a.2", "run.a.x", "run.b.1"]
    removed = folder.clear(re.compile(r"run\.a\.[0-9]"), keep={"run.a.2"})
    assert sorted(removed) == [unfinished, "run.a.1"]
    assert folder.names() == ["other.1", "run.a.2", "run.a.x", "run.b.1"]
    assert sorted(os.listdir(tmp_path)) == sorted([others, "run.a.4", "run.a.5", *folder.names()])


def test_removing_twice_is_no_error_and_what_cannot_be_removed_is_named(tmp_path):
    folder = SharedFolder(str(tmp_path))
    folder.remove("nothing")
    (tmp_path / "full").mkdir()
    with pytest.raises(CheckpointWriteError, match="full"):
        folder.remove("full")


def test_a_folder_that_cannot_be_made_names_the_cause(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file/data.*Not a directory"):
        SharedFolder(str(tmp_path / "file" / "data"))


def test_a_folder_that_was_removed_is_empty(tmp_path):
    folder = SharedFolder(str(tmp_path / "data"))
    os.rmdir(folder.path)
    assert folder.names() == folder.clear(re.compile(".*")) == []
