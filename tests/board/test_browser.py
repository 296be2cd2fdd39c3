"""The page in a real browser."""

import csv
import json
import re

import pytest

from ding.board.server import BoardServer
from ding.utils.file_helper import read_facts

from .run_folders import add_rows, make_run, write_record

sync_api = pytest.importorskip("playwright.sync_api", reason="the extra 'browser' is not installed")
expect = sync_api.expect
expect.set_options(timeout=60_000)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]  # a browser starts


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def url(page, runs):
    runs.mkdir()
    server = BoardServer(str(runs), lambda folder: read_facts(f"{folder}/live.json"), port=0)
    server.start()
    yield server.url
    server.close()


def test_list_filters_sorts_and_groups(page, runs, url):
    make_run(runs / "pong_seed0", best_return=5.0)
    make_run(runs / "pong_seed1", seed=1, best_return=7.0, returns=(18.0,))
    make_run(runs / "lander", status="failed", reason="the disk is full", best_return=6.0)
    page.goto(url)
    rows = page.locator("tr.run")
    expect(rows).to_have_count(3)
    page.keyboard.press("/")
    page.keyboard.type("disk")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("lander")
    page.get_by_label("Filter runs").fill("")
    page.get_by_label("Status").select_option("converged")
    expect(rows).to_have_count(2)
    page.get_by_label("Status").select_option("")
    head = page.get_by_role("columnheader", name="Best return")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(rows.locator("td.return")).to_have_text(["7", "6", "5"])
    head.get_by_role("button").click()
    expect(rows.locator("td.return")).to_have_text(["5", "6", "7"])
    page.get_by_label("group by config").check()
    expect(page.locator("tr.group")).to_have_count(2)
    expect(page.locator("tr.group", has_text="pong")).to_contain_text("2 runs, last return 24 ± 6")
    page.get_by_role("button", name="pong").click()
    expect(rows).to_have_count(1)


def test_filter_takes_conditions_and_stays_in_the_address(page, runs, url):
    make_run(runs / "slow", learning_rate=1e-5, status="failed")
    make_run(runs / "fast", learning_rate=0.01, seed=3)
    make_run(runs / "fast_smoke", learning_rate=0.01, seed=4)
    page.goto(url)
    rows = page.locator("tr.run")
    box = page.get_by_label("Filter runs")
    for text, expected in (
        ("lr>1e-4", 2),
        ("lr>1e-4 -smoke", 1),
        ("status:failed", 1),
        ("-status:failed seed:3", 1),
        ("policy.nstep=3", 3),
        ("nstep=4", 0),
    ):
        box.fill(text)
        expect(rows).to_have_count(expected)
    box.fill("lr>1e-4 -smoke")
    expect(rows).to_have_count(1)
    page.reload()
    expect(page.get_by_label("Filter runs")).to_have_value("lr>1e-4 -smoke")
    expect(rows).to_have_count(1)


def test_columns_are_chosen_and_stay_in_the_address(page, runs, url):
    for i, rate in enumerate((0.01, 1e-5, 0.5)):
        make_run(runs / f"run{i}", learning_rate=rate)
    page.goto(url)
    page.locator("summary", has_text="Columns").click()
    page.get_by_label("Search columns").fill("rate")
    page.get_by_label("policy.learn.learning_rate").check()
    values = page.locator("td.value")
    expect(values).to_have_count(3)
    page.get_by_label("Search columns").fill("seed")
    page.get_by_label("Seed", exact=True).uncheck()
    expect(page.locator("td.seed")).to_have_count(0)
    page.locator("summary", has_text="Columns").click()  # it covers the heads
    page.get_by_role("columnheader", name="learning_rate").get_by_role("button").click()
    expect(values).to_have_text(["1.00e-5", "0.01", "0.5"])
    page.reload()
    expect(values).to_have_text(["1.00e-5", "0.01", "0.5"])
    expect(page.locator("td.seed")).to_have_count(0)
    page.locator("summary", has_text="Columns").click()
    page.get_by_role("button", name="The usual ones").click()
    expect(page.locator("td.seed")).to_have_count(3)


