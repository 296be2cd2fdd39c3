"""The run's seed reaches the draws of every worker, whatever has started it."""

import importlib.util

import pytest

from ding.config import compile_config_parallel
from ding.entry import parallel_pipeline
from ding.entry.parallel_entry import launch_collector, launch_coordinator, launch_learner
from tests.children import CHECKOUT
from tests.entry.parallel_runs import small_configs

from .harness import documented_engine
from .noted_policy import FIRST_ACTIONS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

# Not `local`, whose threads share one generator: its draws depend on who comes first.
ENGINES = {
    "flask_fs": "flask_fs",
    "documented": dict(type="sqlite", import_names=["documented_engine"]),
}
if importlib.util.find_spec("ray") is not None:
    ENGINES["ray"] = "ray"


@pytest.mark.parametrize("engine", list(ENGINES))
def test_the_same_seed_gives_the_same_first_weights_and_actions(
    engine, tmp_path, capfd, monkeypatch
):
    documented_engine()
    monkeypatch.setenv("PYTHONPATH", CHECKOUT)  # Ray's workers import the policy, too
    first, again, other = (
        first_draws(ENGINES[engine], tmp_path / name, seed)
        for name, seed in [("first", 3), ("again", 3), ("other", 4)]
    )
    assert first == again
    assert first[0] != other[0]
    assert first[1] != other[1]


def by_hand(main, create, system, seed):
    config = compile_config_parallel(main, create, system, seed)
    learner, collector = launch_learner(seed, config), launch_collector(seed, config)
    launch_coordinator(seed, config, learner_handle=[learner], collector_handle=[collector])


def test_parts_that_are_started_by_hand(tmp_path, capfd):
    first, again = (first_draws("flask_fs", tmp_path / name, 3, by_hand) for name in ("a", "b"))
    assert first == again


def first_draws(engine, folder, seed, run=lambda *parts: parallel_pipeline(parts[:3], parts[3])):
    """The first weights of the learner, and the first actions of the collector, of a run."""
    notes = folder / "notes"
    notes.mkdir(parents=True)
    main, create, system = small_configs(str(folder / "run"), engine=engine)
    # All of the collector's first actions are drawn, and none of them is of an evaluation.
    main.policy.other.notes = str(notes)
    main.policy.other.eps = dict(start=1.0, end=1.0, decay=100)
    create.policy = dict(type="noted", import_names=["tests.worker.engines.noted_policy"])
    run(main, create, system, seed)
    weights = (notes / "weights").read_text().splitlines()
    actions = (notes / "actions").read_text().splitlines()
    assert len(actions) >= FIRST_ACTIONS
    return weights[0], actions[:FIRST_ACTIONS]
