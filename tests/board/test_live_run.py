"""The page of a parallel run, from its start until after its end."""

import os
import signal

import pytest

from ding.board.server import BoardServer
from ding.entry.run.status import coordinator_address, live_status
from tests.children import wait_for
from tests.parallel.runs import parallel_run

sync_api = pytest.importorskip("playwright.sync_api", reason="the extra 'browser' is not installed")
expect = sync_api.expect
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]  # a browser starts


def evaluations(page):
    return page.locator("figure", has_text="Return in evaluations")


def test_board_follows_a_run_until_it_has_converged(page, tmp_path):
    server = BoardServer("runs", live_status, port=0)
    server.start()
    try:
        with parallel_run(tmp_path, exp_name="runs/run", gated=True) as run:
            wait_for(lambda: coordinator_address("runs/run"))
            page.goto(f"{server.url}#/runs/run/workers")
            expect(page.locator("tr", has_text="learner0")).to_be_visible(timeout=60_000)
            page.get_by_role("link", name="curves").click()
            expect(evaluations(page).locator(".last")).not_to_be_empty(timeout=60_000)
            run.let_converge()
            expect(page.locator("h1 .badge")).to_have_text("✓ converged", timeout=120_000)
            expect(page.locator(".reason")).to_contain_text("reached stop_value 9.5")
            page.get_by_role("link", name="workers").click()
            expect(page.get_by_text("The run is over")).to_be_visible()
            assert run.end() == 0
    finally:
        server.close()


def test_page_of_the_coordinator_outlives_it(page, tmp_path):
    with parallel_run(tmp_path, exp_name="runs/run", stop_value=100) as run:
        wait_for(lambda: coordinator_address("runs/run"))
        address = coordinator_address("runs/run")
        page.goto(f"http://{address['host']}:{address['port']}/")
        expect(page.locator("h1")).to_contain_text("run")
        expect(page.get_by_role("link", name="all runs")).to_have_count(0)
        expect(evaluations(page)).to_be_visible(timeout=60_000)
        os.kill(run.process.pid, signal.SIGINT)
        expect(page.locator("#link")).to_contain_text("no connection", timeout=60_000)
        expect(evaluations(page)).to_be_visible()
        expect(page.get_by_text("The coordinator does not answer any more")).to_be_visible()
        assert run.end() == 130
