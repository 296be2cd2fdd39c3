"""What is read of a run's folder, whatever lies in it."""

import os

import pytest

from ding.board.run_files import list_files, open_video, read_config, read_log

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


@pytest.mark.parametrize(
    "text",
    ["exp_config = {", "\0", "(" * 5000, "exp_config = " + "-" * 5000 + "1", "#" * (2 << 20)],
)
def test_config_that_cannot_be_parsed_is_said(folder, text):
    (folder / "total_config.py").write_text(text)
    with pytest.raises(ValueError, match=r"total_config\.py cannot be read"):
        read_config(str(folder))


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
        open_video(str(folder), path)


def test_a_fifo_is_neither_listed_nor_waited_for(folder):
    for name in ("pipe.txt", "pipe.mp4"):
        os.mkfifo(folder / "log" / name)
    files = list_files(str(folder))
    assert not any("pipe" in file["path"] for kind in files.values() for file in kind)
    with pytest.raises(FileNotFoundError):
        read_log(str(folder), "log/pipe.txt", None)
    with pytest.raises(FileNotFoundError):
        open_video(str(folder), "log/pipe.mp4")


def test_names_that_are_not_utf8_have_a_path_that_leads_to_them(folder):
    path = os.path.join(os.fsencode(folder), b"log", b"100%\xff.txt")
    with open(path, "wb") as file:
        file.write(b"content")
    paths = [file["path"] for file in list_files(str(folder))["logs"]]
    assert "log/100%25%FF.txt" in paths
    assert read_log(str(folder), "log/100%25%FF.txt", None).content == b"content"


def test_a_folder_of_very_many_files_is_looked_at_in_part(folder, monkeypatch):
    monkeypatch.setattr("ding.board.run_files.MAX_ENTRIES", 10)
    (folder / "many").mkdir()
    for i in range(20):
        (folder / "many" / str(i)).touch()
    (folder / "many" / "sub").mkdir()
    (folder / "many" / "sub" / "late.txt").touch()
    assert "many/sub/late.txt" not in [f["path"] for f in list_files(str(folder))["logs"]]


def test_files_are_logs_and_videos_without_checkpoints(folder):
    for path in ("videos/a.mp4", "ckpt/b.mp4", "c.GIF", "ckpt/d.txt", "videos/b.part.mp4"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(b"12345")
    files = list_files(str(folder))
    assert [file["path"] for file in files["videos"]] == ["c.GIF", "videos/a.mp4"]
    assert [file["path"] for file in files["logs"]] == ["log/serial/serial_logger.txt"]
    assert files["videos"][0]["size"] == 5
