"""The addresses of the page: their answers, and which clients get them."""

import flask
import numpy as np
import pytest

from ding.board.server import BoardPages
from ding.plot import averaged

from .run_folders import make_run

NAMES = ("<script>alert(1)</script>", "a b&c")


@pytest.fixture
def runs(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    return make_run(tmp_path / "runs" / "run").parent


def client_of(folder, ask=lambda folder: None, **options):
    app = flask.Flask(__name__, static_folder=None)
    app.register_blueprint(BoardPages(lambda: str(folder), ask, **options).blueprint())
    return app.test_client()


def test_page_and_its_parts_come_from_here(runs):
    client = client_of(runs)
    page = client.get("/")
    assert b"<title>ding board</title>" in page.data
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    for name in ("app.js", "charts.js", "data.js", "list.js", "run.js", "workers.js"):
        answer = client.get(f"/static/{name}")
        assert answer.mimetype == "text/javascript"
        assert b"//cdn" not in answer.data
    assert client.get("/static/style.css").mimetype == "text/css"


def test_mean_over_seeds_is_that_of_the_plots(runs):
    steps = [0.0, 50.0, 100.0]
    values = [[0.0, 5.0, 10.0], [0.0, 10.0, 20.0], [1.0, 1.0, 1.0]]
    curves = [{"x": steps, "y": one, "converged": False} for one in values]
    answer = client_of(runs).post("/api/mean", json={"curves": curves}).json
    points = [np.column_stack([steps, one]) for one in values]
    for name, expected in zip(("x", "mean", "low", "high"), averaged(points, [False] * 3)):
        np.testing.assert_allclose(answer[name], expected)


def test_converged_curves_keep_their_last_value(runs):
    short = {"x": [0, 10], "y": [0, 8], "converged": True}
    long = {"x": [0, 20], "y": [0, 4], "converged": False}
    answer = client_of(runs).post("/api/mean", json={"curves": [short, long]}).json
    assert (answer["x"][-1], answer["mean"][-1]) == (20, 6)


@pytest.mark.parametrize("body", [{}, {"curves": []}, {"curves": [{"x": [1], "y": [1, 2]}]}, [1]])
def test_curves_of_another_form_are_refused(runs, body):
    assert client_of(runs).post("/api/mean", json=body).status_code == 400


def test_runs_are_listed(runs):
    answer = client_of(runs).get("/api/runs").json
    assert [run["id"] for run in answer["runs"]] == ["run"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_data_not_markup(runs, name):
    make_run(runs / name.replace("/", "\N{DIVISION SLASH}"), exp_name=name, reason=name)
    answer = client_of(runs).get("/api/runs")
    assert answer.mimetype == "application/json"
    assert name in [run["reason"] for run in answer.json["runs"]]


def test_run_contains_record_config_and_files(runs):
    answer = client_of(runs).get("/api/run?id=run&config=1").json
    assert answer["record"]["status"] == "converged"
    assert answer["config"]["policy.learn.learning_rate"] == "0.001"
    assert answer["logs"][0]["path"] == "log/serial/serial_logger.txt"
    assert answer["live"] is None


def test_coordinator_is_asked_only_while_the_run_goes_on(runs):
    asked = []

    def ask(folder):
        asked.append(folder)
        return {"waits": "no worker waits"}

    make_run(runs / "live", status="running")
    client = client_of(runs, ask)
    assert client.get("/api/run?id=run").json["live"] is None
    assert asked == []
    assert client.get("/api/run?id=live").json["live"] == {"waits": "no worker waits"}
    assert asked == [str(runs / "live")]


def test_config_that_cannot_be_read_is_said(runs):
    (runs / "run" / "total_config.py").write_text("{")
    assert "cannot be read" in client_of(runs).get("/api/run?id=run&config=1").json["config_error"]


def test_metrics_are_followed_by_offset(runs):
    client = client_of(runs)
    first = client.get("/api/metrics?id=run")
    assert first.data.count(b"\n") == 9
    offset = first.headers["X-Offset"]
    assert client.get(f"/api/metrics?id=run&offset={offset}").data == b""
    (runs / "run" / "metrics.jsonl").write_text("{}\n")
    again = client.get(f"/api/metrics?id=run&offset={offset}")
    assert (again.data, again.headers["X-Restarted"]) == (b"{}\n", "1")


def test_log_is_text(runs):
    answer = client_of(runs).get("/api/log?id=run&path=log/serial/serial_logger.txt")
    assert answer.mimetype == "text/plain"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert b"<b>another</b>" in answer.data


def test_video_is_sent_in_the_parts_that_a_player_wants(runs):
    (runs / "run" / "video.mp4").write_bytes(b"0123456789")
    answer = client_of(runs).get("/api/video?id=run&path=video.mp4", headers={"Range": "bytes=2-4"})
    assert (answer.status_code, answer.data, answer.mimetype) == (206, b"234", "video/mp4")


@pytest.mark.parametrize(
    "path",
    [
        "/api/run?id=..",
        "/api/run?id=/etc",
        "/api/metrics?id=nothing",
        "/api/log?id=run&path=../../secret.txt",
        "/api/video?id=run&path=/etc/passwd",
        "/static/../pages.py",
        "/static/%2e%2e/pages.py",
        "/api/nothing",
    ],
)
def test_what_is_not_there_is_not_found(runs, path):
    assert client_of(runs).get(path).status_code == 404


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch", "options"])
def test_nothing_can_be_changed(runs, method):
    client = client_of(runs)
    for path in ("/", "/api/runs", "/api/run?id=run", "/api/log?id=run"):
        assert getattr(client, method)(path).status_code == 405


def test_only_this_machine_may_look(runs):
    client = client_of(runs)
    far = {"REMOTE_ADDR": "192.0.2.7"}
    assert client.get("/api/runs", environ_overrides=far).status_code == 403
    assert client.get("/api/runs", headers={"Host": "evil.example"}).status_code == 403
    assert client.get("/api/runs", headers={"Host": "127.0.0.1:6007"}).status_code == 200
