import builtins
import errno
import multiprocessing
import os
import pickle
import random
from collections import OrderedDict, deque

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.utils import file_helper, get_file_lock, read_file, read_from_path, remove_file, save_file
from ding.utils.errors import CheckpointError, CheckpointNotFoundError, CheckpointWriteError
from ding.utils.file_helper import open_to_write, write_atomically, write_secret
from ding.utils.log_file import AppendFile, redirect_output

PLAIN = {
    "none": None,
    "numbers": [1, -2.5, True, 1 + 2j, 2**127],
    "text": "ä",
    "bytes": b"\x00\xff",
    "tuple": (1, ("a", [2])),
    "nested": {1: {"x": {}}, (0, 1): "tuple key"},
    "ordered": OrderedDict(b=1, a=2),
    "set": {1, 2},
    "easy": EasyDict(a={"b": 1}),
    "__ding__": "a custom key",
}


def same(a, b):
    if isinstance(a, np.ndarray) and a.dtype == object:
        return same(a.tolist(), b.tolist())
    if isinstance(a, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple | deque):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("key", PLAIN)
def test_plain_data_comes_back_as_it_was(key, tmp_path):
    path = str(tmp_path / "data.pth.tar")
    save_file(path, {key: PLAIN[key]})
    assert same(read_file(path), {key: PLAIN[key]})
    assert read_from_path(path).keys() == {key}


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::2],
        np.zeros((0, 3), np.int64),
        np.array(3.5, np.float16),
        np.array([True, False]),
        np.array([1, 2], np.uint16),
        np.array(["a", "bcd"]),
        np.array([("x", 1.5)], dtype=[("name", "U4"), ("value", "f8")]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.array([{"a": np.ones(2)}, None], dtype=object),
        np.float32(1.5),
        np.int64(7),
        np.bool_(True),
        torch.arange(6).reshape(2, 3).T,
        torch.tensor(1.5, dtype=torch.bfloat16),
        torch.zeros(0, 4),
        deque([1, (2, np.ones(1))], maxlen=5),
    ],
    ids=lambda v: f"{type(v).__name__}-{getattr(v, 'dtype', '')}",
)
def test_arrays_scalars_tensors_and_deques_come_back_as_they_were(value, tmp_path):
    save_file(str(tmp_path / "x"), [value])
    (back,) = read_file(str(tmp_path / "x"))
    assert same(back, value)
    assert getattr(back, "maxlen", None) == getattr(value, "maxlen", None)


@pytest.mark.parametrize("change", [None, "key", "dtype", "shape", "kind", "object"])
def test_many_rows_come_back_as_rows(change, tmp_path):
    rows = [
        {
            "obs": {"a": torch.full((3,), float(i)), "b": np.full(2, i)},
            "done": i == 19,
            "reward": [torch.ones(1)],
            "info": None,
            3: np.float32(i),
            "no dimension": np.array(i),
        }
        for i in range(20)
    ]
    odd = {
        "key": {"more": 1},
        "dtype": {"obs": {"a": torch.ones(3, dtype=torch.int64), "b": np.ones(2)}},
        "shape": {"obs": {"a": torch.ones(4), "b": np.ones(3, np.int64)}},
        "kind": {"obs": None},
        "object": {"obs": {"a": torch.ones(3), "b": np.array([None, {}], dtype=object)}},
    }
    if change:
        rows[7] = {**rows[7], **odd[change]}
    save_file(str(tmp_path / "rows"), {"items": rows, "few": rows[:3]})
    back = read_file(str(tmp_path / "rows"))
    assert same(back, {"items": rows, "few": rows[:3]})
    back["items"][0]["done"] = "changed"
    assert back["items"][1]["done"] is False


def test_loaded_arrays_can_be_written_to(tmp_path):
    save_file(str(tmp_path / "x"), np.zeros(3))
    back = read_file(str(tmp_path / "x"))
    back += 1
    assert back.tolist() == [1, 1, 1]


