"""Records of TensorBoard event files.

A scalar costs a few microseconds here and starts no thread, against 50 and a queue for a general
writer. An event file is a sequence of TFRecords (length, CRC of the length, data, CRC of the data;
CRC-32C, rotated and offset), each holding one ``Event`` protocol buffer.
"""

import functools
import itertools
import math
import os
import socket
import struct
import time
from collections.abc import Mapping

_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected
_file_number = itertools.count()


def new_event_file_name() -> str:
    """A name that TensorBoard recognises and that no other writer uses."""
    return (
        f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
        f".{os.getpid()}.{next(_file_number)}"
    )


def first_record() -> bytes:
    """The record that an event file begins with: its version."""
    version = b"brain.Event:2"
    return record(_wall_time(time.time()) + b"\x1a" + _sized(version))


def scalar_record(values: Mapping[str, float], step: int | None, wall_time: float) -> bytes:
    """One record that holds all scalars of a step."""
    summary = b"".join([_scalar_field(tag, value) for tag, value in values.items()])
    return summary_record(summary, step, wall_time)


def summary_record(summary: bytes, step: int | None, wall_time: float) -> bytes:
    """One record with a serialised ``Summary`` message."""
    step_field = b"\x10" + _varint(int(step)) if step is not None else b""
    return record(_wall_time(wall_time) + step_field + b"\x2a" + _sized(summary))


def record(event: bytes) -> bytes:
    """Frame a serialised ``Event`` message."""
    length = struct.pack("<Q", len(event))
    return b"".join(
        (
            length,
            struct.pack("<I", _masked_crc(length)),
            event,
            struct.pack("<I", _masked_crc(event)),
        )
    )


def _wall_time(seconds: float) -> bytes:
    return b"\x09" + struct.pack("<d", seconds)


def _scalar_field(tag: str, value: float) -> bytes:
    try:
        packed = struct.pack("<f", value)
    except OverflowError:  # the format holds single precision
        packed = struct.pack("<f", math.copysign(math.inf, value))
    return _scalar_header(tag) + packed


@functools.lru_cache(maxsize=4096)
def _scalar_header(tag: str) -> bytes:
    """Everything of a value's field that comes before its four bytes."""
    head = b"\x0a" + _sized(tag.encode()) + b"\x15"
    return b"\x0a" + _varint(len(head) + 4) + head


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _crc_table() -> tuple[int, ...]:
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_TABLE = _crc_table()


def _masked_crc(data: bytes) -> int:
    table = _TABLE
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
