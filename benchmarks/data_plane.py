"""Samples from files to batches, without the network: chunks, and the learner's replay buffer.

    python benchmarks/data_plane.py

A sample goes all the way: written to a file, reported to the coordinator's side of the buffer,
named to the learner (JSON), taken into its replay buffer, drawn in a batch of 64, and its file
removed. In one process, and with two more processes that write. The floor copies the same columns
into a ring in memory and gathers the same batches; the other way is a pickled file and a message
for each sample.
"""

import itertools
import json
import multiprocessing
import os
import pickle
import shutil
import tempfile
from collections import deque
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from _timing import Figure, command_line, in_turns

from ding.worker.messages import ChunkReport

BATCH = 64
CHUNK = 64
#: Rows of the buffer, and shape and dtype of an observation.
KINDS = {"CartPole": (20_000, (4,), torch.float32), "84x84x4": (2_000, (4, 84, 84), torch.uint8)}


def samples(kind: str, n: int) -> dict[str, torch.Tensor]:
    _, shape, dtype = KINDS[kind]
    frames = (torch.rand(n + 1, *shape) * 255).to(dtype)
    return {
        "obs": frames[:-1],
        "next_obs": frames[1:],
        "action": torch.zeros(n, dtype=torch.int64),
        "reward": torch.ones(n, 1),
        "done": torch.zeros(n, dtype=torch.bool),
    }


def mega_bytes(kind: str) -> float:
    """Of one sample."""
    return sum(column.nbytes for column in samples(kind, 1).values()) / 1e6


class Ours:
    """Writes, pushes, draws, gathers."""

    def __init__(self, kind: str) -> None:
        from ding.data.chunks import SharedFolder, read_chunk
        from ding.worker.coordinator.buffer_pace import SpaceQuota
        from ding.worker.coordinator.chunk_buffer import ChunkBuffer
        from ding.worker.replay_buffer.chunk_replay import ChunkReplay, read_rows

        capacity = KINDS[kind][0]
        self.folder = SharedFolder(tempfile.mkdtemp(prefix="data_plane_"))
        self.read = partial(read_rows, partial(read_chunk, self.folder))
        cfg = {"type": "advanced", "replay_buffer_size": capacity}
        self.buffer = ChunkBuffer(cfg, self.folder, SpaceQuota(None), "exp", "bench")
        self.replay = ChunkReplay(cfg, "exp", "bench", _NoWriter())

    def write(self, kind: str, worker: str) -> Callable[[], str]:
        from ding.data import Columns
        from ding.data.chunks import chunk_name, write_chunk

        chunks = [Columns(samples(kind, CHUNK)) for _ in range(4)]
        serial = itertools.count()

        def go() -> str:
            number = next(serial)
            name = chunk_name("bench", worker, str(number))
            size = write_chunk(self.folder, name, chunks[number % 4])
            return json.dumps({"data_id": name, "sample_num": CHUNK, "size": size})

        return go

    def batch(self, meta: str) -> int:
        self.buffer.push(json.loads(meta), 0)
        named = json.loads(json.dumps([[c.data_id, c.meta] for c in self.buffer.take_chunks()]))
        chunks = [ChunkReport(name, None, None, 0, meta) for name, meta in named]
        self.replay.name_chunks(chunks, 0)
        self.replay.take_in(self.read)
        news = self.replay.take_news()
        self.buffer.note_replay(news.received, news.left, news.rows)
        assert self.buffer.permit(BATCH, 1) == 1
        batch, _ = self.replay.sample(BATCH, 0)
        return len(batch.collated()["action"])


class _NoWriter:
    def add_scalar(self, *_: object) -> None:
        """A view without readers."""


def one_process(kind: str) -> Callable[[], int]:
    ours = Ours(kind)
    write = ours.write(kind, "writer")
    return lambda: ours.batch(write())


