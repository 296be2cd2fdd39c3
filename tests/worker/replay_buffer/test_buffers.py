"""What all buffer types promise."""

import threading

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.utils import BUFFER_REGISTRY
from ding.utils.errors import CheckpointError, DataError
from ding.worker import DequeBufferWrapper, IBuffer, create_buffer, get_buffer_cls

TYPES = ["naive", "advanced", "deque", "elastic"]


def row(i):
    return {
        "obs": torch.full((4,), float(i)),
        "action": torch.tensor(i),
        "reward": torch.tensor([float(i)]),
        "done": i % 7 == 0,
        "collect_iter": i,
    }


def columns(start, stop):
    n = np.arange(start, stop)
    return Columns(
        {
            "obs": torch.from_numpy(np.repeat(n[:, None], 4, 1).astype(np.float32)),
            "action": torch.from_numpy(n),
            "reward": torch.from_numpy(n[:, None].astype(np.float32)),
            "done": n % 7 == 0,
            "collect_iter": n,
        }
    )


def objects(start, stop):
    return [{"data_id": f"sample_{i}", "collect_iter": i} for i in range(start, stop)]


KINDS = {"rows": lambda a, b: [row(i) for i in range(a, b)], "columns": columns, "objects": objects}


@pytest.fixture
def make():
    made = []

    def build(type, **cfg):
        made.append(create_buffer(EasyDict(type=type, replay_buffer_size=10, **cfg)))
        return made[-1]

    yield build
    for buffer in made:
        buffer.close()


def ids(data):
    return [r["collect_iter"] for r in data]


@pytest.mark.parametrize("type", [*TYPES, "sequence", "episode"])
def test_is_a_registered_ibuffer_with_defaults(type, make):
    buffer = make(type)
    assert isinstance(buffer, IBuffer)
    assert type in BUFFER_REGISTRY
    cls = get_buffer_cls(EasyDict(type=type))
    assert cls.default_config().cfg_type == f"{cls.__name__}Dict"
    cls.default_config().replay_buffer_size = 3
    assert cls.default_config().replay_buffer_size != 3


def test_deque_wrapper_is_found_by_its_import_name(make):
    buffer = make("deque", import_names=["ding.data.buffer.deque_buffer_wrapper"])
    assert isinstance(buffer, DequeBufferWrapper)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("type", TYPES)