def test_random_states_go_on_where_they_were(tmp_path):
    path = str(tmp_path / "rng")
    generator = np.random.default_rng(3)
    save_file(
        path,
        {
            "python": random.getstate(),
            "numpy": np.random.get_state(),
            "generator": generator.bit_generator.state,
            "torch": torch.get_rng_state(),
        },
    )
    draw = lambda: (random.random(), np.random.rand(), generator.random(), torch.rand(1).item())  # noqa: E731
    first = draw()
    state = read_file(path)
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    generator.bit_generator.state = state["generator"]
    torch.set_rng_state(state["torch"])
    assert draw() == first


def test_a_view_does_not_drag_its_whole_storage_along(tmp_path):
    save_file(str(tmp_path / "x"), {"row": torch.zeros(100_000, 4)[0]})
    assert (tmp_path / "x").stat().st_size < 10_000


def test_unstorable_data_is_named_by_its_place_and_leaves_the_old_file(tmp_path):
    path = str(tmp_path / "x")
    save_file(path, 1)
    with pytest.raises(TypeError, match=r"data\['meta'\]\[1\]\['fn'\] is a builtins.function"):
        save_file(path, {"meta": [0, {"fn": lambda: 0}]})
    assert read_file(path) == 1
    assert os.listdir(tmp_path) == ["x"]


class Bomb:
    def __reduce__(self):
        return builtins.exec, ("raise SystemExit('executed')",)


@pytest.mark.parametrize("write", ["pickle", "torch"])
def test_loading_never_executes(write, tmp_path):
    path = tmp_path / "bomb"
    if write == "pickle":
        path.write_bytes(pickle.dumps(Bomb()))
    else:
        torch.save(Bomb(), path)
    with pytest.raises(CheckpointError, match="DING_ALLOW_PICKLE"):
        read_file(str(path))


def test_old_pickled_checkpoints_by_explicit_opt_in(tmp_path, monkeypatch):
    path = str(tmp_path / "old")
    torch.save({"x": OrderedDict(a=np.float64(1.0))}, path, pickle_protocol=2)
    assert read_file(path, allow_pickle=True) == {"x": {"a": 1.0}}
    monkeypatch.setenv("DING_ALLOW_PICKLE", "1")
    assert read_file(path) == {"x": {"a": 1.0}}
    (tmp_path / "raw.pkl").write_bytes(pickle.dumps([1, np.ones(2)]))
    assert read_file(str(tmp_path / "raw.pkl"))[1].tolist() == [1, 1]


@pytest.mark.parametrize("keep", [0, 3, 100, 0.5, 0.99])
def test_truncated_file_is_named(keep, tmp_path):
    path = tmp_path / "cut.pth.tar"
    save_file(str(path), {"model": torch.ones(1000)})
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    with pytest.raises(CheckpointError, match=r"cut\.pth\.tar"):
        read_file(str(path))