def two_writers(kind: str) -> Callable[[], int]:
    ours = Ours(kind)
    ends = []
    for number in range(2):
        near, far = multiprocessing.Pipe()
        args = (ours.write(kind, f"writer{number}"), far, near)
        multiprocessing.Process(target=_keep_writing, args=args, daemon=True).start()
        far.close()
        for _ in range(8):  # files that a writer may be ahead
            near.send_bytes(b"")
        ends.append(near)
    turns = itertools.cycle(ends)

    def go() -> int:
        end = next(turns)
        meta = end.recv_bytes().decode()
        end.send_bytes(b"")
        return ours.batch(meta)

    return go


def _keep_writing(write: Callable[[], str], end: object, other: object) -> None:
    other.close()
    try:
        while True:
            end.recv_bytes()
            end.send_bytes(write().encode())
    except (EOFError, OSError):
        return


def file_per_sample(kind: str) -> Callable[[], int]:
    folder = tempfile.mkdtemp(prefix="data_plane_")
    columns = samples(kind, CHUNK)
    rows = [{name: column[i].clone() for name, column in columns.items()} for i in range(CHUNK)]
    serial, held = itertools.count(), deque()
    rng = np.random.default_rng(0)
    capacity = KINDS[kind][0]

    def go() -> int:
        for row in rows:
            path = os.path.join(folder, f"{next(serial)}")
            with open(path, "wb") as stream:
                pickle.dump(row, stream)
            held.append(json.loads(json.dumps({"data_id": path, "buffer_id": "bench"})))
            if len(held) > capacity:
                os.remove(held.popleft()["data_id"])
        drawn = json.loads(json.dumps([held[i] for i in rng.integers(len(held), size=BATCH)]))
        batch = []
        for meta in drawn:
            with open(meta["data_id"], "rb") as stream:
                batch.append(pickle.load(stream))
        return len(torch.utils.data.default_collate(batch)["action"])

    return go


def memory(kind: str) -> Callable[[], int]:
    capacity = KINDS[kind][0] // CHUNK * CHUNK
    columns = {name: column.numpy() for name, column in samples(kind, CHUNK).items()}
    ring = {name: np.zeros((capacity, *c.shape[1:]), c.dtype) for name, c in columns.items()}
    rng = np.random.default_rng(0)
    at = itertools.cycle(range(0, capacity, CHUNK))

    def go() -> int:
        start = next(at)
        index = rng.integers(capacity, size=BATCH)
        for name, column in columns.items():
            ring[name][start : start + CHUNK] = column
        batch = {name: torch.from_numpy(column.take(index, 0)) for name, column in ring.items()}
        return len(batch["action"])

    return go


SIDES = {
    "one process": one_process,
    "two writers": two_writers,
    "a pickled file per sample": file_per_sample,
    "in memory": memory,
}
WORKS = {
    f"{side}, {kind}": lambda side=side, kind=kind: SIDES[side](kind)
    for side in SIDES
    for kind in KINDS
}


def measure(rounds: int, seconds: float) -> list[Figure]:
    with _scratch_folder():
        speeds = in_turns(__file__, dict.fromkeys(WORKS), rounds, seconds)
    figures = []
    for kind, unit, limit, part in (
        ("CartPole", "samples/s", 50_000.0, 0.01),
        ("84x84x4", "MB/s", 300.0, 0.1),
    ):
        factor = 1.0 if unit == "samples/s" else mega_bytes(kind)
        of = {side: [factor * speed for speed in speeds[f"{side}, {kind}"]] for side in SIDES}
        pickled, floor = of["a pickled file per sample"], of["in memory"]
        for side in ("one process", "two writers"):
            name = f"files to batches, {kind}, {side}"
            figures += [
                Figure(name, of[side], [limit] * rounds, "limit", 1.0, unit),
                Figure(name, of[side], pickled, "a pickled file per sample", 5.0, unit),
                Figure(name, of[side], floor, "in memory", part, unit),
            ]
    return figures


class _scratch_folder:
    """Files of sides that are ended go with it."""

    def __enter__(self) -> None:
        self._before = os.environ.get("TMPDIR")
        self.path = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="data_plane_")

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.environ.pop("TMPDIR")
        if self._before is not None:
            os.environ["TMPDIR"] = self._before


if __name__ == "__main__":
    command_line(__doc__, WORKS, measure)
