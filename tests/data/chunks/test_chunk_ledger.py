"""References, pins, and files that may go."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ding.data.chunks import ChunkLedger
from ding.data.chunks.chunk_ledger import distinct


def names(chunks) -> list[str]:
    return [chunk.data_id for chunk in chunks]


def test_a_chunk_goes_with_its_last_row_and_its_last_pin():
    ledger = ChunkLedger()
    a, b = ledger.add("a", 3, 100), ledger.add("b", 1, 10)
    ledger.pin(np.array([a.number, b.number]))
    ledger.pin(np.array([a.number]))
    ledger.leave(np.array([a.number, a.number, b.number]))
    assert (ledger.refs(a.number), ledger.pins(a.number), ledger.rows) == (1, 2, 1)
    assert ledger.take_unused() == []
    ledger.unpin(np.array([a.number, b.number]))
    assert names(ledger.take_unused()) == ["b"]
    ledger.leave(np.array([a.number]))
    assert "a" in ledger
    ledger.unpin(np.array([a.number]))
    unused = ledger.take_unused()
    assert names(unused) == ["a"]
    assert ledger.take_unused() == []
    assert (len(ledger), ledger.bytes) == (0, 100 + 10)
    ledger.removed(unused)
    assert ledger.bytes == 10


def test_a_killed_chunk_is_not_drawn_and_goes_when_no_batch_needs_it():
    ledger = ChunkLedger()
    a, b = ledger.add("a", 3, 1), ledger.add("b", 2, 1)
    ledger.pin(np.array([a.number]))
    assert ledger.kill(a.number) == 3
    assert ledger.kill(a.number) == 0
    assert ledger.dead_rows == 3
    assert ledger.alive(np.array([a.number, b.number])).tolist() == [False, True]
    assert ledger.take_unused() == []
    ledger.unpin(np.array([a.number]))
    assert names(ledger.take_unused()) == ["a"]
    ledger.leave(np.array([a.number] * 3))
    assert ledger.dead_rows == 0
    assert ledger.take_unused() == []


def test_numbers_that_are_not_there_are_not_alive():
    ledger = ChunkLedger()
    for i in range(200):
        chunk = ledger.add(str(i), 1, 1)
        if i < 199:
            ledger.leave(np.array([chunk.number]))
    assert ledger.alive(np.array([0, 150, 199])).tolist() == [False, False, True]


@given(st.lists(st.integers(-5, 5) | st.integers(10**6, 10**6 + 3), min_size=1))
def test_distinct(numbers):
    found, counts, index = distinct(np.array(numbers))
    assert found.tolist() == sorted(set(numbers))
    assert counts.tolist() == [numbers.count(n) for n in sorted(set(numbers))]
    assert found[index].tolist() == numbers


class Model:
    """What the ledger should say, in plain dicts."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.ledger = ChunkLedger()
        self.refs: dict[int, int] = {}
        self.pins: dict[int, int] = {}
        self.dead: set[int] = set()
        self.name: dict[int, str] = {}
        self.files: set[str] = set()

    def some(self, numbers) -> list[int]:
        numbers = sorted(numbers)
        return sorted(self.rng.sample(numbers, self.rng.randint(0, len(numbers))))

    def add(self) -> None:
        name, rows = f"chunk{len(self.name)}", self.rng.randint(1, 5)
        number = self.ledger.add(name, rows, 10).number
        self.refs[number], self.pins[number], self.name[number] = rows, 0, name
        self.files.add(name)

    def leave(self) -> None:
        gone = self.some(n * 10 + i for n, count in self.refs.items() for i in range(count))
        for row in gone:
            self.refs[row // 10] -= 1
        if gone:
            self.ledger.leave(np.array(gone) // 10)

    def leave_oldest(self) -> None:
        n = self.rng.randint(0, 9)
        self.ledger.leave_oldest(n)
        for number in sorted(self.refs):
            gone = min(n, self.refs[number])
            self.refs[number] -= gone
            n -= gone

    def pin(self) -> None:
        some = self.some(n for n, count in self.refs.items() if count and n not in self.dead)
        for number in some:
            self.pins[number] += 1
        self.ledger.pin(np.array(some, np.int64))

    def unpin(self) -> None:
        for number in self.some(n for n, count in self.pins.items() if count):
            self.pins[number] -= 1
            self.ledger.unpin(np.array([number]))

    def kill(self) -> None:
        for number in self.some(n for n, count in self.refs.items() if count)[:1]:
            self.dead.add(number)
            self.ledger.kill(number)

    def remove(self) -> None:
        unused = self.ledger.take_unused()
        for chunk in unused:
            self.files.remove(chunk.data_id)
        self.ledger.removed(unused)

    def save_and_load(self) -> None:
        self.remove()
        state = self.ledger.state_dict()
        self.ledger = ChunkLedger()
        self.ledger.load_state_dict(state)
        self.pins = dict.fromkeys(self.pins, 0)
        # Whether the files of killed chunks are still there is not known then.
        self.files |= {self.name[n] for n in self.dead if self.refs[n]}

    def check(self) -> None:
        needed = {
            self.name[n]
            for n, count in self.refs.items()
            if self.pins[n] or (count and n not in self.dead)
        }
        assert self.ledger.names() == needed
        assert needed <= self.files
        assert self.ledger.bytes == 10 * len(self.files)
        assert self.ledger.rows == sum(self.refs.values())
        assert self.ledger.dead_rows == sum(self.refs[n] for n in self.dead)
        for number, count in self.refs.items():
            if count:
                assert self.ledger.refs(number) == count
                assert self.ledger.pins(number) == self.pins[number]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_counts_equal_the_truth_after_any_changes(seed):
    rng = random.Random(seed)
    model = Model(rng)
    steps = [model.add, model.add, model.leave, model.leave_oldest, model.pin, model.unpin,
             model.kill, model.remove, model.save_and_load]  # fmt: skip
    for _ in range(60):
        rng.choice(steps)()
        model.check()
