"""Data sets in HDF5."""

import os
import sys

import numpy as np
import pytest
import torch

from ding.data import Columns, create_dataset
from ding.data.offline.hdf5_dataset import is_hdf5
from ding.data.offline.transition_dataset import transitions_of
from ding.utils import save_file
from ding.utils.data import offline_data_save_type
from ding.utils.errors import CheckpointError, CheckpointWriteError, ConfigError, DataError


def config(path, **collect):
    return {"policy": {"collect": {"data_path": str(path), "data_type": "hdf5", **collect}}}


def test_without_h5py(monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ConfigError, match=r'pip install "ding\[hdf5\]"'):
        create_dataset(config("demo.hdf5"))


class TestFiles:
    @pytest.fixture(autouse=True)
    def _h5py(self):
        self.h5py = pytest.importorskip("h5py")

    def write(self, **fields):
        with self.h5py.File("demo.hdf5", "w") as file:
            for name, values in fields.items():
                file[name] = values
        return config("demo.hdf5")

    def test_there_and_back(self):
        data = Columns(
            {
                "obs": {"a": torch.rand(4, 2), "b": torch.arange(4, dtype=torch.uint8)},
                "action": torch.tensor([[0], [1], [1], [0]]),
                "reward": np.arange(4, dtype=np.float32)[:, None],
                "next_obs": {"a": torch.rand(4, 2), "b": torch.arange(4, dtype=torch.uint8)},
                "done": np.array([False, False, True, False]),
            }
        )
        for form in (data, list(data.copy())):
            offline_data_save_type(form, "folder/demo.hdf5", "hdf5")
            read = transitions_of(create_dataset(config("folder/demo.hdf5")))
            assert torch.equal(read.column("obs")["b"], torch.arange(4, dtype=torch.uint8))
            assert read.column("action").tolist() == [[0], [1], [1], [0]]
            assert read.column("reward").tolist() == [0, 1, 2, 3]
            assert read.column("done").tolist() == [False, False, True, False]

    def test_a_path_of_another_kind_becomes_that_of_offline_configs(self):
        rows = [{"obs": np.zeros(2)}]
        for given, written in [
            ("a/expert.pkl", "a/expert_demos.hdf5"),
            ("a/expert", "a/expert_demos.hdf5"),
            ("a.b/x.y.npz", "a.b/x.y_demos.hdf5"),
            ("a/expert.h5", "a/expert.h5"),
        ]:
            offline_data_save_type(rows, given, "hdf5")
            assert is_hdf5(written)

    def test_the_beginning_tells(self):
        path = self.write(obs=np.zeros((3, 2)), action=np.zeros(3))["policy"]["collect"][
            "data_path"
        ]
        for kind in ("naive", "d4rl"):
            assert len(create_dataset(config(path, data_type=kind))) == 3

    def test_names_of_d4rl(self):
        # Two episodes: one ends, one is cut off; then the beginning of a third.
        obs = np.arange(7, dtype=np.float64)[:, None]
        cfg = self.write(
            observations=obs,
            actions=np.full((7, 1), 0.5),
            rewards=np.arange(7.0),
            terminals=np.array([0, 0, 1, 0, 0, 0, 0], bool),
            timeouts=np.array([0, 0, 0, 0, 1, 0, 0], bool),
            infos_qpos=np.zeros((3, 3)),
        )
        read = transitions_of(create_dataset(cfg))
        # What follows the cut, and the last row, is unknown.
        assert read.column("reward").tolist() == [0, 1, 2, 3, 5]
        assert read.column("obs")[:, 0].tolist() == [0, 1, 2, 3, 5]
        alive = ~read.column("done")
        assert read.column("next_obs")[alive][:, 0].tolist() == [1, 2, 4, 6]
        assert read.column("obs").dtype == read.column("action").dtype == torch.float32

    def glued(self, form):
        """Steps of episodes of at most 3: one of 3 that is cut off, one of 2 that terminates, and
        4 rows whose end is unknown."""
        fields = dict(
            observations=np.arange(9.0)[:, None],
            actions=np.zeros((9, 1)),
            rewards=np.arange(9.0),
            terminals=np.array([0, 0, 0, 0, 1, 0, 0, 0, 0], bool),
        )
        if form == "hdf5":
            cfg = self.write(**fields)
        else:
            save_file("demo.pkl", fields)
            cfg = config("demo.pkl")
            cfg["policy"]["collect"]["data_type"] = "naive"
        return transitions_of(create_dataset(cfg))

    @pytest.mark.parametrize("form", ["hdf5", "naive"])
    def test_episodes_that_may_be_glued_are_reported(self, form, caplog):
        assert len(self.glued(form)) == 8
        (record,) = caplog.records
        for part in ("demo.", "9 rows without next_observations", "1 rows", "timeouts"):
            assert part in record.getMessage()

    def test_observations_that_came_next_are_taken_as_they_are(self):
        cfg = self.write(
            observations=np.zeros((3, 2), np.float32),
            actions=np.array([1, 0, 2], np.int32),
            rewards=np.zeros(3),
            terminals=np.zeros(3),
            next_observations=np.ones((3, 2), np.float32),
        )
        read = transitions_of(create_dataset(cfg))
        assert read.column("next_obs").tolist() == [[1, 1]] * 3
        assert read.column("action").dtype == torch.int64
        assert read.column("done").dtype == bool

    def test_what_is_wrong_is_named(self, tmp_path):
        with pytest.raises(CheckpointError, match="there is no file absent"):
            create_dataset(config("absent.hdf5"))
        with pytest.raises(DataError, match=r"no transitions, but x; expected obs \(or observ"):
            create_dataset(self.write(x=np.zeros(3)))
        with pytest.raises(DataError, match=r"differ in their lengths: {'obs': 3, 'action': 2}"):
            create_dataset(self.write(obs=np.zeros((3, 1)), action=np.zeros(2)))
        with pytest.raises(DataError, match="is empty"):
            create_dataset(self.write(obs=np.zeros((0, 1)), action=np.zeros(0)))
        with pytest.raises(DataError, match="data_type='minari'"):
            create_dataset(self.write(**{"episode_0/observations": np.zeros(3)}))
        with pytest.raises(DataError, match="of one shape"):
            offline_data_save_type([{"obs": np.zeros(2)}, {"obs": np.zeros(3)}], "x.hdf5", "hdf5")
        (tmp_path / "file").touch()
        with pytest.raises(CheckpointWriteError, match="cannot write"):
            path = str(tmp_path / "file" / "demo.hdf5")
            offline_data_save_type([{"obs": np.zeros(2)}], path, "hdf5")

    # ------------------------------------------------------------------ hostile files

    def make(self, build, **fields):
        cfg = self.write(action=np.zeros(3), reward=np.zeros(3), done=np.zeros(3), **fields)
        with self.h5py.File("demo.hdf5", "a") as file:
            build(file)
        return cfg

    def refused(self, build, words):
        with pytest.raises((DataError, CheckpointError), match=words):
            create_dataset(self.make(build))

    def test_a_fifo_is_not_waited_for(self):
        os.mkfifo("demo.hdf5")
        assert not is_hdf5("demo.hdf5")
        for kind in ("hdf5", "naive", "d4rl"):
            with pytest.raises(CheckpointError, match="no regular file"):
                create_dataset(config("demo.hdf5", data_type=kind))

    @pytest.mark.parametrize("options", [{}, {"chunks": (1 << 20,)}, {"compression": "gzip"}])
    def test_more_is_declared_than_stored(self, options):
        def build(file):
            file.create_dataset("obs", (1 << 34,), np.float32, **options)

        self.refused(
            build,
            r"data set 'obs' of shape \(17179869184,\) and float32 declares 68719476736 bytes",
        )
        assert os.path.getsize("demo.hdf5") < 300_000

    def test_one_chunk_of_very_many_is_stored(self):
        def build(file):
            dataset = file.create_dataset("obs", (1 << 34,), np.float32, chunks=(1 << 10,))
            dataset[0] = 1

        self.refused(build, "declares")

    def test_a_chunk_that_inflates(self):
        def build(file):
            file.create_dataset(
                "obs", (3,), np.float32, chunks=(1 << 26,), maxshape=(None,), compression="gzip"
            )

        self.refused(build, "declares 268435456 bytes")

    def test_more_than_the_memory(self, monkeypatch):
        monkeypatch.setattr("ding.data.offline.hdf5_dataset.available_memory", lambda: 1000)
        self.refused(
            lambda file: file.create_dataset("obs", data=np.zeros((3, 100))),
            r"'obs' of shape \(3, 100\) and float64 needs 2400 bytes of memory, but 1000",
        )

    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            (["a", "b", "c"], "text"),
            (np.array([b"a", b"b", b"c"]), "text"),
            (np.zeros(3, [("x", "f4"), ("y", "i4")]), "x"),
            (np.zeros(3, np.complex64), "complex64"),
        ],
    )
    def test_what_is_no_number(self, values, kind):
        self.refused(
            lambda file: file.create_dataset("obs", data=values),
            f"data set 'obs' holds .*{kind}.*, expected numbers",
        )

    def test_nothing_outside_of_the_file_is_read(self):
        with open("secret", "wb") as file:
            file.write(bytes(range(24)))
        with self.h5py.File("other.hdf5", "w") as file:
            file["obs"] = np.arange(3.0)

        def external(file):
            file.create_dataset("obs", (3,), np.float64, external=[("secret", 0, 24)])

        def virtual(file):
            layout = self.h5py.VirtualLayout((3,), np.float64)
            layout[:] = self.h5py.VirtualSource("other.hdf5", "obs", (3,))
            file.create_virtual_dataset("obs", layout)

        def inner(file):
            file["obs/a"] = self.h5py.ExternalLink("other.hdf5", "obs")

        self.refused(external, "'obs' is stored in other files")
        self.refused(virtual, "'obs' is stored in other files")
        self.refused(inner, "'obs/a' is a link")
        for link in (self.h5py.ExternalLink("other.hdf5", "obs"), self.h5py.SoftLink("/action")):
            self.refused(lambda file, link=link: file.__setitem__("obs", link), "'obs' is a link")

    def test_groups_in_themselves_end(self):
        def build(file):
            group = file.create_group("obs")
            for i in range(3):
                group[str(i)] = group

        self.refused(build, "nested too deeply, or in itself")

    def test_other_things(self):
        self.refused(lambda file: file.__setitem__("obs", np.dtype("f8")), "'obs' is a type")
        self.refused(
            lambda file: file.create_dataset("obs", data=self.h5py.Empty("f4")), "'obs' is empty"
        )

    # ------------------------------------------------------------------ damages

    def written(self):
        data = {
            "obs": {"a": torch.rand(6, 2), "b": torch.arange(6, dtype=torch.uint8)},
            "action": torch.arange(6),
            "reward": np.arange(6, dtype=np.float32),
            "next_obs": {"a": torch.rand(6, 2), "b": torch.arange(6, dtype=torch.uint8)},
            "done": np.arange(6) == 5,
        }
        offline_data_save_type(Columns(data), "demo.hdf5", "hdf5")
        with open("demo.hdf5", "rb") as file:
            return file.read()

    def check_damages(self, damages):
        content = self.written()
        whole = transitions_of(create_dataset(config("demo.hdf5")))
        for place, bit in damages(len(content)):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            with open("demo.hdf5", "wb") as file:
                file.write(changed)
            try:
                read = transitions_of(create_dataset(config("demo.hdf5")))
            except (DataError, CheckpointError):
                continue
            assert all(
                torch.equal(torch.as_tensor(read.column(name)), torch.as_tensor(column))
                for name, column in whole.columns.items()
                if not isinstance(column, dict)
            ), place
            for name in ("obs", "next_obs"):
                for part in ("a", "b"):
                    assert torch.equal(read.column(name)[part], whole.column(name)[part]), place

    def test_flipped_bits_are_found_or_harmless(self):
        self.check_damages(lambda size: [(i, i % 8) for i in range(0, size, size // 150)])

    @pytest.mark.slow
    @pytest.mark.timeout(180)  # it reads some ten thousand files
    def test_a_flipped_bit_in_each_byte_is_found_or_harmless(self):
        self.check_damages(lambda size: [(i, (i * 5) % 8) for i in range(size)])

    def test_other_programs_find_damages_as_well(self):
        self.written()
        with self.h5py.File("demo.hdf5") as file:
            assert file["action"].fletcher32

    @pytest.mark.parametrize("kept", [0.0, 0.5, 0.9])
    def test_a_truncated_file(self, kept, tmp_path):
        self.write(obs=np.random.default_rng(0).random((5000, 4)), action=np.zeros(5000))
        with open("demo.hdf5", "r+b") as file:
            file.truncate(int(kept * file.seek(0, 2)))
        with pytest.raises(CheckpointError, match=r"cannot be read as HDF5.*cut short"):
            create_dataset(config("demo.hdf5"))
