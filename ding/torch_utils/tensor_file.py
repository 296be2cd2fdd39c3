"""Reads and writes tensors and arrays in safetensors files; reading never executes code.

Other programs can read the files (https://github.com/huggingface/safetensors). Unlike the
safetensors package, this module does not copy all tensors to write them, and copies none to read
them. With a CRC-32C in both, a chunk of 64 frames of 84x84x4 takes 0.70 of the package's CPU time
to read and 0.74 to write, 8 MB of weights 0.56 and 0.74, a chunk of 64 small rows 0.71 and 0.92
(`benchmarks/tensor_files.py`). In a run that moves 13,000 such frames per second, this saves about
a tenth of a core. An additional tensor at the end of the file contains the checksum of the rest.
"""

import functools
import json
import math
import os
import struct
from collections.abc import Mapping

import numpy as np
import torch
from crc32c import crc32c

from ding.utils.errors import DataError
from ding.utils.file_helper import open_regular, write_pieces
from ding.utils.system_helper import fits_memory
from ding.utils.types import Json, JsonObject

_NUMPY = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8,
    "BOOL": np.bool_, "C64": np.complex64,
}  # fmt: skip
_NAMES = {np.dtype(kind): name for name, kind in _NUMPY.items()}
#: Dtypes that numpy lacks: their names, and a dtype of the same width that numpy has.
_TORCH_ONLY = {
    torch.bfloat16: ("BF16", torch.int16),
    torch.float8_e4m3fn: ("F8_E4M3", torch.uint8),
    torch.float8_e5m2: ("F8_E5M2", torch.uint8),
}
_FROM_TORCH_ONLY = {
    name: (kind, np.dtype(np.int16 if stand_in is torch.int16 else np.uint8))
    for kind, (name, stand_in) in _TORCH_ONLY.items()
}
#: The format's limit: a damaged length must not make a reader allocate all memory.
_LONGEST_HEADER = 100_000_000
_LONGEST_KEPT = 1 << 16

#: Number of cached headers: files of a run often have the same header.
_LAYOUTS = 64

_SUM = "__sum__"
#: Precedes the checksum, so that the end of a file identifies the format as well.
_MAGIC = b"ding-crc32c:"
_SUM_BYTES = len(_MAGIC) + 4
_NO_SUM = "its header is damaged: it names no checksum"
_FOREIGN: JsonObject = {"facts": {}, "numpy": []}

Leaf = np.ndarray | torch.Tensor
#: Name, offset, count, numpy dtype, shape, torch dtype if numpy lacks it, whether an array.
_Entry = tuple[str, int, int, np.dtype, tuple[int, ...], torch.dtype | None, bool]
#: Bytes of a file or of an object in shared memory.
Buffer = bytes | bytearray | memoryview


def write_tensors(
    path: str, tensors: Mapping[str, Leaf], facts: Mapping[str, Json], durable: bool = False
) -> int:
    """Write tensors and arrays by name; the file appears once it is complete.

    Args:
        facts: Metadata, plain JSON.
        durable: Whether to wait until the file is on disk.

    Returns:
        Size of the file in bytes.

    Raises:
        DataError: A value is not a dense array of numbers.
        CheckpointWriteError: The file cannot be written; a previous file is unchanged.
    """
    return write_pieces(path, tensor_content(tensors, facts), durable)


def tensor_content(tensors: Mapping[str, Leaf], facts: Mapping[str, Json]) -> list[Buffer]:
    """The content that `write_tensors` writes, in pieces; pieces of arrays are views of them.

    Raises:
        DataError: A value is not a dense array of numbers.
    """
    if _SUM in tensors:
        raise DataError(f"{_SUM!r} is the name of the checksum: expected another")
    arrays = {name: _as_plain(name, leaf) for name, leaf in tensors.items()}
    own = {"facts": facts, "numpy": [n for n, leaf in tensors.items() if type(leaf) is np.ndarray]}
    layout = tuple((name, kind, array.shape) for name, (kind, array) in arrays.items())
    head = _head(layout, json.dumps(own))
    blocks = [arrays[name][1].reshape(-1).view(np.uint8) for name in _order(layout)]
    crc = crc32c(head)
    for block in blocks:
        crc = crc32c(block.data, crc)
    return [head, *(block.data for block in blocks), _MAGIC + struct.pack("<I", crc)]


