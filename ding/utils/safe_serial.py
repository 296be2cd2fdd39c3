"""Serialises plain data; loading never executes code.

The format is that of ``torch.save``, read with ``weights_only=True``. This does not support numpy
data, deques and `EasyDict`: they are stored as tagged dicts, and arrays as the bytes of a tensor.
Long lists of uniform dicts are stored as columns: thousands of small tensors, each a separate
record, would take many times as long. Files of tensors and builtins from plain ``torch.save`` can
be read as well.
"""

import io
import math
import os
import pickle
import warnings
import zipfile
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import IO, Any, TypeAlias, TypeVar

import numpy as np
import torch
from easydict import EasyDict

from ding.utils.errors import DataError
from ding.utils.system_helper import fits_memory
from ding.utils.types import Tree

Answer = TypeVar("Answer")

# Torch warns about files of plain `pickle`, even if they can be read. The filter is permanent,
# because temporary filters are not thread-safe.
warnings.filterwarnings("ignore", message="Detected pickle protocol", category=UserWarning)

_TAG = "__ding__"
_MIN_ROWS = 16
#: Maximum size in bytes of a copy of a tensor with strides of 0.
_MOST_EXPANDED = 256 << 20
_MAGIC = b"ding-crc"
#: The comment: the magic, and the CRC-32 as hexadecimal digits.
_COMMENT = len(_MAGIC) + 8
#: The record at an archive's end; its last two bytes are the comment's length.
_END = 22
_END_MAGIC = b"PK\x05\x06"
_START_MAGIC = b"PK\x03\x04"
_PIECE = 1 << 20
#: A container or array in a file: a dict with its kind under `_TAG`, and its parts.
_Tagged: TypeAlias = dict[str, Tree]
#: A numpy dtype in the format of ``.npy`` files: its name, or a list of fields.
_Descr: TypeAlias = str | list[tuple[str, ...]] | list[list[str]]
_ATOMS = (
    type(None), bool, int, float, complex, str, bytes,
    torch.Size, torch.dtype, torch.device,
)  # fmt: skip


@dataclass(frozen=True)
class UniformRows:
    """Rows with the same keys, stored as columns; a file represents them as a list of dicts.

    Attributes:
        columns: Tensors and arrays with one leading length, lists, or nested ``UniformRows``.
            One-dimensional arrays are Python numbers in the rows.
    """

    columns: dict[str, Tree]

    def rows(self) -> list[dict[str, Tree]]:
        """The list of dicts."""
        values = [c.rows() if isinstance(c, UniformRows) else list(c) for c in self._plain()]
        return [dict(zip(self.columns, row)) for row in zip(*values)]

    def _plain(self) -> Iterator[Tree]:
        for column in self.columns.values():
            is_flat = isinstance(column, np.ndarray) and column.ndim == 1
            yield column.tolist() if is_flat else column


def dump(data: object, target: IO[bytes]) -> None:
    """Write nested plain data with a checksum; the target must be seekable and empty.

    Plain data is tensors, numpy arrays and scalars, numbers, strings, bytes, None, and dicts,
    lists, tuples, sets and deques of them. An object that occurs twice is stored twice.

    Raises:
        TypeError: The data contains another type; the message contains its path.
    """
    checked: Any = _Checked(target)  # has the methods of a file that torch needs
    torch.save(_encode(data, "data"), checked)
    target.seek(-2, os.SEEK_END)
    target.write(_COMMENT.to_bytes(2, "little") + _MAGIC + b"%08x" % checked.crc)


def load(source: IO[bytes]) -> Tree:
    """Read data that `dump` or plain ``torch.save`` wrote; tensors are on the CPU.

    Raises:
        DataError: The content is truncated or damaged.
        pickle.UnpicklingError: It contains types that are not plain data.
    """
    return _decode(_load_plain(source))


def decoded(content: Tree) -> Tree:
    """Decode the result of plain ``torch.load`` for a file of `dump`; dicts and lists are changed
    in place. Data that is not encoded is returned unchanged.
    """
    return _decode(content)


def load_columns(source: IO[bytes]) -> Tree:
    """`load`, but a long list of uniform dicts is returned as `UniformRows`."""
    content = _load_plain(source)
    return _whole_column(content) if _is_tagged(content, "rows") else _decode(content)


def _load_plain(source: IO[bytes]) -> Tree:
    _check_sealed(source)
    # Safe from torch 2.10 on, which setup.py requires: CVE-2025-32434, CVE-2026-24747.
    return torch.load(source, map_location="cpu", weights_only=True)


def dumps(data: object) -> bytes:
    """`dump` to bytes."""
    stream = io.BytesIO()
    dump(data, stream)
    return stream.getvalue()


def loads(content: bytes) -> Tree:
    """`load` from bytes."""
    return load(io.BytesIO(content))


