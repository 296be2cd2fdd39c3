"""Files that a coordinator keeps for a run that is resumed."""

import errno
import os
from types import SimpleNamespace

import pytest
import torch

from ding.utils.errors import CheckpointWriteError
from ding.worker.coordinator.run_files import RunFiles
from ding.worker.engines.shared_folder import FolderArtifacts, SharedFolderWeights
from ding.worker.seams import Weights


@pytest.fixture
def engine(tmp_path):
    weights = SharedFolderWeights(str(tmp_path / "policy"))
    weights.publish("player", Weights({"model": {"w": torch.ones(2)}}, {"policy_iter": 5}))
    artifacts = FolderArtifacts(str(tmp_path / "run"))
    return SimpleNamespace(samples=None, weights=weights, artifacts=artifacts, marks={})


@pytest.mark.parametrize(("store", "method"), [("weights", "publish"), ("artifacts", "save")])
def test_weights_that_cannot_be_kept_leave_no_file(engine, tmp_path, monkeypatch, store, method):
    def full(*args):
        raise CheckpointWriteError("no space", errno.ENOSPC)

    files = RunFiles(engine, pytest.fail)
    with monkeypatch.context() as patch:
        patch.setattr(getattr(engine, store), method, full)
        with pytest.raises(CheckpointWriteError):
            files.keep_weights("player", "player_5")
    assert os.listdir(tmp_path / "policy") == ["player"]
    assert not (tmp_path / "run" / "ckpt").exists()
    files.keep_weights("player", "player_5")
    assert os.listdir(tmp_path / "run" / "ckpt") == ["kept_player_5.pth.tar"]
    engine.weights.remove("player_5")
    files.restore_weights(["player_5"])
    assert engine.weights.newest("player_5").facts == {"policy_iter": 5}