class TestRing:
    def test_push_and_sample(self, type, kind, make):
        buffer = make(type)
        buffer.push(KINDS[kind](0, 6), 0)
        assert (buffer.count(), buffer.push_count, buffer.replay_buffer_size) == (6, 6, 10)
        assert sorted(ids(buffer.sample(6, 0))) == list(range(6))

    def test_the_oldest_are_replaced(self, type, kind, make):
        buffer = make(type)
        for start in range(0, 28, 4):
            buffer.push(KINDS[kind](start, start + 4), 0)
        assert sorted(ids(buffer.sample(10, 0))) == list(range(18, 28))
        assert buffer.count() == 10

    def test_a_list_longer_than_the_ring_leaves_its_end(self, type, kind, make):
        buffer = make(type)
        buffer.push(KINDS[kind](0, 3), 0)
        buffer.push(KINDS[kind](3, 28), 0)
        assert sorted(ids(buffer.sample(10, 0))) == list(range(18, 28))
        assert (buffer.count(), buffer.push_count) == (10, 28)

    def test_clear_counts_from_zero(self, type, kind, make):
        buffer = make(type)
        buffer.push(KINDS[kind](0, 6), 0)
        buffer.clear()
        assert (buffer.count(), buffer.push_count) == (0, 0)
        assert buffer.sample(1, 0) is None
        buffer.push(KINDS["rows"](0, 2), 0)
        assert (buffer.count(), buffer.push_count) == (2, 2)
        assert sorted(ids(buffer.sample(2, 0))) == [0, 1]

    def test_single_items(self, type, kind, make):
        buffer = make(type)
        for i in range(13):
            buffer.push(next(iter(KINDS[kind](i, i + 1))), 0)
        assert sorted(ids(buffer.sample(10, 0))) == list(range(3, 13))

    def test_sample_range_counts_valid_items_from_the_oldest(self, type, kind, make):
        buffer = make(type)
        buffer.push(KINDS[kind](0, 5), 0)
        assert sorted(ids(buffer.sample(3, 0, sample_range=slice(-3, None)))) == [2, 3, 4]
        buffer.push(KINDS[kind](5, 13), 0)
        assert sorted(ids(buffer.sample(3, 0, sample_range=slice(-3, None)))) == [10, 11, 12]
        assert sorted(ids(buffer.sample(2, 0, sample_range=slice(0, 2)))) == [3, 4]
        assert buffer.sample(4, 0, sample_range=slice(-3, None)) is None

    def test_too_few_items(self, type, kind, make, capsys):
        buffer = make(type)
        assert buffer.sample(1, 0) is None
        buffer.push(KINDS[kind](0, 3), 0)
        for _ in range(5):
            assert buffer.sample(4, 0) is None
        # Asking again in vain does not fill the log.
        assert capsys.readouterr().out.count("sample refused") == 1

    def test_what_is_sampled_may_be_changed(self, type, kind, make):
        buffer = make(type)
        buffer.push(KINDS[kind](0, 2), 0)
        for r in buffer.sample(2, 0):
            r["collect_iter"] = 99
            r["new"] = 1
        again = list(buffer.sample(2, 0))
        assert sorted(ids(again)) == [0, 1]
        assert not any("new" in r for r in again)

    def test_state_goes_on_bit_for_bit(self, type, kind, make):
        buffer, other = make(type), make(type)
        buffer.push(KINDS[kind](0, 17), 0)
        buffer.sample(5, 20)
        state = buffer.state_dict()
        buffer.sample(5, 20)
        buffer.load_state_dict(state)
        other.load_state_dict(state)
        for step in range(4):
            for b in (buffer, other):
                b.push(KINDS[kind](17 + step, 18 + step), 0)
            assert str(list(buffer.sample(5, 20))) == str(list(other.sample(5, 20)))
        assert other.push_count == buffer.push_count == 21

    def test_state_into_another_size_keeps_the_newest(self, type, kind, make):
        buffer = make(type)
        buffer.push(KINDS[kind](0, 17), 0)
        small = create_buffer(EasyDict(type=type, replay_buffer_size=4))
        large = create_buffer(EasyDict(type=type, replay_buffer_size=12))
        for other in (small, large):
            other.load_state_dict(buffer.state_dict())
            other.push(KINDS[kind](17, 18), 0)
        assert sorted(ids(small.sample(4, 20))) == [14, 15, 16, 17]
        assert sorted(ids(large.sample(11, 20))) == list(range(7, 18))
        small.close()
        large.close()

    def test_save_and_load_data(self, type, kind, make, tmp_path):
        buffer, other = make(type), make(type)
        buffer.push(KINDS[kind](0, 17), 0)
        buffer.save_data(str(tmp_path / "data.pt"))
        other.load_data(str(tmp_path / "data.pt"))
        assert sorted(ids(other.sample(10, 0))) == list(range(7, 17))
        other.push(KINDS[kind](17, 18), 0)
        assert 7 not in ids(other.sample(10, 0))


