"""The rows of the schema, and what is made of them."""

import inspect
import runpy
from pathlib import Path

import pytest

from ding.config import keys
from ding.config.keys import EnvConfig, MainConfig
from ding.config.parts import COMPONENTS, PARALLEL_COMPONENTS, default_config
from ding.config.schema import RANGES, SCHEMA, examples
from ding.utils.builtin_types import BUILTIN_TYPES
from ding.utils.registry_factory import registries
from ding.utils.settings import at, leaves
from tests.config.test_check import message

BY_PATH = {key.path: key for key in SCHEMA}
ELSEWHERE = {path for key in SCHEMA for path in (*key.twins, *key.old)}


def test_each_key_has_one_row_and_a_meaning():
    known = [key.path for key in SCHEMA if not key.silent or key.values]
    assert len(set(known)) == len(known)
    for key in SCHEMA:
        assert key.meaning[0].isupper() or key.meaning[0] in "ελ"
        assert key.meaning.endswith(".")
        assert key.gone or key.path.split(".")[0] in examples()
        assert not (key.silent and key.known)


def test_every_known_key_has_an_example_of_its_type():
    tree = examples()
    for key in SCHEMA:
        if key.known and not isinstance(key.like, dict):
            value = at(tree, key.path)
            assert isinstance(value, dict) or value == key.like, key.path
    examples()["policy"]["model"]["added"] = 1
    assert examples() == tree


def test_values_out_of_their_range_are_refused(main, create):
    for key in SCHEMA:
        section, _, name = key.path.rpartition(".")
        if key.range and not key.choices and name in (at(main, section) or {}):
            at(main, section)[name], old = -1, at(main, key.path)
            assert f"{key.path} must be {key.range}, got -1" in message(main, create)
            at(main, section)[name] = old
    assert {key.range for key in SCHEMA} == {"", *RANGES}


def test_twins_and_old_names_are_other_keys():
    for key in SCHEMA:
        assert key.path not in (*key.twins, *key.old)
        for twin in key.twins:
            assert twin not in BY_PATH or not BY_PATH[twin].twins


@pytest.mark.parametrize("section", sorted({*COMPONENTS, *PARALLEL_COMPONENTS}))
def test_every_key_of_a_built_in_class_has_a_meaning(section):
    registry, place, _ = {**PARALLEL_COMPONENTS, **COMPONENTS}[section]
    kind = next(name for name, one in registries.items() if one is registry)
    for type_ in BUILTIN_TYPES[kind] if place else ():
        for path, _ in leaves(default_config(registry.get(type_)), place):
            above = path.rpartition(".")[0] if path.count(".") > 2 else path
            further = above.rpartition(".")[0] if above.count(".") > 2 else path
            is_empty = path.rpartition(".")[2] in ("learn", "collect", "eval", "other")
            assert is_empty or {path, above, further} & {*BY_PATH, *ELSEWHERE}, (type_, path)


def test_every_argument_of_a_network_has_a_meaning():
    for type_ in BUILTIN_TYPES["model"]:
        arguments = inspect.signature(registries["model"].get(type_)).parameters.values()
        for argument in arguments:
            path = f"policy.model.{argument.name}"
            is_named = argument.kind is not argument.VAR_KEYWORD
            assert path in {*BY_PATH, *ELSEWHERE} or not is_named, (type_, path)


def test_the_types_of_configs_are_those_of_the_schema():
    made = runpy.run_path(str(Path(__file__).parents[2] / "docs/config_stub.py"))
    assert made["STUB"].read_text() == made["stub"](), "run  python docs/config_stub.py"


def test_the_types_of_configs_are_dicts_at_run_time():
    class Own(EnvConfig, total=False):
        length: int

    config = MainConfig(env=Own(length=3, stop_value=1))
    assert config == {"env": {"length": 3, "stop_value": 1}}
    assert type(config) is dict
    assert not hasattr(keys, "NoSuchConfig")