def _encode(value: Tree, place: str) -> Tree:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if isinstance(value, torch.Tensor):
        return _own_storage(value)
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(value, place)
    if isinstance(value, dict):
        return _encode_dict(value, place)
    if kind is UniformRows:
        columns = {k: _encode_whole(c, f"{place}[:][{k!r}]") for k, c in value.columns.items()}
        return {_TAG: "rows", "columns": columns}
    if kind is list and _are_uniform_rows(value):
        columns = {k: _encode_column([row[k] for row in value], f"{place}[:]") for k in value[0]}
        return {_TAG: "rows", "columns": columns}
    if kind in (list, tuple):
        return kind(_encode(v, f"{place}[{i}]") for i, v in enumerate(value))
    if isinstance(value, deque):
        return {_TAG: "deque", "items": _encode(list(value), place), "maxlen": value.maxlen}
    if kind in (set, frozenset):
        return {_TAG: kind.__name__, "items": _encode(list(value), place)}
    if isinstance(value, list) or (isinstance(value, tuple) and not hasattr(value, "_fields")):
        return _encode(list(value) if isinstance(value, list) else tuple(value), place)
    raise TypeError(
        f"{place} is a {kind.__module__}.{kind.__qualname__}, which a file that is safe to load "
        f"cannot hold; store tensors, arrays, numbers, strings and dicts, lists or tuples of them"
    )


def _are_uniform_rows(rows: list[Tree]) -> bool:
    if len(rows) < _MIN_ROWS or type(rows[0]) is not dict or not rows[0]:
        return False
    keys = rows[0].keys()
    return all(type(row) is dict and row.keys() == keys for row in rows) and all(
        type(key) in _ATOMS for key in keys
    )


def _encode_column(values: list[Tree], place: str) -> Tree:
    first = values[0]
    if isinstance(first, torch.Tensor | np.ndarray) and all(
        type(v) is type(first) and v.dtype == first.dtype and v.shape == first.shape for v in values
    ):
        # Arrays without dimensions would be read as scalars.
        if isinstance(first, np.ndarray) and first.ndim and not first.dtype.hasobject:
            return _encode_whole(np.stack(values), place)
        if isinstance(first, torch.Tensor) and all(v.layout == torch.strided for v in values):
            return _encode_whole(torch.stack([v.detach().cpu() for v in values]), place)
    return _encode(values, place)


def _encode_whole(column: object, place: str) -> Tree:
    """Encode a column of `UniformRows` as `_encode_column` encodes the values of its rows."""
    if isinstance(column, torch.Tensor):
        return {_TAG: "column", "values": _own_storage(column).cpu()}
    if isinstance(column, np.ndarray):
        if column.ndim == 1:
            return _encode(column.tolist(), place)
        return {_TAG: "column", "values": _encode_array(column, place)}
    return _encode(column, place)