@pytest.mark.parametrize("type", TYPES)
class TestColumns:
    def test_columns_stay_columns_of_their_kind(self, type, make):
        buffer = make(type)
        buffer.push(columns(0, 8), 0)
        batch = buffer.sample(4, 0)
        assert isinstance(batch, Columns)
        assert batch.is_columnar
        assert batch.columns["obs"].dtype is torch.float32
        assert batch.columns["obs"].shape == (4, 4)
        assert isinstance(batch.columns["done"], np.ndarray)
        assert torch.equal(batch.columns["obs"][:, 0].long(), batch.columns["action"])

    def test_pushing_does_not_turn_the_callers_columns_into_rows(self, type, make):
        buffer, batch = make(type), columns(0, 8)
        buffer.push(batch, 0)
        assert batch.is_columnar
        batch.columns["obs"].fill_(-1)
        assert buffer.sample(8, 0).columns["obs"].min() >= 0

    def test_columns_and_rows_mix(self, type, make):
        buffer = make(type)
        buffer.push(columns(0, 4), 0)
        buffer.push([row(i) for i in range(4, 6)], 0)
        buffer.push(row(6), 0)
        batch = buffer.sample(7, 0)
        assert isinstance(batch, Columns)
        assert batch.is_columnar
        assert sorted(ids(batch)) == list(range(7))

    def test_an_item_of_another_kind_loses_nothing(self, type, make):
        buffer = make(type)
        buffer.push(columns(0, 4), 0)
        buffer.push({"collect_iter": 4, "info": "text"}, 0)
        buffer.push(columns(5, 8), 0)
        batch = buffer.sample(8, 0)
        assert sorted(ids(batch)) == list(range(8))
        found = next(r for r in batch if r["collect_iter"] == 3)
        assert torch.equal(found["obs"], torch.full((4,), 3.0))
        assert found["done"] is False

    def test_numbers_of_other_precision_widen_the_column(self, type, make):
        buffer = make(type)
        buffer.push([{"collect_iter": 0, "reward": 0}, {"collect_iter": 1, "reward": 1}], 0)
        buffer.push({"collect_iter": 2, "reward": 0.5}, 0)
        buffer.push({"collect_iter": 3, "reward": 2}, 0)
        batch = buffer.sample(4, 0)
        assert batch.is_columnar
        assert sorted(r["reward"] for r in batch) == [0, 0.5, 1, 2]

    def test_a_shape_that_would_broadcast_is_not_broadcast(self, type, make):
        buffer = make(type)
        buffer.push({"collect_iter": 0, "obs": np.arange(3.0)}, 0)
        buffer.push({"collect_iter": 1, "obs": np.array([7.0])}, 0)
        shapes = {r["collect_iter"]: r["obs"].shape for r in buffer.sample(2, 0)}
        assert shapes == {0: (3,), 1: (1,)}

    def test_nested_columns(self, type, make):
        buffer = make(type)
        for i in range(12):
            buffer.push(
                {"collect_iter": i, "obs": {"a": torch.tensor([i]), "b": {"c": np.ones(2) * i}}}, 0
            )
        batch = buffer.sample(5, 0)
        assert batch.is_columnar
        for r in batch:
            assert r["obs"]["a"].item() == r["obs"]["b"]["c"][0] == r["collect_iter"]

    def test_bfloat16_and_gradients(self, type, make):
        buffer = make(type)
        value = torch.arange(8, dtype=torch.bfloat16).requires_grad_()
        buffer.push(Columns({"collect_iter": np.arange(8), "x": value}), 0)
        batch = buffer.sample(8, 0).columns
        assert batch["x"].dtype is torch.bfloat16
        assert not batch["x"].requires_grad
        assert batch["x"].tolist() == batch["collect_iter"].tolist()

    def test_memory_mapped(self, type, make, tmp_path):
        buffer = make(type, memmap_path=str(tmp_path / "map"))
        buffer.push(columns(0, 15), 0)
        assert sorted(ids(buffer.sample(10, 0))) == list(range(5, 15))
        # The files have no names, so nothing is left even if the process is killed.
        assert list((tmp_path / "map").iterdir()) == []

    def test_threads(self, type, make):
        buffer = make(type)
        buffer.push(columns(0, 10), 0)
        failures, stop = [], threading.Event()

        def run(step):
            try:
                while not stop.is_set():
                    step()
            except Exception as error:
                failures.append(error)

        def sample():
            batch = buffer.sample(4, 0)
            if batch is not None:
                cols = batch.columns
                assert torch.equal(cols["obs"][:, 0].long(), cols["action"])
                buffer.update({**cols, "priority": np.random.rand(4)} if type == "advanced" else {})

        steps = [lambda: buffer.push(columns(5, 9), 0), sample, sample, buffer.clear]
        threads = [threading.Thread(target=run, args=(step,)) for step in steps]
        for thread in threads:
            thread.start()
        stop.wait(0.3)
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []


@pytest.mark.parametrize("type", ["naive", "elastic"])
def test_two_samples_of_one_item_are_independent(type, make):
    buffer = make(type)
    buffer.push({"x": [torch.zeros(2)], "s": "text"}, 0)
    first, second = buffer.sample(2, 0, replace=True)
    first["x"][0] += 1
    first["x"].append(3)
    assert second["x"][0].sum() == 0
    assert len(second["x"]) == 1


@pytest.mark.parametrize("type", TYPES)
class TestObjects:
    def test_deepcopy(self, type, make):
        buffer = make(type, deepcopy=True)
        stored = {"x": np.zeros(2), "s": "text"}
        buffer.push(stored, 0)
        buffer.sample(1, 0)[0]["x"] += 1
        assert stored["x"].sum() == 0

    def test_used_data_files_are_removed(self, type, make, tmp_path):
        files = [tmp_path / f"{i}" for i in range(14)]
        for file in files:
            file.touch()
        buffer = make(type, enable_track_used_data=True)
        buffer.start()
        buffer.start()
        for file in files[:4]:
            buffer.push({"data_id": str(file)}, 0)
        buffer.push([{"data_id": str(file)} for file in files[4:]], 0)
        buffer.push({"other": None}, 0)
        assert buffer.count() == 10
        buffer.close()
        buffer.close()
        assert not any(file.exists() for file in files)


