"""``run.json`` and ``metrics.jsonl``, whatever is stored there."""

import json
import os

import pytest

from ding.utils.errors import DataError
from ding.utils.run_files import METRICS_CHUNK, parse_row, read_metrics, read_record, whole_rows


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.json").write_text('{"status": "converged", "seed": 3, "mine": [1]}')
    (tmp_path / "metrics.jsonl").write_bytes(b'{"a": 1}\n{"b"')
    return str(tmp_path)


def test_record_has_typed_fields_and_all_facts(folder):
    record = read_record(folder)
    assert (record.status, record.seed, record.best_return) == ("converged", 3, None)
    assert record.facts == {"status": "converged", "seed": 3, "mine": [1]}


def test_no_record_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_record(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        *(("", "Expecting value"), ("[1]", "holds a list"), ("[" * 100_000, "levels deep")),
        *(('{"pid": 1e30}', "'pid'"), ('{"pid": -1}', "'pid'"), ('{"status": 5}', "'status'")),
        *(('{"best_return": NaN}', "NaN"), ('{"seconds": 1e999}', "range of a float")),
        *(('{"reason": []}', "'reason'"), ('{"earlier_runs": 5}', "'earlier_runs'")),
        ('{"status": "x", "checksum": "crc32 of the other entries: 0"}', "checksum"),
    ],
)
def test_record_that_is_damaged_is_refused_with_the_cause(folder, text, cause):
    with open(f"{folder}/run.json", "w") as file:
        file.write(text)
    with pytest.raises(DataError, match=rf"^run\.json cannot be read: .*{cause}"):
        read_record(folder)


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda path: os.symlink("/etc/hostname", path), "it is a link"),
        (os.mkfifo, "it is no regular file"),
        (os.mkdir, "it is no regular file"),
    ],
)
def test_what_is_no_file_is_not_read(folder, make, cause):
    for name, read in (("run.json", read_record), ("metrics.jsonl", lambda f: read_metrics(f, 0))):
        os.remove(f"{folder}/{name}")
        make(f"{folder}/{name}")
        with pytest.raises((DataError, OSError), match=cause):
            read(folder)


def test_metrics_come_in_whole_lines(folder):
    piece = read_metrics(folder, 0)
    assert (piece.content, piece.offset) == (b'{"a": 1}\n', 9)
    with open(f"{folder}/metrics.jsonl", "ab") as file:
        file.write(b": 2}\n")
    assert read_metrics(folder, piece.offset).content == b'{"b": 2}\n'


def test_metrics_restart_where_the_file_was_truncated(folder):
    assert read_metrics(folder, 9).content == b""
    piece = read_metrics(folder, 14)
    assert piece.restarted
    assert piece.content == b'{"a": 1}\n'


def test_a_line_without_end_is_passed_over(folder):
    with open(f"{folder}/metrics.jsonl", "wb") as file:
        file.write(b"x" * (METRICS_CHUNK + 5) + b"\n{}\n")
    piece = read_metrics(folder, 0)
    assert (piece.content, piece.offset) == (b"", METRICS_CHUNK)
    assert read_metrics(folder, piece.offset).content.endswith(b"\n{}\n")


def test_rows_that_are_not_json_are_left_out():
    good = b'{"time": 1, "a": null}\n'
    bad = b'{"a": NaN}\n{"a"\n\xff\xfe\n[1]\n\n{"a": 1}\r{"a": 2}\n'
    assert whole_rows(good + bad + good) == good + good


def test_a_row_is_numbers_by_tag():
    row = parse_row(json.dumps({"time": 1.5, "step": 2, "a/b": 0.5, "a/c": None}).encode())
    assert row == (1.5, 2, {"a/b": 0.5, "a/c": None})


@pytest.mark.parametrize("line", ['{"step": 1}', '{"time": true}', '{"time": 1, "a": "x"}', "5"])
def test_other_rows_are_refused(line):
    with pytest.raises(ValueError):
        parse_row(line.encode())
