"""The key of a run: secret, and the same for all parts."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from ding.utils.errors import ConfigError
from ding.utils.run_claims import KEY_VARIABLE, make_run_key, read_run_key, remove_run_key


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


def test_a_new_key_is_readable_by_its_owner_alone():
    before = os.umask(0)
    try:
        key = make_run_key("exp")
    finally:
        os.umask(before)
    assert len(key) >= 40
    assert stat.S_IMODE(os.stat("exp/run.key").st_mode) == 0o600
    assert make_run_key("exp") == read_run_key("exp") == key
    assert make_run_key("other") != key


def test_parts_that_start_at_once_agree():
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(make_run_key, ["exp"] * 8))
    assert len(keys) == 1


def test_the_environment_comes_first(monkeypatch):
    make_run_key("exp")
    monkeypatch.setenv(KEY_VARIABLE, "a key from elsewhere " + "x" * 20)
    assert read_run_key("exp") == make_run_key("exp") == "a key from elsewhere " + "x" * 20


def test_no_key():
    assert read_run_key("exp") is None
    remove_run_key("exp")
    make_run_key("exp")
    remove_run_key("exp")
    assert read_run_key("exp") is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_can_read_is_refused(mode):
    make_run_key("exp")
    os.chmod("exp/run.key", mode)
    with pytest.raises(ConfigError, match=rf"run\.key.*read by others \(mode {mode:04o}\)"):
        make_run_key("exp")


@pytest.mark.parametrize(
    "text", ["", "x" * 31, "with\nlines and lines and more lines", "ä" * 40, "x" * 1000]
)
def test_what_is_no_key_is_refused(text):
    os.makedirs("exp")
    fd = os.open("exp/run.key", os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(fd, text.encode())
    os.close(fd)
    with pytest.raises(ConfigError, match="holds no run key"):
        read_run_key("exp")


def test_a_link_is_not_followed():
    os.makedirs("exp")
    make_run_key("other")
    os.symlink(os.path.abspath("other/run.key"), "exp/run.key")
    with pytest.raises(ConfigError, match="cannot read the run's key"):
        read_run_key("exp")


def test_a_folder_that_cannot_be_made():
    open("file", "w").close()
    with pytest.raises(ConfigError, match="run's key"):
        make_run_key("file/exp")


def test_a_fifo_does_not_block():
    os.mkdir("run")
    os.mkfifo("run/run.key", 0o600)
    with pytest.raises(ConfigError, match="holds no run key"):
        read_run_key("run")