def test_compared_runs_are_named_by_what_differs(page, runs, url):
    make_run(runs / "dqn_seed0", learning_rate=0.5)
    make_run(runs / "dqn_seed1", seed=1)
    page.goto(f"{url}#/runs/dqn_seed0,dqn_seed1")
    names = page.locator(".legend li a:not(.remove)")
    expect(names).to_have_text(["dqn_seed0, learning_rate 0.5", "dqn_seed1, learning_rate 0.001"])


def test_runs_are_picked_and_compared_by_keyboard(page, runs, url):
    make_run(runs / "a", started="2026-01-03T00:00:00+00:00", learning_rate=0.5)
    make_run(runs / "b", started="2026-01-02T00:00:00+00:00")
    page.goto(url)
    expect(page.locator("tr.run")).to_have_count(2)
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_role("link", name="Compare 2 runs")).to_be_visible()
    page.keyboard.press("c")
    expect(page.locator("h1")).to_have_text("2 runs side by side")
    expect(page.locator(".plot canvas").first).to_be_visible()
    page.get_by_role("link", name="config").click()
    differing = page.locator("tbody tr", has_text="policy.learn.learning_rate")
    expect(differing.locator("td")).to_have_text(["0.5", "0.001"])
    expect(page.locator("tbody tr", has_text="policy.nstep")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator("tr.run")).to_have_count(2)


def test_curves_have_titles_units_and_axes_to_choose(page, runs, url):
    make_run(runs / "run")
    page.goto(f"{url}#/runs/run")
    card = page.locator("figure", has_text="Return in evaluations")
    plot = card.locator(".plot")
    expect(plot).to_have_attribute("aria-label", re.compile("over environment steps, last 30"))
    expect(card.locator(".last")).to_have_text("30")
    page.get_by_label("Horizontal axis").select_option("iter")
    expect(plot).to_have_attribute("aria-label", re.compile("over updates"))
    page.get_by_label("Horizontal axis").select_option("time")
    expect(plot).to_have_attribute("aria-label", re.compile(r"over time \(seconds\)"))
    page.get_by_label("smoothing").fill("0.9")
    assert len(saved(page, card)) == 1 + 3


def saved(page, card):
    """The rows of a card's values."""
    with page.expect_download() as download:
        card.get_by_role("button", name="Save the values").click()
    with open(download.value.path(), encoding="utf-8") as file:
        return list(csv.reader(file))


