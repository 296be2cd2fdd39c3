"""The page beside a parallel run, from its start until after its end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from ding.board.server import BoardServer
from ding.entry.ask_status import live_status
from ding.entry.run_files import coordinator_address

sync_api = pytest.importorskip("playwright.sync_api", reason="the extra 'browser' is not installed")
expect = sync_api.expect
pytestmark = pytest.mark.slow  # a browser starts

ROOT = Path(__file__).parent.parent.parent
CONFIG = ROOT / "configs" / "cartpole" / "parallel" / "cartpole_dqn_config.py"


@pytest.fixture
def run(page):
    """A parallel run in ``runs/run`` that is as far as to have an address."""
    command = [sys.executable, "-m", "ding", "-c", str(CONFIG), "--exp-name", "runs/run", "--quiet"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
        try:
            while coordinator_address("runs/run") is None:
                assert process.poll() is None
            yield process
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.mark.timeout(240)
def test_board_follows_a_run_until_it_has_converged(page, run):
    server = BoardServer("runs", live_status, port=0)
    server.start()
    try:
        page.goto(f"{server.url}#/runs/run/workers")
        expect(page.locator("tr", has_text="learner0")).to_be_visible(timeout=60_000)
        page.get_by_role("link", name="curves").click()
        card = page.locator("figure", has_text="Return in evaluations")
        expect(card.locator(".last")).not_to_be_empty(timeout=60_000)
        expect(page.locator("h1 .badge")).to_have_text("✓ converged", timeout=120_000)
        expect(page.locator(".reason")).to_contain_text("reached stop_value 195")
        page.get_by_role("link", name="workers").click()
        expect(page.get_by_text("The run is over")).to_be_visible()
    finally:
        server.close()


@pytest.mark.timeout(240)
def test_page_of_the_coordinator_outlives_it(page, run):
    address = coordinator_address("runs/run")
    url = f"http://{address['host']}:{address['port']}/"
    assert requests.get(url, timeout=5).ok
    page.goto(url)
    expect(page.locator("h1")).to_contain_text("run")
    expect(page.get_by_role("link", name="all runs")).to_have_count(0)
    expect(page.locator("#link")).to_contain_text("no connection", timeout=120_000)
    expect(page.locator("figure", has_text="Return in evaluations")).to_be_visible()
    expect(page.get_by_text("The coordinator does not answer any more")).to_be_visible()
