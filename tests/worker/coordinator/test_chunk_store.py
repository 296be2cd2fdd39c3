"""Chunks that are needed, pinned and removed."""

import random

from hypothesis import given, settings, strategies as st

from ding.utils.errors import CheckpointWriteError
from ding.worker.coordinator.chunk_store import ChunkStore
from ding.worker.coordinator.turn import Turn


class Disk:
    """A sample store that only removes."""

    def __init__(self) -> None:
        self.removed: list[str] = []
        self.is_full = False

    def remove(self, name: str) -> None:
        if self.is_full:
            raise CheckpointWriteError("no way to write")
        self.removed.append(name)


def make() -> tuple[ChunkStore, Disk]:
    disk = Disk()
    return ChunkStore(disk, Turn()), disk


def test_a_chunk_goes_when_nothing_needs_it_and_no_batch_pins_it():
    store, disk = make()
    a, b = store.add("a", 3, 100, {}), store.add("b", 1, 10, {})
    store.pin([a, b, a])
    store.leave(a)
    store.leave(b)
    store.unpin([a, b])
    store.remove_unused()
    assert disk.removed == ["b"]
    assert "a" in store
    assert store.live() == []
    store.unpin([a])
    assert store.bytes == 100
    store.remove_unused()
    store.remove_unused()
    assert "a" not in store
    assert disk.removed == ["b", "a"]
    assert store.bytes == 0


def test_what_cannot_be_removed_counts_and_is_tried_again():
    store, disk = make()
    a = store.add("a", 3, 100, {})
    disk.is_full = True
    store.leave(a)
    store.remove_unused()
    assert (store.bytes, store.kept_rows, len(store)) == (100, 3, 0)
    disk.is_full = False
    store.remove_unused()
    assert (store.bytes, store.kept_rows, disk.removed) == (0, 0, ["a"])


class Model:
    """What the store should say, in plain dicts."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.store, self.disk = make()
        self.live: set[int] = set()
        self.pins: dict[int, int] = {}
        self.name: dict[int, str] = {}
        self.files: set[str] = set()

    def some(self, numbers) -> list[int]:
        numbers = sorted(numbers)
        return sorted(self.rng.sample(numbers, self.rng.randint(0, len(numbers))))

    def add(self) -> None:
        name = f"chunk{len(self.name)}"
        number = self.store.add(name, self.rng.randint(1, 5), 10, {}).number
        self.live.add(number)
        self.pins[number], self.name[number] = 0, name
        self.files.add(name)

    def leave(self) -> None:
        for number in self.some(self.live):
            self.live.remove(number)
            self.store.leave(self.store.numbered(number))

    def pin(self) -> None:
        some = self.some(self.live)
        for number in some:
            self.pins[number] += 1
        self.store.pin([self.store.numbered(number) for number in some])

    def unpin(self) -> None:
        for number in self.some(n for n, count in self.pins.items() if count):
            self.pins[number] -= 1
            self.store.unpin([self.store.numbered(number)])

    def remove(self) -> None:
        self.store.remove_unused()
        for name in self.disk.removed:
            self.files.remove(name)
        self.disk.removed.clear()

    def save_and_load(self) -> None:
        self.remove()
        state = self.store.state_dict()
        self.store, self.disk = make()
        self.store.load_state_dict(state)
        # Chunks that only batches on their way needed are not part of it.
        self.pins = dict.fromkeys(self.pins, 0)
        self.files = {self.name[number] for number in self.live}

    def check(self) -> None:
        self.remove()
        needed = {self.name[n] for n, count in self.pins.items() if count or n in self.live}
        assert {name for name in self.name.values() if name in self.store} == needed
        assert needed == self.files
        assert [chunk.number for chunk in self.store.live()] == sorted(self.live)
        assert self.store.bytes == 10 * len(self.files)
        assert all(self.store.numbered(n).pins == self.pins[n] for n in self.live)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_counts_equal_the_truth_after_any_changes(seed):
    rng = random.Random(seed)
    model = Model(rng)
    steps = [model.add, model.add, model.leave, model.pin, model.unpin, model.save_and_load]
    for _ in range(60):
        rng.choice(steps)()
        model.check()
