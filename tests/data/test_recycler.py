"""Memory is reused only when it has no other references."""

import numpy as np
import torch

from ding.data.memory import Recycler

SHAPE, DTYPE = (64, 8192), np.dtype(np.uint8)


def address(array):
    return array.__array_interface__["data"][0]


def test_dropped_arrays_are_used_again():
    recycler = Recycler()
    first = address(recycler.empty(SHAPE, DTYPE))
    assert address(recycler.empty(SHAPE, DTYPE)) == first


def test_memory_in_use_is_not():
    recycler = Recycler()
    held = [
        recycler.empty(SHAPE, DTYPE),
        recycler.empty(SHAPE, DTYPE)[3:, 5:],
        torch.from_numpy(recycler.empty(SHAPE, DTYPE)),
        torch.from_numpy(recycler.empty(SHAPE, DTYPE))[7].view(-1),
        memoryview(recycler.empty(SHAPE, DTYPE)),
        recycler.empty(SHAPE, DTYPE).view(np.int8),
        np.from_dlpack(recycler.empty(SHAPE, DTYPE)),
    ]
    addresses = {address(recycler.empty(SHAPE, DTYPE)) for _ in range(3)}
    assert len(addresses) == 1
    starts = {address(np.asarray(item).reshape(-1)) // 4096 * 4096 for item in held}
    assert len(starts) == len(held)
    assert not any(abs(start - next(iter(addresses))) < 4096 for start in starts)


def test_other_sizes_do_not_pile_up():
    recycler = Recycler()
    for n in range(1, 40):
        recycler.empty((n, 1 << 20), DTYPE)
    assert len(recycler._free) <= 4


def test_small_arrays_are_left_to_the_allocator():
    assert Recycler().empty((2, 2), DTYPE) is None
