"""How much keys of configs matter."""

import numpy as np
import pytest

from ding.board.importance import differing, importance

RNG = np.random.default_rng(0)
RATES = [f"{rate}" for rate in 10.0 ** RNG.uniform(-5, -2, 40)]
NOISE = RNG.normal(size=40)
OPTIMISERS = ["'adam'", "'sgd'", "'rmsprop'", None] * 10


def test_monotone_and_peaked_effects_of_numbers_count():
    logs = np.log10(np.array(RATES, dtype=float))
    assert importance(RATES, list(logs)) > 0.99
    assert importance(RATES, list(-((logs + 3.5) ** 2))) > 0.6
    assert importance(RATES, list(NOISE)) < 0.15


def test_other_values_are_compared_as_groups():
    gains = {"'adam'": 3.0, "'sgd'": 0.0, "'rmsprop'": 9.0, None: 1.0}
    results = [gains[name] for name in OPTIMISERS] + 0.1 * NOISE
    assert importance(OPTIMISERS, list(results)) > 0.9
    assert importance(OPTIMISERS, list(NOISE)) < 0.15


@pytest.mark.parametrize(
    ("values", "results"),
    [
        (["1", "2", "3"], [1.0, 2.0, 3.0]),  # too few
        (["1", "2", "3", "4"], [5.0] * 4),
        (["'a'", "'b'", "'c'", "'d'"], [1.0, 2.0, 3.0, 4.0]),  # a group each
        (["1e999", "0", "(", "9" * 5000], [1.0, 2.0, 3.0, 4.0]),
    ],
)
def test_what_says_nothing_has_none(values, results):
    assert importance(values, results) == 0.0


def test_names_of_runs_are_no_settings():
    configs = [
        {"seed": "0", "a.exp_name": "'x'", "a.lr": "1", "b": "2"},
        {"seed": "1", "a.exp_name": "'y'", "a.lr": "1", "b": "3", "c": "1"},
    ]
    assert differing(configs) == ["b", "c"]
