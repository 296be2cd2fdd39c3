"""Models and objects that go from process to process by files; data sets."""

import os
import pickle
import threading

import pytest
import torch
from easydict import EasyDict

from ding.data import create_dataset
from ding.data.model_loader import FileModelLoader
from ding.data.storage_loader import FileStorageLoader
from ding.utils import DATASET_REGISTRY
from ding.utils.data import (
    NaiveRLDataset,
    create_dataset as create_dataset_too,
    offline_data_save_type,
)
from ding.utils.errors import CheckpointError, ConfigError, DingError


class TestModelLoader:
    def test_states_as_they_were_when_saved(self, tmp_path):
        model = torch.nn.Linear(2, 1)
        loader = FileModelLoader(model=model, dirname=str(tmp_path / "models"), ttl=20)
        loader.start()
        found, done = [], threading.Event()

        def keep(storage):
            found.append(storage)
            if len(found) == 2:
                done.set()

        for value in (1.0, 2.0):
            torch.nn.init.constant_(model.weight, value)
            loader.save(keep)
        torch.nn.init.constant_(model.weight, 9.0)
        assert done.wait(30)
        assert [loader.load(storage)["weight"][0, 0].item() for storage in found] == [1.0, 2.0]
        assert torch.equal(found[1].load()["bias"], model.bias)
        loader.shutdown()
        loader.shutdown()

    def test_old_files_go(self, tmp_path):
        loader = FileModelLoader(torch.nn.Linear(1, 1), str(tmp_path), ttl=0)
        loader.start()
        for _ in range(3):
            loader.save(lambda storage: None)
        loader.shutdown()
        assert len(os.listdir(tmp_path)) == 1

    def test_failures_come_out(self, tmp_path):
        loader = FileModelLoader(torch.nn.Linear(1, 1), str(tmp_path))
        with pytest.raises(RuntimeError, match="was not started"):
            loader.save(lambda storage: None)
        loader.start()
        loader.save(lambda storage: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            loader.shutdown()


class TestStorageLoader:
    def test_objects_there_and_back(self, tmp_path):
        loader = FileStorageLoader(dirname=str(tmp_path), ttl=20, worker_num=2)
        loader.start()
        storages = [loader.save({"number": i, "x": torch.ones(2) * i}) for i in range(4)]
        found = []
        for one in [loader.load(storage, found.append) for storage in storages]:
            one.result(30)
        assert sorted(obj["number"] for obj in found) == [0, 1, 2, 3]
        loader.shutdown()
        with pytest.raises(RuntimeError, match="was not started"):
            loader.load(storages[0], found.append)

    def test_what_is_too_old_is_gone(self, tmp_path):
        loader = FileStorageLoader(str(tmp_path), ttl=0)
        loader.start()
        first, _ = loader.save(1), loader.save(2)
        with pytest.raises(FileNotFoundError):
            loader.load(first, print).result(30)
        loader.shutdown()


class TestDatasets:
    ROWS = [{"obs": torch.ones(2) * i, "done": False} for i in range(3)]

    def config(self, path, **collect):
        return EasyDict(policy=dict(collect=dict(data_path=path, **collect)))

    def test_a_file_of_transitions(self):
        offline_data_save_type(exp_data=self.ROWS, expert_data_path="demo.pkl", data_type="naive")
        for data in (
            NaiveRLDataset("demo.pkl"),
            NaiveRLDataset(self.config("demo.pkl")),
            create_dataset(self.config("demo.pkl", data_type="naive")),
            create_dataset_too(self.config("demo.pkl")),
        ):
            assert len(data) == 3
            assert data[2]["obs"].tolist() == [2, 2]
        loader = torch.utils.data.DataLoader(data, batch_size=3)
        assert next(iter(loader))["obs"].shape == (3, 2)

    def test_pickles_only_when_allowed(self):
        with open("demo.pkl", "wb") as file:
            pickle.dump([{"obs": EasyDict(a=1)}], file)
        with pytest.raises(CheckpointError, match="pickle"):
            NaiveRLDataset("demo.pkl")
        assert len(create_dataset(self.config("demo.pkl", allow_pickle=True))) == 1

    def test_mistakes(self):
        with pytest.raises(ConfigError, match=r"policy\.collect\.data_path"):
            NaiveRLDataset(EasyDict(policy=dict(collect=dict())))
        with pytest.raises(DingError, match="naive"):
            create_dataset(self.config("demo.pkl", data_type="navie"))
        with pytest.raises(ConfigError, match="'csv' cannot be written"):
            offline_data_save_type([], "demo.csv", "csv")

    def test_a_type_of_a_users_own(self):
        @DATASET_REGISTRY.register("mine", force_overwrite=True)
        class Mine(NaiveRLDataset):
            def __init__(self, cfg, scale=1):
                self._data = [scale]

        assert create_dataset(self.config("-", data_type="mine"), scale=5)[0] == 5
