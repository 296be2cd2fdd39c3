"""Checksums of whole archives.

That of an archive of ``torch.save`` is in its comment, at the end of the file, so that plain
``torch.load`` and zip programs read the file as before. The checksums in an archive itself leave
out its headers, and ``torch.load`` looks at none of them.
"""

import os
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any, TypeVar

from ding.utils.errors import DataError
from ding.utils.system_helper import fits_memory

Answer = TypeVar("Answer")

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
        # Archives of torch are not compressed, and no two records are in one place.
        inflated = _of_archive(stream, lambda archive: sum(r.file_size for r in archive.infolist()))
        if inflated > size:
            raise DataError(f"its records inflate to {inflated} bytes, but it has {size} bytes")
        stream.seek(0)
    is_ours = tail[-_COMMENT:].startswith(_MAGIC)
    if is_ours:
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
    return is_ours


def _of_archive(stream: IO[bytes], ask: Callable[[zipfile.ZipFile], Answer]) -> Answer:
    try:
        with zipfile.ZipFile(stream) as archive:
            return ask(archive)
    except Exception as error:  # damaged bytes make the parser raise anything
        raise DataError(f"it is damaged: {error}") from error


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