def read_tensors(path: str) -> tuple[dict[str, Leaf], JsonObject]:
    """Read a file that `write_tensors` or another program wrote.

    Returns:
        The tensors by name (arrays where arrays were written), in memory that no other object
        shares; and the facts, which must not be modified.

    Raises:
        OSError: The file does not exist, or cannot be read.
        DataError: The file is truncated, damaged or not a safetensors file.
    """
    return parse_tensors(read_content(path))


def read_content(path: str) -> memoryview:
    """All bytes of a file, in writable memory.

    The file is not memory-mapped: truncating a mapped file would kill the process.

    Raises:
        OSError: The file cannot be read, is a link, or is not a regular file.
        DataError: The file changed during reading, or does not fit into memory.
    """
    with open_regular(path, follow_links=False) as stream:
        size = os.fstat(stream.fileno()).st_size
        if not fits_memory(size):
            raise DataError(f"it does not fit into the memory: {size} bytes")
        content = np.empty(size, np.uint8).data  # a bytearray would be zeroed first
        if stream.readinto(content) != size:
            raise DataError("it changed while it was read")
        return content


def looks_like_tensors(content: Buffer) -> bool:
    """Whether the content begins like a safetensors file; the rest may be damaged."""
    return content[4:8] == bytes(4) and content[8:9] == b"{"


def parse_tensors(content: Buffer) -> tuple[dict[str, Leaf], JsonObject]:
    """`read_tensors` for the content of a file; the tensors are views of it."""
    size = len(content)
    if size < 10:
        raise DataError(f"it is cut short or no data file: {size} bytes")
    (length,) = struct.unpack("<Q", content[:8])
    if length > _LONGEST_HEADER:
        raise DataError("it is not a safetensors file")
    start = 8 + length
    if start > size:
        raise DataError(f"it is cut short: {size} bytes, {start} or more were written")
    head = bytes(content[8:start])
    layout = _layout if length < _LONGEST_KEPT else _layout.__wrapped__
    entries, end, facts = layout(head)
    if start + end != size:
        what = "it is cut short: " if start + end > size else "it is too long: "
        raise DataError(f"{what}{size} bytes, {start + end} were written")
    _check(content, entries)
    return {e[0]: _leaf(content, start, *e[1:]) for e in entries if e[0] != _SUM}, facts


# ---------------------------------------------------------------------- out


@functools.lru_cache(_LAYOUTS)
def _head(layout: tuple[tuple[str, str, tuple[int, ...]], ...], own: str) -> bytes:
    """The part of the file before the tensors: length and header."""
    sizes = {name: _width(kind) * math.prod(shape) for name, kind, shape in layout}
    offsets: dict[str, tuple[int, int]] = {}
    end = 0
    for name in _order(layout):
        start, end = end, end + sizes[name]
        offsets[name] = start, end
    header: JsonObject = {"__metadata__": {"ding": own}}
    for name, kind, shape in layout:
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": offsets[name]}
    last = end, end + _SUM_BYTES
    header[_SUM] = {"dtype": "U8", "shape": [_SUM_BYTES], "data_offsets": last}
    head = json.dumps(header, separators=(",", ":")).encode()
    # Align the tensors to multiples of 8; the widest dtypes come first.
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head


def _order(layout: tuple[tuple[str, str, tuple[int, ...]], ...]) -> list[str]:
    """Names in the order of their bytes."""
    # The widest dtypes first, so that each tensor starts at a multiple of its width.
    entries = sorted(layout, key=lambda e: (-_width(e[1]), -math.prod(e[2])))
    return [name for name, *_ in entries]


def _check(content: Buffer, entries: list[_Entry]) -> None:
    """Verify the checksum; files of other programs have none."""
    tail = bytes(content[-_SUM_BYTES:])
    if not any(entry[0] == _SUM for entry in entries):
        # The file ends with a checksum that is not in the header: the header is damaged.
        if tail.startswith(_MAGIC):
            raise DataError(_NO_SUM)
        return
    crc = crc32c(memoryview(content)[:-_SUM_BYTES])
    if tail != _MAGIC + struct.pack("<I", crc):
        raise DataError("its content is damaged: the checksum is another")


