"""What a collector says of a file of samples, checked before it is used."""

from collections.abc import Mapping

import numpy as np

from ding.utils.errors import DataError

_MOST_ROWS = 1 << 24


def parse_meta(meta: object) -> tuple[str, int, dict[str, np.ndarray]]:
    """Name and number of samples of a file, and the columns that its rows are known by.

    Args:
        meta: ``data_id``; ``sample_num`` (1 without it), ``collect_iter`` (-1 without it) and
            ``priority``, one value for all samples or one for each. A file that holds a trajectory
            of which one step is the sample has ``unroll_split_begin``.

    Raises:
        DataError: Not such a message.
    """
    if not isinstance(meta, Mapping) or not isinstance(meta.get("data_id"), str):
        raise DataError(f"metadata must be a mapping with data_id, got {_short(meta)}")
    data_id, rows = meta["data_id"], meta.get("sample_num", 1)
    if type(rows) is not int or not 1 <= rows <= _MOST_ROWS:
        raise DataError(f"{_short(data_id)}: sample_num must be a positive integer, got {rows!r}")
    columns = {
        "row": np.arange(rows) + _first_row(meta),
        "collect_iter": _spread(data_id, meta.get("collect_iter"), rows, np.int64),
    }
    if meta.get("priority") is not None:
        columns["priority"] = _spread(data_id, meta["priority"], rows, np.float64)
    return data_id, rows, columns


def _first_row(meta: Mapping[str, object]) -> int:
    begin, length = meta.get("unroll_split_begin"), meta.get("unroll_len", 1)
    if begin is None or meta.get("sample_num") is not None:
        return 0
    if type(begin) is not int or begin < 0 or length != 1:
        raise DataError(
            f"{_short(meta['data_id'])}: unroll_split_begin={_short(begin)} and "
            f"unroll_len={_short(length)} came: of a trajectory in one file single steps can be "
            f"sampled; for longer ones let the collector write columns"
        )
    return begin


def _spread(data_id: str, value: object, rows: int, dtype: type) -> np.ndarray:
    try:
        if type(value) is int:
            return np.full(rows, value, dtype)
        array: np.ndarray = np.asarray(-1 if value is None else value, dtype)
        if array.shape in ((), (rows,)):
            return np.array(np.broadcast_to(array, (rows,)))
    except (TypeError, ValueError, OverflowError):
        pass
    raise DataError(f"{_short(data_id)}: {_short(value)} does not fit {rows} samples")


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."
