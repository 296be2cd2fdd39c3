"""A browser for the tests that look at the page."""

import os
import shutil

import pytest


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="the extra 'browser' is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no Chromium on the PATH")
    with api.sync_playwright() as playwright:
        # Containers run as root, for whom its sandbox does not work.
        args = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=args)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page that may ask this machine alone, and must not complain."""
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("request", lambda request: _check_is_local(request.url, complaints))
    yield page
    page.close()
    assert complaints == []


def _check_is_local(url, complaints):
    if not url.startswith(("http://127.0.0.1:", "data:", "blob:")):
        complaints.append(f"asks {url}")
