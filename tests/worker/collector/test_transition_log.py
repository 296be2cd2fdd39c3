import numpy as np
import pytest

from ding.utils.errors import DataError
from ding.worker.collector.transition_log import TransitionLog


def put(log, count=2, **columns):
    log.append(count, columns)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (np.array([1, 2], np.int8), np.array([300, 4])),
        (np.array([True, False]), np.array([3, 0])),
        (np.array([1, 2]), np.array([0.5, 1.5])),
        (np.array([1, 2], np.float32), np.array([0.1, 1e300])),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_column_becomes_as_wide_as_its_values_need(first, later, nested):
    log = TransitionLog()
    for values in (first, later, first):
        put(log, obs={"x": values} if nested else values, other=np.zeros(2))
    found = log.gather(np.arange(6), ["obs"])["obs"]
    found = found["x"] if nested else found
    np.testing.assert_array_equal(found, [*first, *later, *first])


def test_rows_from_before_a_column_came_get_what_stands_for_missing():
    log = TransitionLog()
    put(log, a=np.zeros(2))
    seeds = np.array([7, 8])
    log.add_missing("seed", seeds, -1)
    put(log, a=np.ones(2), seed=seeds)
    assert log.column("seed").tolist() == [-1, -1, 7, 8]


def test_columns_that_come_and_go_are_refused():
    log = TransitionLog()
    put(log, a=np.zeros(2), b=np.zeros(2))
    with pytest.raises(DataError, match="columns a, c came after 2 transitions of a, b"):
        put(log, a=np.zeros(2), c=np.zeros(2))
    with pytest.raises(DataError, match="columns a came after 2 transitions of a, b"):
        put(log, a=np.zeros(2))
    put(log, a=np.ones(2), b=np.ones(2))
    assert log.column("b").tolist() == [0, 0, 1, 1]
