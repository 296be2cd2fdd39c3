"""Chunks: files of samples, columns as safetensors and other rows as plain data."""

import pickle
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any, TypeAlias, TypedDict

import numpy as np

from ding.data.arrays import (
    IdColumn,
    IndexedColumn,
    Key,
    Row,
    as_tensors,
    gathered,
    nested,
    path_of,
    shown,
)
from ding.data.columns import Columns, as_columns
from ding.data.frame_store import MIN_FRAME_BYTES, frames_once
from ding.data.greys import GREY_SCALES, as_greys
from ding.torch_utils.tensor_file import (
    Buffer,
    Leaf,
    looks_like_tensors,
    parse_tensors,
    read_content,
    tensor_content,
)
from ding.utils import safe_serial
from ding.utils.errors import ChunkError, DataError
from ding.utils.file_helper import write_pieces
from ding.utils.shared_folder import SharedFolder as SharedFolder
from ding.utils.types import Json, Tree

#: First bytes of `torch.save` files: zip archives, or pickles in the old format.
_OF_TORCH = (b"P", b"\x80")
#: Samples as they are stored: columns, or one dict per sample.
Samples: TypeAlias = Columns | list[Row]
#: Path of a column in the file: the names of the mappings that contain it, then its own name.
ColumnPath: TypeAlias = tuple[str | int, ...]


class ChunkFacts(TypedDict):
    """Metadata of the tensors in a file of columns.

    Attributes:
        rows: Number of samples.
        places: The path of each tensor's column.
        ids: The prefix of each tensor that contains the numbers of ids.
        frames: For observations that are stored once: the names of the tensor of frames and of the
            tensors ``obs`` and ``next_obs``, which are indices into it.
        greys: The scale of each tensor of bytes that represents float images; older files have
            none.
    """

    rows: int
    places: dict[str, list[str | int]]
    ids: dict[str, str]
    frames: list[list[str]]
    greys: dict[str, str]


def chunk_name(buffer_id: str, worker: str, serial: str) -> str:
    """The name of a chunk: ``<buffer>.<worker>.<serial>``.

    The buffer finds the files that a killed worker or run has left by this name (`chunk_pattern`).

    Args:
        serial: A number, optionally preceded by a `get_task_uid`; unique among all chunks of this
            worker and of earlier workers with the same name.
    """
    return f"{_part(buffer_id)}.{_part(worker)}.{_part(serial)}"


def chunk_pattern(buffer_id: str, *workers: str) -> re.Pattern[str]:
    """Pattern for the full names of a buffer's chunks, of all workers or of the given ones."""
    by = "|".join(re.escape(_part(worker)) for worker in workers) or "[A-Za-z0-9_-]+"
    return re.compile(
        rf"{re.escape(_part(buffer_id))}\.(?:{by})\.(?:[0-9a-f]{{16}}_[0-9]+_)?[0-9]+"
    )


def write_chunk(folder: SharedFolder, name: str, data: Samples) -> int:
    """Write samples into the folder; the file appears under its name once it is complete.

    Returns:
        Size of the file in bytes.

    Raises:
        DataError: There are no samples, they contain something other than plain data, or the name
            is invalid.
        CheckpointWriteError: Disk full or no permission; no partial file is left.
    """
    return write_pieces(folder.file(name), chunk_content(name, data))


def chunk_content(name: str, data: Samples) -> list[Buffer]:
    """The content of a chunk, in pieces, some of which are views of the samples.

    Raises:
        DataError: There are no samples, or they contain something other than plain data.
    """
    if not len(data):
        raise DataError(f"chunk {name}: there are no samples to write")
    columns = as_columns(data)
    if columns is not None:
        try:
            return tensor_content(*chunk_tensors(columns))
        except DataError:
            pass  # columns of times, texts or complex numbers: stored as rows
    try:
        return [safe_serial.dumps(list(data))]
    except TypeError as error:
        raise DataError(f"chunk {name}: {error}") from error


def read_chunk(folder: SharedFolder, name: str) -> Samples:
    """Read a chunk, or samples of tensors that ``torch.save`` wrote.

    The caller may write to the columns.

    Raises:
        ChunkError: The chunk is missing, truncated, damaged or not plain data.
        DataError: The name is invalid.
    """
    path = folder.file(name)
    try:
        content = read_content(path)
    except FileNotFoundError as error:
        raise ChunkError(name, "the file is missing") from error
    except OSError as error:
        raise ChunkError(name, f"the file cannot be read: {error.strerror or error}") from error
    except DataError as error:
        raise ChunkError(name, _line(error)) from error
    return parse_chunk(name, content)


def parse_chunk(name: str, content: Buffer) -> Samples:
    """The samples of a chunk's content; columns are views of it.

    Raises:
        ChunkError: The content is truncated, damaged or not plain data.
    """
    try:
        # A safetensors file begins with the length of its header, which may start with this byte.
        if content[:1] in _OF_TORCH and not looks_like_tensors(content):
            return _as_rows(safe_serial.loads(bytes(content)))
        return chunk_columns(*parse_tensors(content))
    except DataError as error:
        raise ChunkError(name, _line(error)) from error
    except pickle.UnpicklingError as error:
        raise ChunkError(name, f"not tensors alone: {_line(error)}") from error
    except Exception as error:  # the parser raises various errors for damaged bytes
        cause = f"the file is damaged: {type(error).__name__}: {_line(error)}"
        raise ChunkError(name, cause) from error


# ---------------------------------------------------------------------- columns


