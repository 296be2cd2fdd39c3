"""Small files and messages that would take much memory."""

import io
import zipfile

import numpy as np
import pytest
import torch

from ding.torch_utils.tensor_file import read_tensors
from ding.utils import compression_helper, read_file, safe_serial, save_file, system_helper
from ding.utils.errors import CheckpointError, DataError
from ding.utils.system_helper import available_memory


def repacked(path, change):
    """Write an archive of torch again, each record as `change` puts it into the new one."""
    with zipfile.ZipFile(path) as archive:
        records = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in records.items():
            change(archive, name, content)


def test_a_compressed_archive_is_refused(tmp_path):
    path = str(tmp_path / "bomb.pth.tar")
    torch.save({"a": torch.zeros(1 << 20)}, path)
    repacked(path, lambda archive, *record: archive.writestr(*record, zipfile.ZIP_DEFLATED, 9))
    with pytest.raises(CheckpointError, match=r"records inflate to 4\d{6} bytes, but it has \d{4}"):
        read_file(path)


def test_records_in_one_place_are_refused(tmp_path):
    path = str(tmp_path / "bomb.pth.tar")
    torch.save({"a": torch.zeros(1 << 16)}, path)

    def point(archive, name, content):
        archive.writestr(name, content)
        for i in range(20):
            info = archive.infolist()[-1] if i else archive.getinfo(name)
            archive.filelist.append(info)

    repacked(path, point)
    with pytest.raises(CheckpointError, match="records inflate to"):
        read_file(path)


def test_a_tensor_that_repeats_one_value_is_refused_where_its_copy_is_large():
    for size, fits in ((1 << 10, True), (1 << 34, False)):
        stream = io.BytesIO()
        torch.save({"a": [torch.zeros(1).expand(size)]}, stream)
        if fits:
            assert safe_serial.loads(stream.getvalue())["a"][0].shape == (size,)
        else:
            with pytest.raises(DataError, match=r"68719476736 bytes, but 4 are stored"):
                safe_serial.loads(stream.getvalue())


def test_an_array_of_objects_has_as_many_as_its_shape_says():
    stream = io.BytesIO()
    torch.save({"__ding__": "array", "shape": (1 << 40,), "items": [1, 2]}, stream)
    with pytest.raises(DataError, match="has 2 items"):
        safe_serial.loads(stream.getvalue())


def test_a_file_with_holes_is_not_read(tmp_path, monkeypatch):
    path = str(tmp_path / "holes.safetensors")
    with open(path, "wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(DataError, match="does not fit into the memory: 4398046511104 bytes"):
        read_tensors(path)
    with pytest.raises(CheckpointError, match="does not fit into the memory"):
        read_file(path)
    monkeypatch.setattr(system_helper, "available_memory", lambda: 10)
    save_file(path, {"a": 1})
    assert read_file(path) == {"a": 1}


def test_available_memory_is_a_part_of_the_machine():
    assert 1 << 20 < available_memory() <= 1 << 63


@pytest.mark.parametrize("name", ["lz4", "zlib"])
def test_what_inflates_too_far_is_refused(name, monkeypatch):
    pytest.importorskip("lz4")
    pack = compression_helper.get_data_compressor(name)
    unpack = compression_helper.get_data_decompressor(name)
    packed = pack({"a": np.zeros(1 << 20, np.uint8)})
    assert unpack(packed)["a"].shape == (1 << 20,)
    monkeypatch.setattr(compression_helper, "MAX_INFLATED", 1 << 19)
    with pytest.raises(DataError, match="inflates to more than 524288 bytes"):
        unpack(packed)
    with pytest.raises(DataError, match="cannot be decompressed"):
        unpack(packed[:-20])


def test_a_picture_of_too_many_pixels_is_refused():
    head = b"\xff\xd8" + b"\xff\xe0\x00\x04ab" + b"\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03"
    with pytest.raises(DataError, match="declare a JPEG of over 67108864 pixels"):
        compression_helper.jpeg_data_decompressor(head)
