import multiprocessing

import numpy as np
import pytest

from ding.data import ShmBuffer, ShmBufferContainer
from ding.utils.errors import DataError


def _fill(buffer, value):
    buffer.fill(value)


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_another_process_fills_it(context):
    buffer = ShmBuffer(np.float32, (2, 3))
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    process = multiprocessing.get_context(context).Process(target=_fill, args=(buffer, value))
    process.start()
    process.join()
    np.testing.assert_array_equal(buffer.get(), value)


def test_copy_on_get():
    copying, viewing = ShmBuffer("int64", (2,)), ShmBuffer("int64", (2,), copy_on_get=False)
    for buffer, expected in ((copying, [0, 0]), (viewing, [7, 7])):
        got = buffer.get()
        buffer.fill(np.array([7, 7]))
        assert got.tolist() == expected


@pytest.mark.parametrize("value", [np.zeros(3, np.int64), np.zeros(2, np.float64)])
def test_what_does_not_fit_is_refused(value):
    with pytest.raises(DataError, match="the buffer holds shape"):
        ShmBuffer(np.int64, (2,)).fill(value)


def test_container_of_nested_shapes():
    shape = {"image": (2, 2), "more": {"vector": (3,)}}
    container = ShmBufferContainer(np.uint8, shape)
    value = {"image": np.ones((2, 2), np.uint8), "more": {"vector": np.full(3, 4, np.uint8)}}
    container.fill(value)
    got = container.get()
    assert got["image"].tolist() == [[1, 1], [1, 1]]
    assert got["more"]["vector"].tolist() == [4, 4, 4]
    with pytest.raises(DataError, match="the container holds"):
        container.fill({"image": value["image"]})
    assert ShmBufferContainer(np.float32, (2,)).get().shape == (2,)
