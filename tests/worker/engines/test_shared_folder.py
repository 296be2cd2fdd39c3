"""Stores that are folders: what differs from other engines' stores, see `test_contract`."""

import pytest

from ding.utils.errors import DataError
from ding.worker.engines.shared_folder import (
    FolderArtifacts,
    SharedFolderSamples,
)


def test_samples_are_listed_with_their_sizes(tmp_path):
    store = SharedFolderSamples(str(tmp_path))
    assert store.put("b.c0.2", [{"x": 1}]) == store.size("b.c0.2") > 0
    assert store.names() == ["b.c0.2"]


@pytest.mark.parametrize("path", ["../state", "/tmp/state", ".", "ckpt/../../state"])
def test_no_artifact_lies_elsewhere(tmp_path, path):
    artifacts = FolderArtifacts(str(tmp_path / "run"))
    with pytest.raises(DataError, match="does not lie in"):
        artifacts.save(path, {})
    with pytest.raises(DataError, match="does not lie in"):
        artifacts.load(path)
