"""``ding board``: starts, says where, and ends."""

import re
import signal
import subprocess
import sys
import time

import pytest
import requests

from ding.board.server import BoardServer
from ding.utils.errors import ConfigError

from .run_folders import make_run


def _nobody(folder):
    return None


@pytest.fixture
def folder(tmp_path):
    make_run(tmp_path / "runs" / "run")
    return str(tmp_path / "runs")


def test_serves_on_loopback_until_closed(folder):
    server = BoardServer(folder, _nobody, port=0)
    server.start()
    try:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", server.url)
        with requests.Session() as session:  # a connection that stays open
            assert session.get(f"{server.url}api/runs", timeout=5).json()["runs"][0]["id"] == "run"
            start = time.monotonic()
            server.close()
        assert time.monotonic() - start < 15
    finally:
        server.close()


def test_taken_port_is_said(folder):
    server = BoardServer(folder, _nobody, port=0)
    server.start()
    try:
        port = int(re.search(r":(\d+)/", server.url)[1])
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            BoardServer(folder, _nobody, port=port)
    finally:
        server.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_command_serves_until_a_signal(folder, number):
    command = [sys.executable, "-m", "ding", "board", folder, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            assert folder in line
            url = re.search(r"http://\S+", line)[0]
            for _ in range(1000):
                try:
                    answer = requests.get(f"{url}api/runs", timeout=5)
                    break
                except requests.ConnectionError:
                    time.sleep(0.02)
            assert answer.json()["root"] == folder
            process.send_signal(number)
            assert process.wait(10) == 0
        finally:
            process.kill()
