"""Batches moved ahead of time (to the CPU, where no GPU is)."""

import itertools
import threading

import pytest
import torch

from ding.torch_utils import CudaFetcher


def test_yields_all_batches_in_order() -> None:
    fetcher = CudaFetcher(({"x": torch.tensor(i)} for i in range(10)), "cpu", queue_size=2)
    fetcher.run()
    assert [int(batch["x"]) for batch in fetcher] == list(range(10))
    with pytest.raises(StopIteration):
        next(fetcher)
    fetcher.close()


def test_close_ends_an_endless_source() -> None:
    fetcher = CudaFetcher(itertools.count(), "cpu", queue_size=1)
    fetcher.run()
    assert next(fetcher) == 0
    fetcher.close()
    fetcher.close()
    assert not any(thread.name == "cuda_fetcher" for thread in threading.enumerate())
    with pytest.raises(StopIteration):
        next(fetcher)


def test_an_error_of_the_source_reaches_the_consumer() -> None:
    def source():
        yield 1
        raise OSError("disk gone")

    fetcher = CudaFetcher(source(), "cpu")
    fetcher.run()
    assert next(fetcher) == 1
    with pytest.raises(OSError, match="disk gone"):
        next(fetcher)
    fetcher.close()


def test_must_be_started() -> None:
    with pytest.raises(RuntimeError, match="run"):
        next(CudaFetcher([1], "cpu"))