def _as_plain(name: str, leaf: object) -> tuple[str, np.ndarray]:
    """The format's name of the dtype, and the values as a contiguous array."""
    if isinstance(leaf, torch.Tensor):
        if leaf.layout is not torch.strided or leaf.is_quantized:
            raise DataError(f"{name!r} is a tensor of layout {leaf.layout}: expected a dense one")
        leaf = leaf.detach().cpu()
        if leaf.dtype in _TORCH_ONLY:
            kind, stand_in = _TORCH_ONLY[leaf.dtype]
            return kind, leaf.contiguous().view(stand_in).numpy()
        leaf = leaf.resolve_conj().resolve_neg().numpy()
    if type(leaf) is not np.ndarray:
        raise DataError(f"{name!r} is a {type(leaf).__name__}: expected a tensor or an array")
    if not leaf.dtype.isnative:
        leaf = leaf.astype(leaf.dtype.newbyteorder("="))
    dtype_name = _NAMES.get(leaf.dtype)
    if dtype_name is None:
        raise DataError(f"{name!r} has dtype {leaf.dtype}: expected numbers of at most 64 bits")
    # `ascontiguousarray` would add a dimension to a zero-dimensional array.
    return dtype_name, leaf if leaf.flags.c_contiguous else np.ascontiguousarray(leaf)


# ---------------------------------------------------------------------- in


@functools.lru_cache(_LAYOUTS)
def _layout(head: bytes) -> tuple[list[_Entry], int, JsonObject]:
    """Parse a header: the entry of each tensor, the total size, and the facts."""
    try:
        header = json.loads(head)
    except (ValueError, RecursionError) as error:
        raise DataError(f"its header is damaged: {error}") from error
    if not isinstance(header, dict):
        raise DataError("its header is damaged: it is no table of tensors")
    own = _own(header.pop("__metadata__", None))
    # Otherwise, a flipped bit in the checksum's name would disable the check.
    if own is not _FOREIGN and _SUM not in header:
        raise DataError(_NO_SUM)
    as_numpy = set(own["numpy"])
    found: dict[str, _Entry] = {}
    at = 0
    for begin, end, name, kind, shape in _entries(header):
        if begin != at:
            raise DataError(f"its header is damaged: {name!r} starts at {begin}, not at {at}")
        at = end
        torch_dtype, dtype = _FROM_TORCH_ONLY.get(kind, (None, None))
        count = (end - begin) // _width(kind)
        plain = torch_dtype is None and name in as_numpy
        found[name] = name, begin, count, dtype or np.dtype(_NUMPY[kind]), shape, torch_dtype, plain
    return [found[name] for name in header], at, own["facts"]


def _leaf(
    content: Buffer,
    start: int,
    begin: int,
    count: int,
    dtype: np.dtype,
    shape: tuple[int, ...],
    torch_dtype: torch.dtype | None,
    plain: bool,
) -> Leaf:
    array = np.frombuffer(content, dtype, count, start + begin).reshape(shape)
    if plain:
        return array
    # Files of other programs may contain unaligned tensors.
    tensor = torch.from_numpy(array if array.flags.aligned else array.copy())
    return tensor if torch_dtype is None else tensor.view(torch_dtype)


def _own(metadata: object) -> JsonObject:
    """The metadata of this package; `_FOREIGN` for files of other programs."""
    if not isinstance(metadata, dict) or "ding" not in metadata:
        return _FOREIGN
    try:
        own = json.loads(metadata["ding"])
        if isinstance(own["facts"], dict) and all(type(n) is str for n in own["numpy"]):
            return own
    except (KeyError, TypeError, ValueError, RecursionError):
        pass
    raise DataError("its header is damaged: the facts cannot be read")


def _entries(header: JsonObject) -> list[tuple[int, int, str, str, tuple[int, ...]]]:
    """The header's entries, in the order of the tensors in the file."""
    entries = []
    for name, entry in header.items():
        try:
            (begin, end), kind, shape = entry["data_offsets"], entry["dtype"], entry["shape"]
            size = _width(kind)
            whole = all(type(n) is int and n >= 0 for n in (begin, end, *shape))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"its header is damaged at {name!r}: {error}") from error
        for n in shape if whole else ():
            size *= n
        if not whole or end - begin != size:
            raise DataError(f"its header is damaged at {name!r}: {entry}")
        entries.append((begin, end, name, kind, tuple(shape)))
    return sorted(entries)


def _width(kind: str) -> int:
    if kind in _FROM_TORCH_ONLY:
        return _FROM_TORCH_ONLY[kind][1].itemsize
    if kind not in _NUMPY:
        raise DataError(f"it holds numbers of the type {kind!r}, which is not known here")
    return np.dtype(_NUMPY[kind]).itemsize
