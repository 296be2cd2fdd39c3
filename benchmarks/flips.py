"""Damaged files of every kind: how many are refused, harmless, or read as something else.

    python benchmarks/flips.py --count 1000 --seed 0

Each time one file of those that are read back (checkpoints, resume states, saved buffers, rows of
a journal, chunks, weights, the coordinator's state, the facts of a run) is damaged as by a disk, a
cable, a full file system or a neighbour: bits flip, parts change places or are zeroed, the end is
missing or too long; or a FIFO, a device, a folder or nothing replaces the file. Then it is
read, within 10 seconds. To be refused with an error that names the file is right, and so is to read
exactly what was written. Anything else makes the exit status 1.
"""

import argparse
import hashlib
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.data.chunks import read_chunk, write_chunk
from ding.data.row_journal import RowJournal
from ding.model import DQN
from ding.torch_utils import read_weights, write_weights
from ding.torch_utils.tensor_file import write_tensors
from ding.utils import read_file, save_file
from ding.utils.errors import DingError
from ding.utils.file_helper import read_facts, write_facts
from ding.utils.shared_folder import SharedFolder
from ding.worker.coordinator.run_files import CoordinatorState
from ding.worker.replay_buffer import AdvancedReplayBuffer

LIMIT = 10
RIGHT = ("refused", "as it was")

# ---------------------------------------------------------------------- files


@dataclass(frozen=True)
class Kind:
    """How a file of one kind comes into a folder, and what is read back from it."""

    file: str
    write: Callable[[str], object]
    read: Callable[[str], Any]


def _rows(n: int) -> list[dict[str, Any]]:
    return [
        {"obs": torch.full((4,), float(i)), "action": torch.tensor([i % 2]), "done": i % 9 == 8}
        for i in range(n)
    ]


def _columns(n: int = 300) -> Columns:
    obs = torch.arange(4 * n + 4, dtype=torch.float32).reshape(n + 1, 4)
    return Columns(
        {
            "obs": obs[:-1],
            "next_obs": obs[1:],
            "action": torch.arange(n) % 2,
            "reward": torch.where(torch.arange(n) % 3 == 0, 1.0, -1.0),
        }
    )


def _policy() -> dict[str, Any]:
    model = DQN(4, 2)
    optimizer = torch.optim.Adam(model.parameters())
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


def _buffer() -> AdvancedReplayBuffer:
    cfg = AdvancedReplayBuffer.default_config()
    cfg.replay_buffer_size = 64
    return AdvancedReplayBuffer(EasyDict(cfg))


def _save_buffer(path: str) -> None:
    buffer = _buffer()
    buffer.push(_rows(40), cur_collector_envstep=40)
    buffer.save_data(path)


def _load_buffer(path: str) -> Any:
    buffer = _buffer()
    buffer.load_data(path)
    return [buffer.count(), *buffer.sample(buffer.count(), 0)]


def _save_coordinator(path: str) -> None:
    CoordinatorState(os.path.dirname(os.path.dirname(path)), {}, 1.0, print).save(lambda: _STATE)


def _load_coordinator(path: str) -> Any:
    reasons: list[str] = []
    exp_name = os.path.dirname(os.path.dirname(path))
    found = CoordinatorState(exp_name, {}, 1.0, reasons.append).load(True)
    if found is None:
        raise DingError(reasons[0])
    return found


def _numbered(columns: Columns) -> dict[str, np.ndarray]:
    """Rows as a journal has them, with their numbers."""
    arrays = {name: column.numpy() for name, column in columns.columns.items()}
    return {**arrays, "__numbers__": np.arange(len(columns))}


def _journal(path: str) -> list[Any]:
    folder, name = os.path.split(path)
    segment = {"start": 0, "stop": 300, "file": name, "rows": 300, "n_bytes": 0}
    return list(RowJournal(folder).read([segment]))


def _in(folder_and_name: Callable[[SharedFolder, str], Any]) -> Callable[[str], Any]:
    def of_path(path: str) -> Any:
        folder, name = os.path.split(path)
        return folder_and_name(SharedFolder(folder), name)

    return of_path


def _facts(path: str) -> Any:
    heard = _Heard()
    logger = logging.getLogger("ding.utils.file_helper")
    logger.addHandler(heard)
    try:
        found = read_facts(path)
    finally:
        logger.removeHandler(heard)
    if not found:
        raise DingError("; ".join(heard.lines) or f"there is no {path}")
    return found


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


_STATE = {"rng": np.random.RandomState(0).get_state(), "counts": {"envstep": 7, "best": [1.5]}}
_JOURNAL = "rows-0123456789abcdef.safetensors"
KINDS = {
    "checkpoint": Kind(
        "ckpt_best.pth.tar", lambda p: save_file(p, {**_policy(), "last_iter": 9}), read_file
    ),
    "resume state": Kind(
        "resume.pth.tar", lambda p: save_file(p, {**_policy(), **_STATE}), read_file
    ),
    "buffer": Kind("buffer.pth.tar", _save_buffer, _load_buffer),
    "journal rows": Kind(
        _JOURNAL,
        lambda p: write_tensors(p, _numbered(_columns()), {}),
        _journal,
    ),
    "chunk of columns": Kind(
        "b.c.1", _in(lambda folder, name: write_chunk(folder, name, _columns())), _in(read_chunk)
    ),
    "chunk of rows": Kind(
        "b.c.2",
        _in(lambda folder, name: write_chunk(folder, name, [{"a": torch.ones(9)}, {"b": "x"}])),
        _in(read_chunk),
    ),
    "weights": Kind(
        "policy",
        _in(
            lambda folder, name: write_weights(
                folder, name, {"model": DQN(4, 2).state_dict(), "iter": 3}, {"policy_iter": 3}
            )
        ),
        _in(read_weights),
    ),
    "coordinator's state": Kind(
        "ckpt/coordinator_state.pth.tar",
        _save_coordinator,
        _load_coordinator,
    ),
    "facts": Kind(
        "run.json", lambda p: write_facts(p, {"status": "running", "seed": 3, "best": 1.5}), _facts
    ),
}

