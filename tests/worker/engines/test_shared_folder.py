"""Stores that are folders: what differs from other engines' stores, see `test_contract`."""

import os

import pytest

from ding.utils.errors import DataError
from ding.worker.engines.shared_folder import (
    FolderArtifacts,
    SharedFolderSamples,
    SharedFolderWeights,
)
from ding.worker.seams import Weights


def test_samples_are_listed_with_their_sizes(tmp_path):
    store = SharedFolderSamples(str(tmp_path))
    assert store.put("b.c0.2", [{"x": 1}]) == store.size("b.c0.2") > 0
    assert store.names() == ["b.c0.2"]


def test_kept_weights_are_not_replaced_where_there_are_no_links(tmp_path, monkeypatch):
    def no_links(*args):
        raise PermissionError

    monkeypatch.setattr(os, "link", no_links)
    store = SharedFolderWeights(str(tmp_path))
    store.publish("p", Weights({"n": 1}, {}))
    assert store.keep("p", "p.kept")
    assert not store.keep("q", "q.kept")
    store.publish("p", Weights({"n": 2}, {}))
    assert store.newest("p.kept").state == {"n": 1}


@pytest.mark.parametrize("path", ["../state", "/tmp/state", ".", "ckpt/../../state"])
def test_no_artifact_lies_elsewhere(tmp_path, path):
    artifacts = FolderArtifacts(str(tmp_path / "run"))
    with pytest.raises(DataError, match="does not lie in"):
        artifacts.save(path, {})
    with pytest.raises(DataError, match="does not lie in"):
        artifacts.load(path)