def _flip(path, bit):
    with open(path, "r+b") as stream:
        stream.seek(bit // 8)
        (byte,) = stream.read(1)
        stream.seek(bit // 8)
        stream.write(bytes([byte ^ 1 << bit % 8]))


def test_every_flipped_bit_is_found(tmp_path):
    path = str(tmp_path / "ckpt.pth.tar")
    save_file(path, {"model": {"w": torch.randn(5)}, "last_iter": 3})
    for bit in range(8 * os.path.getsize(path)):
        if bit % 7 == 0 or bit > 8 * (os.path.getsize(path) - 40):
            _flip(path, bit)
            with pytest.raises(CheckpointError, match=r"ckpt\.pth\.tar"):
                read_file(path)
            _flip(path, bit)
    assert read_file(path)["last_iter"] == 3


def test_a_damaged_file_is_not_unpickled_either(tmp_path):
    path = str(tmp_path / "ckpt.pth.tar")
    save_file(path, torch.ones(1000))
    _flip(path, 8 * 2000)
    with pytest.raises(CheckpointError, match="damaged"):
        read_file(path, allow_pickle=True)


def test_plain_torch_load_reads_what_is_saved_here(tmp_path):
    save_file(str(tmp_path / "x"), {"model": {"w": torch.arange(3)}, "last_iter": 7})
    for options in ({}, {"mmap": True}):
        state = torch.load(tmp_path / "x", weights_only=True, **options)
        assert state["last_iter"] == 7
        assert state["model"]["w"].tolist() == [0, 1, 2]


def test_damaged_tensors_of_plain_torch_save_are_found(tmp_path):
    path = tmp_path / "x"
    torch.save({"w": torch.arange(1000)}, path)
    _flip(str(path), 8 * path.read_bytes().index((500).to_bytes(8, "little")))
    with pytest.raises(CheckpointError, match="damaged"):
        read_file(str(path))


def test_files_of_the_old_torch_save_are_read(tmp_path):
    torch.save({"w": torch.ones(2)}, tmp_path / "x", _use_new_zipfile_serialization=False)
    assert same(read_file(str(tmp_path / "x")), {"w": torch.ones(2)})


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, make):
    make(tmp_path / "odd")
    with pytest.raises(CheckpointError, match="odd: it is no regular file"):
        read_file(str(tmp_path / "odd"))


def test_damaged_and_foreign_files(tmp_path):
    (tmp_path / "text").write_text("not a checkpoint at all")
    with pytest.raises(CheckpointError, match="text is a text file, not a checkpoint"):
        read_file(str(tmp_path / "text"))
    with pytest.raises(CheckpointError, match="cannot be unpickled either"):
        read_file(str(tmp_path / "text"), allow_pickle=True)
    with pytest.raises(CheckpointError, match="cannot read"):
        read_file(str(tmp_path))


def test_missing_file_is_also_a_file_not_found_error(tmp_path):
    with pytest.raises(CheckpointNotFoundError, match="gone") as caught:
        read_file(str(tmp_path / "gone"))
    assert isinstance(caught.value, FileNotFoundError)
    remove_file(str(tmp_path / "gone"))


def test_remove_file(tmp_path):
    save_file(str(tmp_path / "a/b/x"), 1)
    remove_file(str(tmp_path / "a/b/x"))
    assert os.listdir(tmp_path / "a/b") == []
    with pytest.raises(CheckpointWriteError, match="cannot remove"):
        remove_file(str(tmp_path / "a"))


def test_full_disk_keeps_the_previous_file_and_leaves_no_other(tmp_path, monkeypatch):
    path = str(tmp_path / "ckpt")
    save_file(path, "old")

    def no_space(fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(CheckpointWriteError, match=r"ckpt: No space left") as caught:
        save_file(path, "new")
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert read_file(path) == "old"
    assert os.listdir(tmp_path) == ["ckpt"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_disk_that_fills_up_in_the_middle_of_writing(tmp_path, monkeypatch):
    real = file_helper.NotedFile

    def full(handle, path, durable):
        with open("/dev/full", "wb") as target:
            os.dup2(target.fileno(), handle)
        return real(handle, path, durable)

    monkeypatch.setattr(file_helper, "NotedFile", full)
    with pytest.raises(CheckpointWriteError, match="No space left"):
        save_file(str(tmp_path / "x"), torch.ones(1_000_000))
    assert os.listdir(tmp_path) == []


def _write_and_wait(path, ready, forever):
    def write(stream):
        stream.write(b"half")
        stream.flush()
        ready.set()
        forever.wait()

    write_atomically(path, write)


@pytest.fixture
def writer(tmp_path):
    """A process that is writing ``iteration_3.pth.tar``; its temporary file looks old."""
    context = multiprocessing.get_context("fork")
    ready, forever = context.Event(), context.Event()
    path = str(tmp_path / "iteration_3.pth.tar")
    process = context.Process(target=_write_and_wait, args=(path, ready, forever))
    process.start()
    assert ready.wait(30)
    (name,) = os.listdir(tmp_path)
    os.utime(tmp_path / name, (0, 0))
    yield process, name
    process.kill()
    process.join(30)


def test_what_a_killed_writer_left_is_removed_at_the_next_save(tmp_path, writer):
    process, name = writer
    theirs = {".iteration_1.pth.tar.old", f".notes.{'0' * 16}", f"x.pth.tar.{'0' * 16}"}
    for other in theirs:
        (tmp_path / other).touch()
        os.utime(tmp_path / other, (0, 0))
    save_file(str(tmp_path / "ckpt_best.pth.tar"), 1)
    assert set(os.listdir(tmp_path)) == {name, "ckpt_best.pth.tar", *theirs}
    process.kill()
    process.join(30)
    save_file(str(tmp_path / "ckpt_best.pth.tar"), 2)
    assert set(os.listdir(tmp_path)) == {"ckpt_best.pth.tar", *theirs}


def test_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointWriteError, match="file"):
        save_file(str(tmp_path / "file/ckpt"), 1)


def test_file_mode_follows_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        save_file(str(tmp_path / "x"), 1)
    finally:
        os.umask(old)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def test_other_file_systems_are_refused(tmp_path):
    for call in (lambda p: read_file(p, "ceph"), lambda p: save_file(p, 1, "ceph")):
        with pytest.raises(ValueError, match="fs_type 'ceph'"):
            call(str(tmp_path / "x"))


def _add_ones(path, times):
    for _ in range(times):
        with get_file_lock(path + ".count", "write"):
            save_file(path, read_file(path, use_lock=True) + 1, use_lock=True)


def test_writers_in_several_processes_take_turns(tmp_path):
    path = str(tmp_path / "n")
    save_file(path, 0)
    workers = [
        multiprocessing.get_context("fork").Process(target=_add_ones, args=(path, 10))
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert read_file(path, use_lock=True) == 30


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "folder"])
def test_what_is_written_in_place_is_a_file_of_its_own(tmp_path, kind):
    path, other = tmp_path / "log.txt", tmp_path / "other"
    other.write_text("precious")
    make = {
        "link": lambda: path.symlink_to(other),
        "dangling": lambda: path.symlink_to(tmp_path / "made"),
        "fifo": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }
    make[kind]()
    for flags in (os.O_RDWR, os.O_WRONLY | os.O_APPEND):
        with pytest.raises(OSError, match=r"link|regular|directory|No such device"):
            open_to_write(str(path), flags)
    with pytest.raises(OSError, match=r"log\.txt"):
        redirect_output(str(path))
    log = AppendFile(path, flush_seconds=0)
    with pytest.warns(RuntimeWarning, match=r"cannot write the log file .*log\.txt") as warned:
        log.write("line\n")
    log.write("line\n")  # one line is enough
    assert len(warned) == 1
    assert "\n" not in str(warned[0].message)
    assert other.read_text() == "precious"
    assert not (tmp_path / "made").exists()


def test_a_secret_is_readable_by_its_owner_alone_from_its_first_byte(tmp_path, monkeypatch):
    made = []
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, flags, mode=0o777: made.append(mode) or real(path, flags, mode)
    )
    before = os.umask(0)
    try:
        assert write_secret(tmp_path / "key", "secret")
        assert not write_secret(tmp_path / "key", "another")
    finally:
        os.umask(before)
    assert made == [0o600, 0o600]
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "key").read_text() == "secret"
    assert os.listdir(tmp_path) == ["key"]


def test_a_new_name_is_on_disk_before_it_is_relied_on(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def noting(handle):
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noting)
    save_file(str(tmp_path / "a.pth.tar"), {"a": 1})
    (content, folder) = synced
    assert os.path.dirname(content) == folder == str(tmp_path)
    assert os.path.basename(content) != "a.pth.tar"  # before it got its name
