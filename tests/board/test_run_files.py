"""What is read of a run's folder, whatever lies in it."""

import os

import pytest

from ding.board.run_files import (
    METRICS_CHUNK,
    list_files,
    read_config,
    read_log,
    read_metrics,
    read_record,
    video_path,
)

from .run_folders import make_run


@pytest.fixture
def folder(tmp_path):
    return make_run(tmp_path / "run")


def test_config_is_flat_and_is_not_run(folder):
    with open(folder / "total_config.py", "a") as file:
        file.write("import os\nos.remove('metrics.jsonl')\nraise SystemExit\n")
    config = read_config(str(folder))
    assert config["policy.learn.learning_rate"] == "0.001"
    assert config["policy.nstep"] == "3"
    assert config["limit"] == "float('inf')"
    assert (folder / "metrics.jsonl").exists()


def test_config_of_a_script_is_flat_as_well(folder):
    (folder / "total_config.py").write_text("main_config = EasyDict({'a': {'b': [1, 2]}, 'c': {}})")
    assert read_config(str(folder)) == {"main_config.a.b": "[1, 2]", "main_config.c": "{}"}


@pytest.mark.parametrize("text", ["exp_config = {", "\0", "(" * 5000])
def test_config_that_cannot_be_parsed_is_said(folder, text):
    (folder / "total_config.py").write_text(text)
    with pytest.raises(ValueError, match=r"total_config\.py cannot be read"):
        read_config(str(folder))


@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 100_000, '{"status": "con'])
def test_record_that_is_damaged_is_empty(folder, text):
    (folder / "run.json").write_text(text)
    assert read_record(str(folder)) == {}


def test_metrics_come_in_whole_lines(folder):
    path = folder / "metrics.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b"')
    piece = read_metrics(str(folder), 0)
    assert (piece.content, piece.offset) == (b'{"a": 1}\n', 9)
    with open(path, "ab") as file:
        file.write(b": 2}\n")
    assert read_metrics(str(folder), piece.offset).content == b'{"b": 2}\n'


def test_metrics_begin_anew_where_the_file_was_truncated(folder):
    size = (folder / "metrics.jsonl").stat().st_size
    assert read_metrics(str(folder), size).content == b""
    (folder / "metrics.jsonl").write_bytes(b'{"a": 1}\n')
    piece = read_metrics(str(folder), size)
    assert piece.restarted
    assert piece.content == b'{"a": 1}\n'


def test_a_line_without_end_is_passed_over(folder):
    (folder / "metrics.jsonl").write_bytes(b"x" * (METRICS_CHUNK + 5) + b"\n{}\n")
    piece = read_metrics(str(folder), 0)
    assert (piece.content, piece.offset) == (b"", METRICS_CHUNK)
    assert read_metrics(str(folder), piece.offset).content.endswith(b"\n{}\n")


def test_log_is_read_from_its_end_and_then_followed(folder):
    path = folder / "log" / "serial" / "serial_logger.txt"
    path.write_bytes(b"x" * 200_000 + b"\nlast\n")
    piece = read_log(str(folder), "log/serial/serial_logger.txt", None)
    assert piece.content.endswith(b"\nlast\n")
    assert len(piece.content) < 100_000
    with open(path, "ab") as file:
        file.write(b"more\n")
    assert read_log(str(folder), "log/serial/serial_logger.txt", piece.offset).content == b"more\n"


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/passwd", "log/../../secret.txt", "run.json", "link.txt", ""]
)
def test_no_path_leads_out_of_the_folder(folder, path):
    (folder.parent / "secret.txt").write_text("secret")
    os.symlink(folder.parent / "secret.txt", folder / "link.txt")
    os.symlink(folder.parent, folder / "log" / "up")
    with pytest.raises(FileNotFoundError):
        read_log(str(folder), path, None)
    with pytest.raises(FileNotFoundError):
        video_path(str(folder), path)


def test_linked_records_and_metrics_are_not_followed(folder):
    secret = folder.parent / "secret.json"
    secret.write_text('{"status": "secret"}')
    for name in ("run.json", "metrics.jsonl"):
        os.remove(folder / name)
        os.symlink(secret, folder / name)
    assert read_record(str(folder)) == {}
    with pytest.raises(OSError):
        read_metrics(str(folder), 0)


def test_a_fifo_is_not_waited_for(folder):
    os.mkfifo(folder / "log" / "pipe.txt")
    with pytest.raises(OSError):
        read_log(str(folder), "log/pipe.txt", None)


def test_files_are_logs_and_videos_without_checkpoints(folder):
    for path in ("videos/a.mp4", "ckpt/b.mp4", "c.GIF", "ckpt/d.txt", "videos/b.part.mp4"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(b"12345")
    files = list_files(str(folder))
    assert [file["path"] for file in files["videos"]] == ["c.GIF", "videos/a.mp4"]
    assert [file["path"] for file in files["logs"]] == ["log/serial/serial_logger.txt"]
    assert files["videos"][0]["size"] == 5