def _own_storage(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor; a copy if it is a small view, whose whole storage would be written otherwise."""
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        return tensor
    size = tensor.numel() * tensor.element_size()
    return tensor.clone() if tensor.untyped_storage().nbytes() > 2 * size + 64 else tensor


def _encode_array(value: np.ndarray | np.generic, place: str) -> _Tagged:
    array = np.asarray(value)
    head: _Tagged = {
        _TAG: "scalar" if isinstance(value, np.generic) else "array",
        "shape": array.shape,
    }
    if array.dtype == object:
        return {**head, "items": _encode(array.reshape(-1).tolist(), place)}
    if array.dtype.hasobject:
        raise TypeError(f"{place} is a numpy record array with objects, which cannot be stored")
    descr = np.lib.format.dtype_to_descr(array.dtype)
    return {
        **head,
        "dtype": [list(field) for field in descr] if isinstance(descr, list) else descr,
        "bytes": torch.from_numpy(_raw_bytes(array)),
    }


def _raw_bytes(array: np.ndarray) -> np.ndarray:
    """The array's memory as uint8 [bytes]; copied only if necessary."""
    if array.nbytes == 0:
        return np.empty(0, np.uint8)
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return flat if flat.flags.writeable else flat.copy()  # torch warns of read-only memory


def _encode_dict(value: dict[Hashable, Tree], place: str) -> Tree:
    items = {_encode(k, f"key of {place}") if type(k) not in _ATOMS else k:
             _encode(v, f"{place}[{k!r}]") for k, v in value.items()}  # fmt: skip
    if isinstance(value, OrderedDict):
        return OrderedDict(items)
    if isinstance(value, EasyDict):
        return {_TAG: "EasyDict", "items": items}
    # A key of the user with this name must not be read as a tag.
    return {_TAG: "dict", "items": items} if _TAG in items else items


def _decode(value: Tree) -> Tree:
    if isinstance(value, torch.Tensor):
        _check_strides(value)
        return value
    if isinstance(value, dict):
        if _TAG in value:
            return _decode_tagged(value)
        for key in value:
            value[key] = _decode(value[key])
        return value
    if isinstance(value, list):
        value[:] = [_decode(v) for v in value]
        return value
    if type(value) is tuple:
        return tuple(_decode(v) for v in value)
    return value


def _check_strides(tensor: torch.Tensor) -> None:
    """Refuse a tensor with strides of 0 whose copy would be much larger than its storage.

    Raises:
        DataError: It is such a tensor.
    """
    if tensor.layout is not torch.strided:
        return
    size, stored = tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()
    if size > max(stored, _MOST_EXPANDED):
        raise DataError(
            f"a tensor of shape {tuple(tensor.shape)} has {size} bytes, but {stored} are stored"
        )


def _is_tagged(value: Tree, kind: str) -> bool:
    return isinstance(value, dict) and value.get(_TAG) == kind


def _whole_column(value: Tree) -> Tree:
    if _is_tagged(value, "rows"):
        return UniformRows({k: _whole_column(c) for k, c in value["columns"].items()})
    return _decode(value["values"] if _is_tagged(value, "column") else value)


def _decode_tagged(value: _Tagged) -> Tree:
    kind = value[_TAG]
    if kind in ("array", "scalar"):
        array = _decode_array(value)
        return array if kind == "array" else array[()]
    if kind == "rows":
        return _whole_column(value).rows()
    if kind in ("dict", "EasyDict"):
        items = {k: _decode(v) for k, v in value["items"].items()}
        return EasyDict(items) if kind == "EasyDict" else items
    items = _decode(value["items"])
    if kind == "deque":
        return deque(items, maxlen=value["maxlen"])
    if kind in ("set", "frozenset"):
        return set(items) if kind == "set" else frozenset(items)
    raise pickle.UnpicklingError(f"unknown tag {kind!r}: written by a newer version?")


def _decode_array(value: _Tagged) -> np.ndarray:
    shape = tuple(value["shape"])
    if "items" in value:
        items = _decode(value["items"])
        if len(items) != math.prod(shape):
            raise DataError(f"an array of shape {shape} has {len(items)} items")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(shape)
    descr = value["dtype"]
    descr = [tuple(field) for field in descr] if isinstance(descr, list) else descr
    return value["bytes"].numpy().view(np.lib.format.descr_to_dtype(descr)).reshape(shape)


# The checksum of an archive is stored in its comment, so that ``torch.load`` and zip programs can
# still read it. The archive's own checksums do not cover its headers, and ``torch.load`` ignores
# them.


def _check_sealed(stream: IO[bytes]) -> None:
    """Check the integrity of a file; leaves the stream at its beginning.

    Archives without the checksum of `dump` are checked with the archive's own checksums. Files that
    are not archives are not checked.

    Raises:
        DataError: The file is truncated or damaged, does not fit into memory, or is compressed.
    """
    size = stream.seek(0, os.SEEK_END)
    if not fits_memory(size):
        raise DataError(f"it does not fit into the memory: {size} bytes")
    stream.seek(0)
    start = stream.read(len(_START_MAGIC))
    stream.seek(max(size - _END - _COMMENT, 0))
    tail = stream.read()
    stream.seek(0)
    if _END_MAGIC in tail:
        # Archives of torch are not compressed, and their records do not overlap.
        inflated = _of_archive(stream, lambda archive: sum(r.file_size for r in archive.infolist()))
        if inflated > size:
            raise DataError(f"its records inflate to {inflated} bytes, but it has {size} bytes")
        stream.seek(0)
    if tail[-_COMMENT:].startswith(_MAGIC):
        _check_crc(stream, size, tail)
    elif tail[-_END:].startswith(_END_MAGIC) and tail.endswith(bytes(2)):
        if (bad := _of_archive(stream, zipfile.ZipFile.testzip)) is not None:
            raise DataError(f"it is damaged: the checksum of its record {bad!r} is another")
    elif start == _START_MAGIC or _END_MAGIC in tail:
        raise DataError(
            f"it is cut short or damaged: its end is missing at {size} bytes, as when its writing "
            f"was interrupted"
        )
    stream.seek(0)


def _of_archive(stream: IO[bytes], ask: Callable[[zipfile.ZipFile], Answer]) -> Answer:
    try:
        with zipfile.ZipFile(stream) as archive:
            return ask(archive)
    except Exception as error:  # the parser raises various errors for damaged bytes
        raise DataError(f"it is damaged: {error}") from error


def _check_crc(stream: IO[bytes], size: int, tail: bytes) -> None:
    crc, left = 0, size - _COMMENT - 2
    while left > 0 and (piece := stream.read(min(_PIECE, left))):
        crc = zlib.crc32(piece, crc)
        left -= len(piece)
    # The checksum was computed when the archive had no comment.
    crc = zlib.crc32(bytes(2), crc)
    length = tail[-_COMMENT - 2 : -_COMMENT]
    if length != _COMMENT.to_bytes(2, "little") or tail[-8:] != b"%08x" % crc:
        raise DataError("it is damaged: its checksum is another")


class _Checked:
    """A stream that passes data on and updates a checksum."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.crc = 0

    def write(self, data: bytes | memoryview) -> int:
        self.crc = zlib.crc32(data, self.crc)
        return self._stream.write(data)

    def flush(self) -> None:
        """Does nothing: the stream has no buffer."""
