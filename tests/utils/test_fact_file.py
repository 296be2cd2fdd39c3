import json
import os

import pytest

from ding.utils.file_helper import read_facts, write_facts

FACTS = {"a": [1, 2.5, None, "ä"], "b": {"c": True}, "when": "2024-01-01"}


def test_facts_come_back_and_others_can_read_them(tmp_path):
    write_facts(tmp_path / "x.json", FACTS)
    assert read_facts(tmp_path / "x.json") == FACTS
    assert json.loads((tmp_path / "x.json").read_text())["b"] == {"c": True}
    assert os.listdir(tmp_path) == ["x.json"]


def test_what_is_written_by_hand_is_read(tmp_path, caplog):
    (tmp_path / "x.json").write_text(json.dumps(FACTS))
    assert read_facts(tmp_path / "x.json") == FACTS
    assert not caplog.records


def test_nothing_is_no_facts(tmp_path, caplog):
    assert read_facts(tmp_path / "x.json") == {}
    assert not caplog.records


def test_every_flipped_bit_is_found_or_harmless(tmp_path, caplog):
    path = tmp_path / "x.json"
    write_facts(path, FACTS)
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        caplog.clear()
        if read_facts(path) != FACTS:
            assert read_facts(path) == {}
            assert "x.json" in caplog.text


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_other_content_is_no_facts_and_named(tmp_path, caplog, content):
    (tmp_path / "x.json").write_bytes(content)
    assert read_facts(tmp_path / "x.json") == {}
    assert "x.json" in caplog.text


def test_a_fifo_does_not_block(tmp_path, caplog):
    os.mkfifo(tmp_path / "x.json")
    assert read_facts(tmp_path / "x.json") == {}
    assert "no regular file" in caplog.text
