"""Compression of plain data (in the format of `safe_serial`), and pickling of functions."""

import zlib
from collections.abc import Callable
from types import ModuleType
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from ding.utils.errors import DataError, UnknownTypeError
from ding.utils.system_helper import available_memory
from ding.utils.types import Tree

#: Maximum number of bytes after decompression, and of pixels of an image.
MAX_INFLATED = 1 << 30
MAX_PIXELS = 1 << 26


Data = TypeVar("Data")
#: Converts plain data to bytes, or bytes to plain data.
Codec: TypeAlias = Callable[..., Tree]


class _Inflator(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class CloudPickleWrapper(Generic[Data]):
    """Pickles functions, lambdas and closures for a subprocess."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def __getstate__(self) -> bytes:
        import cloudpickle

        return cloudpickle.dumps(self.data)

    def __setstate__(self, content: bytes) -> None:
        import cloudpickle

        self.data = cloudpickle.loads(content)


def _serial() -> ModuleType:
    # Worker processes of env managers need only the wrapper above, and thus do not import torch.
    from ding.utils import safe_serial

    return safe_serial


def dummy_compressor(data: Data) -> Data:
    """The data itself."""
    return data


def zlib_data_compressor(data: object) -> bytes:
    """Compress plain data (see `safe_serial.dump`): high ratio, slow."""
    return zlib.compress(_serial().dumps(data))


def lz4_data_compressor(data: object) -> bytes:
    """Compress plain data (see `safe_serial.dump`): fast."""
    return _lz4().compress(_serial().dumps(data))


def jpeg_data_compressor(data: np.ndarray) -> bytes:
    """Compress an image, uint8 ``[H, W, C]`` or ``[H, W]``, to JPEG; lossy."""
    done, content = _cv2().imencode(".jpg", data)
    if not done:
        raise DataError(f"cannot make a JPEG of an array of shape {data.shape}, {data.dtype}")
    return content.tobytes()


def get_data_compressor(name: str) -> Codec:
    """The function for ``'lz4'``, ``'zlib'``, ``'jpeg'`` or ``'none'``."""
    return _by_name(_COMPRESSORS, name)


dummy_decompressor = dummy_compressor


def lz4_data_decompressor(compressed_data: bytes) -> Tree:
    """The inverse of `lz4_data_compressor`.

    Raises:
        DataError: The bytes are damaged, decompress to more than `MAX_INFLATED` bytes, or contain
            something other than plain data.
    """
    return _unpacked(_lz4().LZ4FrameDecompressor(), compressed_data)


def zlib_data_decompressor(compressed_data: bytes) -> Tree:
    """The inverse of `zlib_data_compressor`.

    Raises:
        DataError: The bytes are damaged, decompress to more than `MAX_INFLATED` bytes, or contain
            something other than plain data.
    """
    return _unpacked(zlib.decompressobj(), compressed_data)


def jpeg_data_decompressor(compressed_data: bytes, gray_scale: bool = False) -> np.ndarray:
    """The image, uint8 ``[H, W, 3]``, or ``[H, W]`` with `gray_scale`.

    Raises:
        DataError: The bytes are not a JPEG, or it has more than `MAX_PIXELS` pixels.
    """
    # Check before OpenCV allocates the size that the header declares.
    if _jpeg_pixels(compressed_data) > MAX_PIXELS:
        raise DataError(f"{len(compressed_data)} bytes declare a JPEG of over {MAX_PIXELS} pixels")
    cv2 = _cv2()
    mode = cv2.IMREAD_GRAYSCALE if gray_scale else cv2.IMREAD_COLOR
    picture = cv2.imdecode(np.frombuffer(compressed_data, np.uint8), mode)
    if picture is None:
        raise DataError(f"{len(compressed_data)} bytes are not a JPEG")
    return picture


def get_data_decompressor(name: str) -> Codec:
    """The function for ``'lz4'``, ``'zlib'``, ``'jpeg'`` or ``'none'``."""
    return _by_name(_DECOMPRESSORS, name)


_COMPRESSORS: dict[str, Codec] = {
    "lz4": lz4_data_compressor,
    "zlib": zlib_data_compressor,
    "jpeg": jpeg_data_compressor,
    "none": dummy_compressor,
}
_DECOMPRESSORS: dict[str, Codec] = {
    "lz4": lz4_data_decompressor,
    "zlib": zlib_data_decompressor,
    "jpeg": jpeg_data_decompressor,
    "none": dummy_decompressor,
}


def _by_name(table: dict[str, Codec], name: str) -> Codec:
    if name not in table:
        raise UnknownTypeError(f"unknown compression {name!r}; choose one of {', '.join(table)}")
    return table[name]


def _unpacked(inflator: _Inflator, content: bytes) -> Tree:
    try:
        # Half of the memory: the parsed data needs as much as the decompressed bytes.
        inflated = inflator.decompress(content, min(MAX_INFLATED, available_memory() // 2))
        if not inflator.eof:
            raise DataError(f"it is cut short, or inflates to more than {len(inflated)} bytes")
        return _serial().loads(inflated)
    except Exception as error:  # the parsers raise various errors for damaged bytes
        raise DataError(f"{len(content)} bytes cannot be decompressed: {error}") from error


def _jpeg_pixels(content: bytes) -> int:
    """Height times width, from the frame header; 0 if there is none."""
    place = 2
    while place + 9 <= len(content) and content[place] == 0xFF:
        marker, length = content[place + 1], int.from_bytes(content[place + 2 : place + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = content[place + 5 : place + 7], content[place + 7 : place + 9]
            return int.from_bytes(height, "big") * int.from_bytes(width, "big")
        place += 2 + length if marker != 0xFF else 1
    return 0


def _lz4() -> ModuleType:
    try:
        import lz4.frame
    except ImportError as error:
        raise ImportError("lz4 compression needs the package lz4: pip install lz4") from error
    return lz4.frame


def _cv2() -> ModuleType:
    try:
        import cv2
    except ImportError as error:
        raise ImportError("JPEG needs OpenCV: pip install opencv-python-headless") from error
    return cv2
