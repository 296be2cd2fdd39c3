"""Prioritised drawing against a plain model of it."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ding.data.draw import Draw
from ding.data.priorities import Priorities
from ding.data.ring import Ring

CAPACITY = 7

operations = st.lists(
    st.one_of(
        st.tuples(st.just("occupy"), st.integers(1, CAPACITY)),
        st.tuples(st.just("occupy_with"), st.integers(1, CAPACITY)),
        st.tuples(st.just("vacate"), st.integers(0, CAPACITY)),
        st.tuples(st.just("update"), st.integers(0, CAPACITY)),
    ),
    max_size=12,
)


def fill(ring, priorities, n):
    slots = ring.next_slots(n)
    ring.write(slots, [{"x": 0.0}] * n)
    priorities.begin(slots)
    return np.asarray(slots)


@settings(max_examples=60, deadline=None)
@given(operations, st.integers(0, 1000))
def test_follows_the_model(ops, seed):
    rng = np.random.default_rng(seed)
    ring = Ring(CAPACITY)
    priorities, model, highest = Priorities(ring, 0.5), {}, 1.0
    for name, n in ops:
        if name.startswith("occupy"):
            values = rng.random(n) * 4 if name == "occupy_with" else None
            slots = fill(ring, priorities, n)
            if values is not None:
                priorities.update(slots, values)
            model.update(zip(slots.tolist(), [highest] * n if values is None else values))
            highest = highest if values is None else max(highest, values.max())
            continue
        slots = rng.permutation(sorted(model))[:n].astype(np.int64)
        if name == "vacate":
            ring.drop(slots)
            priorities.drop(slots)
            for slot in slots:
                del model[slot]
        else:
            values = rng.random(len(slots)) * 4
            priorities.update(slots, values)
            model.update(zip(slots.tolist(), values))
            highest = max(highest, values.max(initial=0.0))
        assert priorities.highest == highest
    assert ring.slots().tolist() == sorted(model)
    if model:
        slots = priorities.draw(Draw(), 5)
        weights = priorities.weights(slots, 0.5)
        assert set(slots.tolist()) <= set(model)
        masses = {slot: max(value, 1e-5) ** 0.5 for slot, value in model.items()}
        least = min(masses.values())
        assert np.allclose(weights, [(masses[s] / least) ** -0.5 for s in slots.tolist()])


def test_each_share_of_the_total_gives_one_slot():
    priorities = Priorities(ring := Ring(4), 1.0)
    fill(ring, priorities, 4)
    priorities.update(np.arange(4), np.array([1.0, 2.0, 1.0, 4.0]))
    source = Draw()
    for _ in range(20):
        slots = priorities.draw(source, 8)
        assert np.bincount(slots).tolist() == [1, 2, 1, 4]


@pytest.mark.parametrize("n", [3, 100])
def test_equal_priorities_draw_each_slot_once(n):
    priorities = Priorities(ring := Ring(n), 0.6)
    fill(ring, priorities, n)
    slots = priorities.draw(Draw(), n)
    weights = priorities.weights(slots, 0.4)
    assert sorted(slots.tolist()) == list(range(n))
    assert (weights == 1).all()
