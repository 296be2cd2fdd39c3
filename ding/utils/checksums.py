"""Checksums of whole archives.

That of an archive of ``torch.save`` stands in its comment, at the end of the file, so that plain
``torch.load`` and zip programs read the file as ever. The checksums in an archive itself leave out
its headers, and ``torch.load`` looks at none of them.
"""

import os
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

from ding.utils.errors import DataError
from ding.utils.system_helper import fits_memory

_MAGIC = b"ding-crc"
#: The comment: the magic, and the CRC-32 as hexadecimal digits.
_COMMENT = len(_MAGIC) + 8
#: The record at an archive's end; its last two bytes are the comment's length.
_END = 22
_END_MAGIC = b"PK\x05\x06"
_START_MAGIC = b"PK\x03\x04"
_PIECE = 1 << 20


def write_sealed(stream: IO[bytes], write: Callable[[Any], object]) -> None:
    """Have an archive without a comment written, and put its checksum behind it.

    Args:
        stream: Seekable; the archive starts at its beginning.
        write: Writes the archive into the stream that it is given.
    """
    checked = _Checked(stream)
    write(checked)
    stream.seek(-2, os.SEEK_END)
    stream.write(_COMMENT.to_bytes(2, "little") + _MAGIC + b"%08x" % checked.crc)


def check_sealed(stream: IO[bytes]) -> bool:
    """Find out whether a file is as it was written; leaves the stream at its beginning.

    Archives without our checksum, which others wrote, are checked as far as the archive's own
    checksums reach. What is no archive is not checked at all.

    Returns:
        Whether it has our checksum.

    Raises:
        DataError: It is cut short or damaged, or larger than the memory, as it is or inflated.
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
        _check_sizes(stream, size)
    is_ours = tail[-_COMMENT:].startswith(_MAGIC)
    if is_ours:
        _check_crc(stream, size, tail)
    elif tail[-_END:].startswith(_END_MAGIC) and tail.endswith(bytes(2)):
        _check_records(stream)
    elif start == _START_MAGIC or _END_MAGIC in tail:
        raise DataError(
            f"it is cut short or damaged: its end is missing at {size} bytes, as when its writing "
            f"was interrupted"
        )
    stream.seek(0)
    return is_ours


def _check_sizes(stream: IO[bytes], size: int) -> None:
    # Archives of torch are not compressed, and no two records lie in one place.
    try:
        with zipfile.ZipFile(stream) as archive:
            inflated = sum(record.file_size for record in archive.infolist())
    except Exception as error:  # damaged bytes make the parser raise anything
        raise DataError(f"it is damaged: {error}") from error
    if inflated > size:
        raise DataError(f"its records inflate to {inflated} bytes, but it has {size} bytes")
    stream.seek(0)


def _check_crc(stream: IO[bytes], size: int, tail: bytes) -> None:
    crc, left = 0, size - _COMMENT - 2
    while left > 0 and (piece := stream.read(min(_PIECE, left))):
        crc = zlib.crc32(piece, crc)
        left -= len(piece)
    # The archive had no comment yet when the checksum was taken.
    crc = zlib.crc32(bytes(2), crc)
    length = tail[-_COMMENT - 2 : -_COMMENT]
    if length != _COMMENT.to_bytes(2, "little") or tail[-8:] != b"%08x" % crc:
        raise DataError("it is damaged: its checksum is another")


def _check_records(stream: IO[bytes]) -> None:
    try:
        with zipfile.ZipFile(stream) as archive:
            bad = archive.testzip()
    except Exception as error:  # damaged bytes make the parser raise anything
        raise DataError(f"it is damaged: {error}") from error
    if bad is not None:
        raise DataError(f"it is damaged: the checksum of its record {bad!r} is another")


class _Checked:
    """Passes on what is written, and counts it into a checksum."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.crc = 0

    def write(self, data: bytes | memoryview) -> int:
        self.crc = zlib.crc32(data, self.crc)
        return self._stream.write(data)

    def flush(self) -> None:
        """Nothing waits here."""