def test_values_and_picture_of_a_curve_are_saved(page, runs, url):
    make_run(runs / "run")
    page.goto(f"{url}#/runs/run")
    card = page.locator("figure", has_text="Return in evaluations")
    expect(card.locator(".last")).to_have_text("30")
    rows = saved(page, card)
    assert rows[0] == ["run", "environment steps", "value", "low", "high"]
    assert [row[1:3] for row in rows[1:]] == [["0", "10"], ["100", "20"], ["200", "30"]]
    with page.expect_download() as download:
        card.get_by_role("button", name="Save the picture").click()
    with open(download.value.path(), "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"


def test_rows_out_of_order_are_sorted(page, runs, url):
    folder = make_run(runs / "run", metrics=False)
    add_rows(folder, [30.0], start=2)
    add_rows(folder, [10.0, 20.0])
    page.goto(f"{url}#/runs/run")
    card = page.locator("figure", has_text="Return in evaluations")
    expect(card.locator(".last")).to_have_text("30")
    assert [row[1] for row in saved(page, card)[1:]] == ["0", "100", "200"]


def test_losses_of_updates_are_shown_over_env_steps(page, runs, url):
    make_run(runs / "run", returns=[1.0] * 9)
    page.goto(f"{url}#/runs/run")
    card = page.locator("figure", has_text="Loss")
    expect(card.locator(".plot canvas")).to_be_visible()
    assert [row[1] for row in saved(page, card)[1:]][-1] == "800"


def test_mean_and_band_are_over_the_seeds_of_a_config(page, runs, url):
    for seed in range(3):
        make_run(runs / f"run_seed{seed}", seed=seed, returns=[1.0 * seed, 10.0 * seed])
    page.goto(f"{url}#/runs/run_seed0,run_seed1,run_seed2")
    card = page.locator("figure", has_text="Return in evaluations")
    expect(card.locator(".keys li")).to_have_text(["run (3 seeds)10"])
    last = saved(page, card)[-1]
    assert [float(value) for value in last[1:3]] == [100, 10]
    assert float(last[3]) < 10 < float(last[4])
    # The band has a fifth of the curve's opacity.
    pale = card.locator("canvas").evaluate(
        "canvas => { const { width, height } = canvas; let count = 0;"
        "const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);"
        "for (let i = 3; i < data.length; i += 4) count += data[i] > 45 && data[i] < 57;"
        "return count / (width * height); }"
    )
    assert pale > 0.1
    page.get_by_label("mean over seeds").uncheck()
    expect(card.locator(".keys li")).to_have_count(3)


def test_workers_use_of_the_machine_is_one_card_each(page, runs, url):
    folder = make_run(runs / "run")
    with open(folder / "metrics.jsonl", "a") as file:
        for step in (1, 2):
            used = {"usage_iter/cpu_percent/learner0": 80, "usage_iter/cpu_percent/c0": 20 * step}
            file.write(json.dumps({"time": 1001.0 + step, "step": step, **used}) + "\n")
    page.goto(f"{url}#/runs/run")
    page.get_by_role("heading", name="Machine").click()
    card = page.locator("figure", has_text="usage/cpu_percent")
    expect(card.locator(".keys li")).to_have_text(["learner080", "c040"])
    expect(card.locator(".last")).to_have_text("")


def test_run_is_followed_to_its_end(page, runs, url):
    folder = make_run(runs / "run", status="running", reason="", best_return=None)
    page.goto(f"{url}#/runs/run")
    card = page.locator("figure", has_text="Return in evaluations")
    expect(card.locator(".last")).to_have_text("30")
    add_rows(folder, [44.0], start=3)
    expect(card.locator(".last")).to_have_text("44")
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"time": 1004.0, "step": 400, "evaluator_st')  # torn by a crash
    write_record(folder, {"status": "failed", "reason": "the power went"})
    expect(page.locator("h1 .badge")).to_have_text("✕ failed")
    expect(page.locator(".alert:visible")).to_have_text("the power went")
    expect(card.locator(".last")).to_have_text("44")


def test_truncated_metrics_restart(page, runs, url):
    folder = make_run(runs / "run", status="running")
    page.goto(f"{url}#/runs/run")
    card = page.locator("figure", has_text="Return in evaluations")
    expect(card.locator(".last")).to_have_text("30")
    (folder / "metrics.jsonl").write_text("")
    add_rows(folder, [3.0])
    expect(card.locator(".last")).to_have_text("3")


def test_run_without_metrics_says_so(page, runs, url):
    make_run(runs / "run", metrics=False)
    page.goto(f"{url}#/runs/run")
    expect(page.get_by_text("No numbers yet")).to_be_visible()
    add_rows(runs / "run", [3.0, 4.0])
    expect(page.locator(".plot canvas").first).to_be_visible()


def test_workers_show_who_waits_for_whom(page, runs, url):
    folder = make_run(runs / "run", status="running")
    worker = {"kind": "collector", "state": "running", "task_id": "t1", "since_s": 3.0}
    worker["usage"] = {"cpu_percent": 96.6, "memory_mb": 412.0, "gpu_memory_mb": 2000.0}
    live = {
        "waits": "collector waits for the learner",
        "workers": {"collector0": {**worker, "waits_for": "learner", "samples_per_s": 250.0}},
        "buffers": {"b": {"count": 5, "capacity": 10, "bytes": 2000, "files": 1}},
        "policy": {"p": {"iter": 3, "age_s": 0.5, "lag_iters": 7}},
        "failures": [{"time": 0.0, "worker": "learner0", "task": "t0", "cause": "<i>OOM</i>"}],
    }
    (folder / "live.json").write_text(json.dumps(live))
    page.goto(f"{url}#/runs/run/workers")
    expect(page.locator(".who")).to_contain_text("collector waits for the learner")
    row = page.locator("tr", has_text="collector0")
    expect(row).to_contain_text("250 samples/s")
    for figure in ("97 %", "412 MB", "2 GB"):
        expect(row.get_by_text(figure, exact=True)).to_be_visible()
    expect(page.get_by_text("7 updates")).to_be_visible()
    expect(page.get_by_text("<i>OOM</i>")).to_be_visible()


def test_logs_are_followed(page, runs, url):
    folder = make_run(runs / "run", status="running")
    page.goto(f"{url}#/runs/run/logs")
    log = page.locator("pre.log")
    expect(log).to_contain_text("<b>another</b> line")
    with open(folder / "log" / "serial" / "serial_logger.txt", "a") as file:
        file.write("\x1b[31mthe newest\x1b[0m line\n")
    expect(log).to_contain_text("the newest line")
    page.get_by_label("Filter lines").fill("newest")
    expect(log).to_have_text("the newest line")


def test_videos_are_shown(page, runs, url):
    (make_run(runs / "run") / "best.mp4").write_bytes(b"no video")
    page.goto(f"{url}#/runs/run/videos")
    expect(page.locator("video")).to_have_count(1)


def test_markup_in_names_and_files_is_text(page, runs, url):
    evil = "<img src=x onerror=alert(1)>"
    folder = make_run(runs / evil, exp_name=f"<script>{evil}", reason=evil, command=evil)
    (folder / "metrics.jsonl").write_text(
        f'{{"time": 1, "step": 1, "{evil}/reward_mean": 1, "a_step/{evil}": 2}}\n'
    )
    (folder / "total_config.py").write_text(f"exp_config = {{'{evil}': '{evil}'}}")
    page.goto(url)
    page.get_by_role("link", name=evil).click()
    expect(page.locator(".reason")).to_have_text(evil)
    for tab in ("config", "logs", "videos", "curves"):
        page.get_by_role("link", name=tab).click()
        expect(page.locator(f"[data-tab={tab}]")).to_have_attribute("aria-current", "page")
    page.get_by_text("Other").click()
    expect(page.locator(".plot canvas").first).to_be_visible()
    assert page.locator("img[src=x]").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1600])
def test_fits_the_window_in_both_colours(page, runs, url, width, scheme):
    make_run(runs / "a_run_whose_name_is_as_long_as_names_of_runs_tend_to_be_seed0")
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.goto(url)
    page.locator("tr.run a").click()
    for tab in ("config", "workers", "logs", "videos", "curves"):
        page.get_by_role("link", name=tab).click()
        expect(page.locator(f"[data-tab={tab}]")).to_have_attribute("aria-current", "page")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(246, 247, 249)") == (scheme == "light")


def test_theme_can_be_chosen(page, runs, url):
    page.goto(url)
    button = page.get_by_role("button", name="Theme")
    for theme in ("light", "dark", "system"):
        button.click()
        expect(button).to_have_text(f"Theme: {theme}")


def test_lost_server_is_said_and_what_was_shown_stays(page, runs, tmp_path):
    make_run(tmp_path / "runs" / "run")
    server = BoardServer(str(tmp_path / "runs"), lambda folder: None, port=0)
    server.start()
    try:
        page.goto(server.url)
        expect(page.locator("tr.run")).to_have_count(1)
    finally:
        server.close()
    expect(page.locator("#link")).to_contain_text("no connection; as of")
    expect(page.locator("tr.run")).to_have_count(1)