# ---------------------------------------------------------------------- damage


def _flip(content: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        # Headers and ends are short, and worth as many tries as all the rest.
        size = len(content)
        where = rng.choice((range(size), range(min(512, size)), range(max(size - 512, 0), size)))
        content[rng.choice(where)] ^= 1 << rng.randrange(8)


def _swap(content: bytearray, rng: random.Random) -> None:
    width = rng.choice((1, 8, 64, 512, 4096))
    blocks = len(content) // width
    if blocks < 2:
        return
    one, other = (slice(width * i, width * (i + 1)) for i in rng.sample(range(blocks), 2))
    content[one], content[other] = content[other], content[one]


def _zero(content: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(content))
    stop = min(len(content), start + rng.choice((1, 16, 512, 4096)))
    content[start:stop] = bytes(stop - start)


def _cut(content: bytearray, rng: random.Random) -> None:
    del content[rng.choice((rng.randrange(len(content)), len(content) - rng.randint(1, 40))) :]


def _append(content: bytearray, rng: random.Random) -> None:
    content += rng.randbytes(rng.choice((1, 16, 4096)))


DAMAGE: dict[str, Callable[[bytearray, random.Random], None]] = {
    "flipped bits": _flip,
    "exchanged parts": _swap,
    "zeroed part": _zero,
    "cut short": _cut,
    "too long": _append,
}
INSTEAD: dict[str, Callable[[str], object]] = {
    "FIFO": os.mkfifo,
    "device": lambda path: os.symlink("/dev/zero", path),
    "folder": os.mkdir,
    "nothing": lambda path: None,
}


def damage(path: str, content: bytes, rng: random.Random) -> str:
    """Put a damaged file, or something else, into the place of a file; returns what it was."""
    what = rng.choice([*DAMAGE] * 4 + [*INSTEAD])
    if what in INSTEAD:
        INSTEAD[what](path)
    else:
        changed = bytearray(content)
        DAMAGE[what](changed, rng)
        with open(path, "wb") as file:
            file.write(changed)
    return what


# ---------------------------------------------------------------------- outcomes


def fingerprint(value: Any) -> bytes:
    """Of nested plain data: names, order, types, shapes, and every byte."""
    digest = hashlib.blake2b()
    _count(value, digest)
    return digest.digest()


def _count(value: Any, digest: Any) -> None:
    digest.update(type(value).__name__.encode())
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, Mapping):
        for key, item in value.items():
            _count(key, digest)
            _count(item, digest)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
    elif isinstance(value, list | tuple):
        for item in value:
            _count(item, digest)
    else:
        digest.update(repr(value).encode())


def outcome(kind: Kind, path: str, expected: bytes) -> str:
    """What comes of reading a file."""
    signal.alarm(LIMIT)
    try:
        found = kind.read(path)
    except DingError as error:
        named = os.path.basename(path) in str(error)
        return "refused" if named else f"refused without the file's name: {error}"
    except TimeoutError:
        return "held up"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return "as it was" if fingerprint(found) == expected else "read as something else"


def _time_is_up(*_: object) -> None:
    raise TimeoutError


def run(count: int, seed: int, folder: str) -> Counter[tuple[str, str, str]]:
    """Outcomes by kind of file and damage."""
    signal.signal(signal.SIGALRM, _time_is_up)
    rng, found = random.Random(seed), Counter[tuple[str, str, str]]()
    torch.manual_seed(seed)
    whole: dict[str, tuple[bytes, bytes]] = {}
    for i in range(count):
        name = rng.choice([*KINDS])
        kind, home = KINDS[name], os.path.join(folder, str(i))
        path = os.path.join(home, kind.file)
        os.makedirs(os.path.dirname(path))
        if name not in whole:
            kind.write(path)
            np.random.seed(seed)
            with open(path, "rb") as file:
                whole[name] = file.read(), fingerprint(kind.read(path))
            os.remove(path)
        content, expected = whole[name]
        what = damage(path, content, rng)
        np.random.seed(seed)
        found[name, what, outcome(kind, path, expected)] += 1
        shutil.rmtree(home)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ding-flips-") as folder:
        found = run(options.count, options.seed, folder)
    for column, title in ((0, "file"), (1, "damage")):
        print(f"{title:<24}" + "".join(f"{name:>12}" for name in (*RIGHT, "wrong")))
        for name in sorted({key[column] for key in found}):
            counts = Counter[str]()
            for key, n in found.items():
                if key[column] == name:
                    counts[key[2] if key[2] in RIGHT else "wrong"] += n
            print(f"{name:<24}" + "".join(f"{counts[word]:>12}" for word in (*RIGHT, "wrong")))
        print()
    wrong = {key: n for key, n in found.items() if key[2] not in RIGHT}
    for (name, what, came), n in wrong.items():
        print(f"WRONG {n} x {name}, {what}: {came}")
    print(f"{options.count - sum(wrong.values())} of {options.count} damaged files were handled")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