def chunk_tensors(columns: Columns) -> tuple[dict[str, Leaf], ChunkFacts]:
    """Columns as named tensors and arrays, large observations stored once, and the metadata that
    `chunk_columns` needs, as plain JSON.

    Raises:
        DataError: A column's name is not a string.
    """
    if (stored := columns.stored()) is None:
        raise DataError("columns that are no numbers")
    leaves = {path_of(key): leaf for key, (leaf, _) in stored.items()}
    forms = dict(zip(leaves, (form for _, form in stored.values())))
    names = _names(leaves)
    facts: ChunkFacts = {
        "rows": len(columns),
        "places": {name: list(place) for place, name in names.items()},
        "ids": {name: form for place, name in names.items() if type(form := forms[place]) is str},
        "frames": [],
        "greys": {},
    }
    tensors: dict[str, Tree] = {}
    for place in [place for place in leaves if place[0] == "obs"]:
        later = ("next_obs", *place[1:])
        if later not in leaves or forms[later] != forms[place]:
            continue
        if (once := frames_once(leaves[place], leaves[later])) is not None:
            name = _free_name(f"{names[place]}.frames", {*names.values(), *tensors})
            tensors[name] = shown(_small(once[0].source, name, facts), forms[place])
            leaves[place], leaves[later] = once[0].index, once[1].index
            forms[place] = forms[later] = None
            facts["frames"].append([name, names[place], names[later]])
    for place, leaf in leaves.items():
        form, array = forms[place], _small(gathered(leaf), names[place], facts)
        tensors[names[place]] = shown(array, None if isinstance(form, str) else form)
    return tensors, facts


def _small(array: np.ndarray, name: str, facts: ChunkFacts) -> np.ndarray:
    """Float images as bytes, if bytes represent them exactly; any other array unchanged."""
    if array[:1].nbytes < MIN_FRAME_BYTES or (found := as_greys(array)) is None:
        return array
    scale, greys = found
    facts["greys"][name] = scale.name
    return greys


def _names(leaves: Iterable[ColumnPath]) -> dict[ColumnPath, str]:
    """A name in the file for each column path.

    Raises:
        DataError: A column's name is not a string.
    """
    names: dict[ColumnPath, str] = {}
    taken: set[str] = set()
    for place in leaves:
        for part in place:
            if type(part) not in (str, int):
                raise DataError(f"column name {part!r} is a {type(part).__name__}, not text")
        names[place] = _free_name(".".join(map(str, place)), taken)
        taken.add(names[place])
    return names


def _free_name(name: str, taken: Container[str]) -> str:
    # The column "b" of the mapping "a" and a column called "a.b" are two columns.
    while name in taken:
        name += "_"
    return name


def chunk_columns(tensors: Mapping[str, Leaf], facts: Mapping[str, Json]) -> Columns:
    """The inverse of `chunk_tensors`.

    Raises:
        DataError: The tensors and the metadata are inconsistent.
    """
    places, ids = facts.get("places"), facts.get("ids") or {}
    leaves: dict[str, Tree] = dict(tensors)
    for name, scale in (facts.get("greys") or {}).items():
        leaves[name] = _floats(leaves[name], scale, name)
    for frames, *names in facts.get("frames") or []:
        source = leaves.pop(frames)
        for name in names:
            leaves[name] = _checked(source, np.asarray(leaves[name]), name)
    columns: dict[Key, Tree] = {}
    for name in places or leaves:
        leaf, place = leaves[name], (name,) if places is None else tuple(places[name])
        columns[place] = IdColumn(ids[name], np.asarray(leaf)) if name in ids else leaf
        if not len(leaf.shape):
            raise DataError(f"column {name!r} has no rows")
    lengths = {len(leaf) for leaf in leaves.values()}
    if len(lengths) != 1 or facts.get("rows") not in (None, *lengths):
        raise DataError(f"its columns have {sorted(lengths)} rows, not {facts.get('rows')}")
    return Columns(nested(columns))


def _floats(greys: Leaf, scale: str, name: str) -> Leaf:
    array = np.asarray(greys)
    if scale not in GREY_SCALES or array.dtype != np.uint8:
        raise DataError(f"column {name!r} is {array.dtype} in a scale {scale!r}")
    floats = GREY_SCALES[scale].floats(array)
    return floats if isinstance(greys, np.ndarray) else as_tensors(floats)


def _checked(frames: Leaf, index: np.ndarray, name: str) -> IndexedColumn[Any]:
    if index.dtype != np.int64 or index.ndim != 1 or not len(index):
        raise DataError(f"column {name!r} names no observations")
    # Files are not trusted: for numpy, a negative index is valid and refers to another frame.
    if index.min() < 0 or index.max() >= len(frames):
        raise DataError(f"column {name!r} names observations that are missing")
    return IndexedColumn(frames, index)


# ---------------------------------------------------------------------- in states

_COLUMNS = "__chunk__"


def packed(item: Any) -> Any:
    """`item` with each `Columns` (the item itself, or in nested lists) as a tagged dict."""
    if isinstance(item, Columns) and item.stored() is not None:
        return {_COLUMNS: chunk_tensors(item)}
    return [packed(value) for value in item] if isinstance(item, list) else item


def unpacked(item: Any) -> Any:
    """The inverse of `packed`."""
    if isinstance(item, Mapping) and _COLUMNS in item:
        return chunk_columns(*item[_COLUMNS])
    return [unpacked(value) for value in item] if isinstance(item, list) else item


# ---------------------------------------------------------------------- rows


def _as_rows(content: object) -> list[Row]:
    rows = [content] if isinstance(content, dict) else content
    if not isinstance(rows, list | tuple) or not rows:
        raise DataError(f"the file holds a {type(content).__name__}, not samples")
    if not all(isinstance(row, dict) for row in rows):
        raise DataError("the file holds something other than samples (dicts)")
    return list(rows)


def _part(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)[:60] or "_"


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]
