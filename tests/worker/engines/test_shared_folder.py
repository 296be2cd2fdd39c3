"""Stores that are folders: entries are read back whole, and no name leads out of them."""

import os
import re

import numpy as np
import pytest
import torch

from ding.data import Columns
from ding.utils.errors import CheckpointNotFoundError, ChunkError, DataError
from ding.worker.engines.shared_folder import (
    FolderArtifacts,
    SharedFolderSamples,
    SharedFolderWeights,
)
from ding.worker.seams import Weights


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "shared")


class TestSamples:
    def test_come_back(self, folder):
        store = SharedFolderSamples(folder)
        columns = Columns({"x": np.arange(3.0)})
        size = store.put("a", columns)
        assert size == store.size("a") > 0
        assert store.get("a").columns["x"].tolist() == [0.0, 1.0, 2.0]
        store.remove("a")
        store.remove("a")
        assert store.size("a") is None
        with pytest.raises(ChunkError, match="missing"):
            store.get("a")

    def test_clear_those_that_match(self, folder):
        store = SharedFolderSamples(folder)
        for name in ("b.c0.1", "b.c0.2", "other"):
            store.put(name, [{"x": 1}])
        assert store.clear(re.compile(r"b\..*"), keep={"b.c0.2"}) == ["b.c0.1"]
        assert store.names() == ["b.c0.2", "other"]


class TestWeights:
    def test_newest_is_what_was_published_last(self, folder):
        store = SharedFolderWeights(folder)
        assert store.version("p") is None
        with pytest.raises(CheckpointNotFoundError):
            store.newest("p")
        versions = []
        for i in range(2):
            store.publish("p", Weights({"model": {"w": torch.full((2,), float(i))}}, {"i": i}))
            versions.append(store.version("p"))
        found = store.newest("p")
        assert found.state["model"]["w"].tolist() == [1.0, 1.0]
        assert found.facts == {"i": 1}
        assert versions[0] != versions[1] == store.version("p")

    @pytest.mark.parametrize("links", [True, False])
    def test_kept_ones_are_not_replaced(self, folder, monkeypatch, links):
        def no_links(*args):
            raise PermissionError

        if not links:
            monkeypatch.setattr(os, "link", no_links)
        store = SharedFolderWeights(folder)
        store.publish("p", Weights({"n": 1}, {}))
        assert store.keep("p", "p.kept")
        assert not store.keep("q", "q.kept")
        store.publish("p", Weights({"n": 2}, {}))
        assert store.newest("p.kept").state == {"n": 1}
        store.remove("p.kept")
        store.remove("p.kept")
        assert store.version("p.kept") is None


class TestArtifacts:
    def test_come_back(self, tmp_path):
        artifacts = FolderArtifacts(str(tmp_path / "run"))
        assert artifacts.load("ckpt/state.pth.tar") is None
        artifacts.save("ckpt/state.pth.tar", {"n": 1})
        assert artifacts.load("ckpt/state.pth.tar") == {"n": 1}
        assert (tmp_path / "run/ckpt/state.pth.tar").exists()

    @pytest.mark.parametrize("path", ["../state", "/tmp/state", ".", "ckpt/../../state"])
    def test_none_lies_elsewhere(self, tmp_path, path):
        artifacts = FolderArtifacts(str(tmp_path / "run"))
        with pytest.raises(DataError, match="does not lie in"):
            artifacts.save(path, {})
        with pytest.raises(DataError, match="does not lie in"):
            artifacts.load(path)
