"""The YAML file of a sweep: what it may say, and what is wrong with it."""

import pytest

from ding.entry.sweep_space import read_space
from ding.utils.errors import ConfigError


@pytest.fixture
def written(tmp_path):
    """Gives the space of a YAML text."""

    def write(text):
        path = tmp_path / "space.yaml"
        path.write_text(text)
        return read_space(str(path))

    return write


def test_sections_may_be_nested_as_in_the_config(written):
    nested = written("policy: {learn: {batch_size: [1, 2]}, nstep: {low: 1, high: 5}}")
    flat = written("policy.learn.batch_size: [1, 2]\npolicy.nstep: {low: 1, high: 5}")
    assert nested == flat
    assert list(nested) == ["policy.learn.batch_size", "policy.nstep"]


def test_values_may_be_lists_and_dicts(written):
    space = written("policy.model.encoder_hidden_size_list: [[64, 64], [128]]\na: [{b: 1}, null]")
    assert space["policy.model.encoder_hidden_size_list"].choices == ([64, 64], [128])
    assert space["a"].choices == ({"b": 1}, None)


def test_conditions_come_before_what_depends_on_them(written):
    space = written(
        "c: {low: 0.1, high: 1, when: {b: [2, 3]}}\n"
        "b: {choices: [1, 2, 3], when: {a: true}}\n"
        "a: [true, false]\n"
    )
    assert list(space) == ["a", "b", "c"]
    assert space.is_active("c", {"a": True, "b": 3})
    assert not space.is_active("c", {"a": True, "b": 1})
    assert not space.is_active("c", {"a": False})


def test_examples_hold_each_choice_and_end_once(written):
    space = written(
        "a: [x, y]\nb: {choices: [1, 2], when: {a: y}}\nc: {low: 0.1, high: 1, when: {b: 2}}\n"
    )
    examples = list(space.examples())
    for key, values in (("a", "xy"), ("b", (1, 2)), ("c", (0.1, 1))):
        assert {example[key] for example in examples if key in example} == set(values)
    assert all(("b" in one) == (one["a"] == "y") for one in examples)
    assert all(("c" in one) == (one.get("b") == 2) for one in examples)


def test_grids_hold_each_combination_that_counts(written):
    space = written(
        "a: [x, y]\nb: {low: 1, high: 2, when: {a: y}}\nc: {low: 0, high: 1, step: 0.5}\n"
    )
    grid = list(space.grid())
    assert len(grid) == 2 * 0 + 3 * (1 + 2)
    assert {one["c"] for one in grid} == {0, 0.5, 1}
    with pytest.raises(ConfigError, match="a: a grid needs a list of values, or a step"):
        list(written("a: {low: 0.1, high: 1}").grid())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "must map paths such as policy.nstep"),
        ("[1]", "must map paths"),
        ("{", "cannot be read"),
        ("a: 3", "a is 3, expected a list of values such as"),
        ("a: []", r"a: choices is \[\], expected a list of values"),
        ("a: {}", "a is {}, expected a list"),
        ("a: {low: 1}", "a: high is missing"),
        ("a: {low: 2, high: 1}", "a: low must be below high, got 2 and 1"),
        ("a: {low: x, high: 1}", "a: low must be a number, got 'x'"),
        ("a: {low: true, high: 2}", "a: low must be a number, got True"),
        ("a: {low: 1, high: .inf}", "a: high must be a number, got inf"),
        ("a: {low: 1, hihg: 2}", "a: unknown word 'hihg'; did you mean high?"),
        ("a: {lo: 1, high: 2}", "a: unknown word 'lo'; did you mean low?"),
        ("a: {low: 0, high: 0.1, log: true}", "a: log: true needs a low above 0, got 0; write"),
        ("a: {low: 0, high: 9, log: true}", "write such as low: 1, or leave log out"),
        ("a: {low: 1, high: 9, log: 1}", "log must be true or false, got 1"),
        ("a: {low: 1, high: 9, log: true, step: 2}", "log: true and step exclude each other"),
        ("a: {low: 1, high: 9, step: 0}", "step must be above 0 and at most high - low, got 0"),
        ("a: {choices: [1], low: 2}", "choices and low exclude each other"),
        ("a.b: [1]\na: {b: [2]}", "a.b is given twice"),
        ("seed: [1, 2]", "seed cannot be swept; it is set by -s"),
        ("exp_name: [a]", "exp_name cannot be swept; it is set by --folder"),
        ("a: {low: 1, high: 2, when: b}", "when is 'b', expected such as"),
        ("a: {low: 1, high: 2, when: {bc: 1}}\nbb: [1]", "bc is not in this file"),
        ("a: {low: 1, high: 2, when: {b: 1}}\nb: {low: 1, high: 2}", "b is a range; a condition"),
        ("a: {low: 1, high: 2, when: {b: 3}}\nb: [1, 2]", "b is never 3, only one of"),
        ("a: {choices: [1], when: {b: 1}}\nb: {choices: [1], when: {a: 1}}", "form a circle"),
    ],
)
def test_what_is_wrong_is_named(written, text, complaint):
    with pytest.raises(ConfigError, match=r"space\.yaml.*" + complaint):
        written(text)


def test_conditions_that_exclude_each_other_are_found(written):
    space = written(
        "a: [1, 2]\nb: {choices: [1], when: {a: 1}}\nc: {choices: [1], when: {b: 1, a: 2}}"
    )
    with pytest.raises(ConfigError, match="c: no values meet its when"):
        list(space.examples())
