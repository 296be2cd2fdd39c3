import threading
import time

import numpy as np
import pytest
import torch

from ding.data.columns import Columns
from ding.utils import durations
from ding.utils.data import AsyncDataLoader
from ding.utils.errors import DataError


class Counter:
    """A source of numbered samples; optionally as functions that load them."""

    def __init__(self, as_functions=False, stop_after=None):
        self.calls = 0
        self.as_functions = as_functions
        self.stop_after = stop_after
        self.loaded_by = set()

    def __call__(self, batch_size):
        if self.calls == self.stop_after:
            return None
        self.calls += 1
        start = (self.calls - 1) * batch_size
        numbers = range(start, start + batch_size)
        if self.as_functions:
            return [lambda n=n: self._load(n) for n in numbers]
        return [self._sample(n) for n in numbers]

    def _load(self, number):
        self.loaded_by.add(threading.current_thread().name)
        return self._sample(number)

    def _sample(self, number):
        return {"obs": np.full(2, number, np.float32), "n": number}


@pytest.fixture
def make():
    loaders = []

    def make(*args, **kwargs):
        loaders.append(AsyncDataLoader(*args, timeout=20, **kwargs))
        return loaders[-1]

    yield make
    for loader in loaders:
        loader.close()


@pytest.mark.parametrize("as_functions", [False, True])
@pytest.mark.parametrize(("workers", "chunk"), [(0, None), (2, None), (2, 1), (3, 2)])
def test_batches_come_in_order(make, as_functions, workers, chunk):
    source = Counter(as_functions)
    loader = make(source, 4, "cpu", chunk_size=chunk, num_workers=workers)
    for i in range(5):
        batch = next(loader)
        assert batch["n"].tolist() == list(range(4 * i, 4 * i + 4))
        assert batch["obs"].shape == (4, 2)
    if as_functions and workers:
        assert all(name.startswith("data-worker") for name in source.loaded_by)


def test_it_works_ahead_but_not_far(make):
    source = Counter()
    loader = make(source, 2, "cpu", prefetch=3)
    next(loader)
    deadline = time.monotonic() + 10
    while source.calls < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert source.calls == 4


def test_it_ends_with_its_source(make):
    assert len(list(make(Counter(stop_after=3), 2, "cpu"))) == 3


def test_an_own_collate_function_gets_the_samples(make):
    loader = make(Counter(), 3, "cpu", collate_fn=lambda samples: samples)
    assert [sample["n"] for sample in next(loader)] == [0, 1, 2]


def test_columns_stay_columns(make):
    columns = Columns({"obs": torch.zeros(4, 2)})
    batch = next(make(lambda size: columns, 4, "cpu"))
    assert columns.is_columnar
    assert batch["obs"].data_ptr() == columns.columns["obs"].data_ptr()


def test_a_dict_of_sources_gives_a_dict_of_batches(make):
    batch = next(make({"a": Counter(), "b": Counter(as_functions=True)}, 2, "cpu"))
    assert batch["a"]["n"].tolist() == batch["b"]["n"].tolist() == [0, 1]


def broken_load():
    raise OSError("no such sample")


@pytest.mark.parametrize(
    ("source", "workers", "error", "where"),
    [
        (lambda size: [broken_load] * size, 0, OSError, "broken_load"),
        (lambda size: [broken_load] * size, 2, OSError, "broken_load"),
        (lambda size: 1 / 0, 0, ZeroDivisionError, "<lambda>"),
        (lambda size: [], 0, DataError, "_load"),
    ],
)
def test_errors_reach_the_caller_with_their_traceback(make, source, workers, error, where):
    loader = make(source, 2, "cpu", num_workers=workers)
    for _ in range(2):
        with pytest.raises(error) as caught:
            next(loader)
        assert where in [entry.name for entry in caught.traceback]


def test_what_was_ready_before_an_error_is_still_given(make):
    source = Counter()

    def fails_later(size):
        if source.calls == 1:
            raise RuntimeError("late")
        return source(size)

    loader = make(fails_later, 2, "cpu")
    for thread in threading.enumerate():
        if thread.name == "data-loader":
            thread.join(10)
    assert next(loader)["n"].tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="late"):
        next(loader)


def test_waiting_has_a_deadline():
    release = threading.Event()

    def stuck(size):
        release.wait(20)

    loader = AsyncDataLoader(stuck, 2, "cpu", timeout=0.05)
    with pytest.raises(TimeoutError, match=r"no batch came in 0\.05 s"):
        next(loader)
    release.set()
    loader.close()


def test_close_ends_everything_and_may_be_called_twice():
    before = set(threading.enumerate())
    loader = AsyncDataLoader(Counter(as_functions=True), 4, "cpu", num_workers=2)
    next(loader)
    loader.close()
    loader.close()
    assert set(threading.enumerate()) <= before
    with pytest.raises(StopIteration):
        next(loader)


def test_close_wakes_who_waits():
    release = threading.Event()
    loader = AsyncDataLoader(lambda size: release.wait(20) and None, 2, "cpu", timeout=20)
    ended = []

    def wait():
        ended.extend(loader)
        ended.append("done")

    waiter = threading.Thread(target=wait)
    waiter.start()
    closer = threading.Thread(target=loader.close)
    closer.start()
    waiter.join(10)
    assert ended == ["done"]
    release.set()
    closer.join(10)


def test_close_does_not_wait_for_ever_for_a_stuck_source(monkeypatch):
    monkeypatch.setattr(durations, "LOADER_CLOSE", 0.05)
    release = threading.Event()
    loader = AsyncDataLoader(lambda size: release.wait(20) and None, 2, "cpu")
    with pytest.warns(RuntimeWarning, match="did not return"):
        loader.close()
    release.set()
    loader.close()
