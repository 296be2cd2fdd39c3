"""The file of Ray's token, which allows every reader to run code."""

import os
import stat

import pytest

from ding.utils.errors import ConfigError

pytest.importorskip("ray._private.authentication")

from ding.worker.engines import ray_cluster


@pytest.fixture
def token(tmp_path, monkeypatch):
    """Where Ray keeps its token."""
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    before = os.umask(0)
    yield tmp_path / ".ray" / "auth_token"
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_made_for_its_owner_alone(token):
    ray_cluster.secure_token()
    assert mode(token) == 0o600
    assert mode(token.parent) == 0o700
    assert len(token.read_text()) == 64
    content = token.read_text()
    ray_cluster.secure_token()
    assert token.read_text() == content


def test_one_that_others_can_read_is_closed_with_a_line(token, caplog):
    token.parent.mkdir()
    token.write_text("x" * 64)
    assert mode(token) == 0o666
    ray_cluster.secure_token()
    assert mode(token) == 0o600
    assert [r.getMessage().count("0666") for r in caplog.records] == [1]


@pytest.mark.parametrize(
    ("name", "value"),
    [("RAY_AUTH_TOKEN", "x"), ("RAY_AUTH_TOKEN_PATH", "/x"), ("RAY_AUTH_MODE", "disabled")],
)
def test_none_is_made_where_ray_looks_elsewhere(token, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    ray_cluster.secure_token()
    assert not token.parent.exists()


def test_a_home_that_cannot_be_written_is_named(token):
    token.parent.write_text("no folder")
    with pytest.raises(ConfigError, match="auth_token"):
        ray_cluster.secure_token()