class TestEnd:
    @pytest.mark.parametrize("type", TYPES)
    def test_a_given_writer_is_left_open(self, type):
        class Writer:
            closed, flushed = False, 0

            def add_scalar(self, *args):
                pass

            def flush(self):
                self.flushed += 1

            def close(self):
                self.closed = True

        writer = Writer()
        create_buffer(EasyDict(type=type, replay_buffer_size=2), tb_logger=writer).close()
        assert not writer.closed
        assert writer.flushed

    @pytest.mark.parametrize("type", TYPES)
    def test_nothing_is_written_before_there_is_something_to_say(self, type, make, tmp_path):
        buffer = make(type)
        buffer.push(columns(0, 5), 0)
        buffer.sample(3, 0)
        assert list(tmp_path.iterdir()) == []

    def test_a_constructor_that_raises_leaves_no_noise(self, capsys):
        with pytest.raises(DataError, match="replay_buffer_size"):
            create_buffer(EasyDict(type="naive", replay_buffer_size=0))
        assert capsys.readouterr().err == ""


def test_same_seed_same_samples(make):
    def run():
        np.random.seed(3)
        buffer = make("naive")
        buffer.push(columns(0, 10), 0)
        return [ids(buffer.sample(4, 0)) for _ in range(3)]

    assert run() == run()


def test_a_damaged_file_is_named(make, tmp_path):
    file = tmp_path / "data.pt"
    make("naive").save_data(str(file))
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(CheckpointError, match=r"data\.pt"):
        make("naive").load_data(str(file))
    with pytest.raises(FileNotFoundError):
        make("naive").load_data(str(tmp_path / "none.pt"))


def test_a_failed_save_leaves_the_previous_file(make, tmp_path):
    file = str(tmp_path / "data.pt")
    buffer = make("naive")
    buffer.push(columns(0, 3), 0)
    buffer.save_data(file)
    buffer.push({"what": object()}, 0)
    with pytest.raises(TypeError):
        buffer.save_data(file)
    other = make("naive")
    other.load_data(file)
    assert other.count() == 3


@pytest.mark.parametrize("type", ["naive", "advanced"])
@pytest.mark.parametrize("priorities", [[1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]])
def test_a_batch_of_nothing_is_empty(make, type, priorities):
    buffer = make(type)
    buffer.push([{"obs": [0.0], "priority": priority} for priority in priorities], 1)
    assert len(buffer.sample(0, 0)) == 0


@pytest.mark.parametrize("type", ["advanced", "deque"])
@pytest.mark.parametrize("nothing", [[], columns(0, 3)[:0]])
def test_to_push_nothing_changes_nothing(make, type, nothing):
    buffer = make(type, priority=True)
    buffer.push(columns(0, 3), 0)
    data = buffer.sample(3, 0)
    given = {
        name: [row[name] for row in data] for name in ("replay_unique_id", "replay_buffer_idx")
    }
    buffer.update({**given, "priority": [1.0, 2.0, 3.0]})
    buffer.push(nothing, 0)
    assert buffer.count() == 3
    assert sorted(buffer.item_facts()["priority"]) == [1, 2, 3]


@pytest.mark.parametrize("kind", ["naive", "advanced", "deque"])
def test_columns_that_are_no_numbers_are_stored_and_stay_columns(kind):
    buffer = create_buffer(EasyDict(type=kind, replay_buffer_size=4), tb_logger=object())
    pushed = Columns({"x": np.array([None, "text"], object), "y": np.arange(2)})
    buffer.push(pushed, 0)
    assert pushed.is_columnar
    assert {row["x"] for row in buffer.sample(2, 0)} == {None, "text"}
    buffer.close()


@pytest.mark.parametrize("kind", ["naive", "advanced", "deque"])
def test_columns_that_became_rows_are_stored_as_columns(kind):
    buffer = create_buffer(EasyDict(type=kind, replay_buffer_size=4), tb_logger=object())
    pushed = columns(0, 3)
    pushed[0]["reward"] += 1
    buffer.push(pushed, 0)
    assert isinstance(buffer.sample(2, 0), Columns)
    buffer.close()
