"""Chunks and weights to files and back, against the safetensors package on the same layout.

    python benchmarks/tensor_files.py

Ours writes and compares a checksum of all bytes, which the package has none of; to be the same
service, its side adds a CRC-32C. Files are in memory where the system has a folder for that.
"""

import os
import tempfile
from collections.abc import Callable

import numpy as np
from _timing import CLOCK, Figure, command_line

KINDS = {
    "chunk of 64 CartPole samples": ({f"column{i}": (64, 8) for i in range(8)}, np.float32),
    "chunk of 64 frames 84x84x4": ({"obs": (64, 4, 84, 84)}, np.uint8),
    "8 MB of weights": ({f"layer{i}": (256, 256) for i in range(32)}, np.float32),
}


def ours(path: str, arrays: dict[str, np.ndarray]) -> tuple[Callable, Callable]:
    from ding.torch_utils.tensor_file import read_tensors, write_tensors

    return lambda: write_tensors(path, arrays, {}), lambda: read_tensors(path)


def package(path: str, arrays: dict[str, np.ndarray]) -> tuple[Callable, Callable]:
    from crc32c import crc32c
    from safetensors.numpy import load, save

    from ding.utils.file_helper import write_atomically

    def write() -> None:
        content = save(arrays, {"ding": "{}"})
        end = b"%08x" % crc32c(content)
        write_atomically(path, lambda file: (file.write(content), file.write(end)), durable=False)

    def read() -> dict[str, np.ndarray]:
        with open(path, "rb") as file:
            content = file.read()
        if content[-8:] != b"%08x" % crc32c(memoryview(content)[:-8]):
            raise ValueError("damaged")
        return load(content[:-8])

    return write, read


def seconds(action: Callable, times: int) -> float:
    begin = CLOCK()
    for _ in range(times):
        action()
    return (CLOCK() - begin) / times


def measure(rounds: int, span: float) -> list[Figure]:
    figures = []
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        for name, (shapes, dtype) in KINDS.items():
            rng = np.random.default_rng(0)
            arrays = {k: rng.integers(0, 255, shape).astype(dtype) for k, shape in shapes.items()}
            sides = [make(os.path.join(folder, make.__name__), arrays) for make in (ours, package)]
            for kind, (mine, theirs) in zip(("write", "read"), zip(*sides)):
                for write, _ in sides:
                    write()
                times = max(1, int(span / 10 / seconds(theirs, 3)))
                pairs = [(seconds(mine, times), seconds(theirs, times)) for _ in range(rounds)]
                micro = [[1e6 * value for value in side] for side in zip(*pairs)]
                figures.append(Figure(f"{kind} {name}", *micro, "safetensors", 1.0, "µs", True))
    return figures


if __name__ == "__main__":
    command_line(__doc__, {}, measure)
