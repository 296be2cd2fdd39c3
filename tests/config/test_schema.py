"""The rows of the schema, and what is made of them."""

import pytest

from ding.config.check import at
from ding.config.schema import FRACTION, POSITIVE, SCHEMA, examples, in_range
from tests.config.test_check import message

BY_PATH = {key.path: key for key in SCHEMA}


def test_each_key_has_one_row_and_a_meaning():
    known = [key.path for key in SCHEMA if not key.silent or key.range]
    assert len(set(known)) == len(known)
    for key in SCHEMA:
        assert key.meaning[0].isupper() or key.meaning[0] in "ελ"
        assert key.meaning.endswith(".")
        assert key.path.split(".")[0] in (*examples(), "system_config")
        assert not (key.silent and key.known)


def test_every_known_key_has_an_example_of_its_type():
    tree = examples()
    for key in SCHEMA:
        if key.known and not isinstance(key.like, dict):
            value = at(tree, key.path)
            assert isinstance(value, dict) or value == key.like, key.path
    examples()["policy"]["model"]["added"] = 1
    assert examples() == tree


@pytest.mark.parametrize("range_", [POSITIVE, FRACTION])
def test_values_out_of_their_range_are_refused(main, create, range_):
    create["policy"]["type"] = "dqn"
    for key in in_range(range_):
        section, _, name = key.path.rpartition(".")
        if isinstance(at(main, section), dict) and name in at(main, section):
            at(main, section)[name], old = -1, at(main, key.path)
            assert f"{key.path} must be {range_}, got -1" in message(main, create)
            at(main, section)[name] = old


def test_twins_and_old_names_are_other_keys():
    for key in SCHEMA:
        assert key.path not in (*key.twins, *key.old)
        for twin in key.twins:
            assert twin not in BY_PATH or not BY_PATH[twin].twins
