"""What users' code imports is there, or says that it is not."""

import importlib

import pytest

from ding.utils.errors import DingError
from tests.public_names import PLANNED, THERE


@pytest.mark.parametrize("module", THERE)
def test_is_there(module):
    loaded = importlib.import_module(module)
    missing = [name for name in THERE[module].split() if not hasattr(loaded, name)]
    assert missing == []


@pytest.mark.parametrize("module", PLANNED)
def test_says_that_it_is_not_there(module):
    for name in PLANNED[module].split():
        with pytest.raises(ImportError, match=rf"{module}\.{name} is not there") as caught:
            exec(f"from {module} import {name}")
        assert isinstance(caught.value, DingError)


@pytest.mark.parametrize("module", PLANNED)
def test_other_names_are_unknown_as_ever(module):
    assert not hasattr(importlib.import_module(module), "no_such_name")
    with pytest.raises(ImportError, match="cannot import name 'no_such_name'"):
        exec(f"from {module} import no_such_name")
