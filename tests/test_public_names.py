"""Names that users' code imports exist, or raise an error that says otherwise."""

import importlib
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import pytest

from ding.utils.errors import MissingNameError
from ding.utils.import_helper import with_planned
from tests.public_names import PLANNED, THERE, importable_modules


@pytest.mark.parametrize("module", THERE)
def test_is_there(module):
    loaded = importlib.import_module(module)
    missing = [name for name in THERE[module].split() if not hasattr(loaded, name)]
    assert missing == []


@pytest.mark.parametrize("module", PLANNED)
def test_is_there_or_says_that_it_is_not(module):
    for name in PLANNED[module].split():
        with suppress(MissingNameError):  # which has the words, see below
            exec(f"from {module} import {name}")


def test_what_has_come_is_there():
    find = with_planned("package", ["Old", "New"], partial(getattr, SimpleNamespace(New=1)))
    assert find("New") == 1
    with pytest.raises(AttributeError, match=r"package\.Old is not there"):
        find("Old")


@pytest.mark.parametrize("module", PLANNED)
def test_what_is_not_there_is_no_attribute(module):
    loaded = importlib.import_module(module)
    for name in loaded._PLANNED:
        assert not hasattr(loaded, name)
        with pytest.raises(ImportError, match="this version of ding does not have it"):
            exec(f"from {module} import {name}")


def test_each_module_of_the_package_can_be_asked_for_any_name():
    for name in importable_modules():
        assert not hasattr(importlib.import_module(name), "no_such_name"), name


@pytest.mark.parametrize("module", PLANNED)
def test_other_names_are_unknown_as_ever(module):
    assert not hasattr(importlib.import_module(module), "no_such_name")
    with pytest.raises(ImportError, match="cannot import name 'no_such_name'"):
        exec(f"from {module} import no_such_name")
