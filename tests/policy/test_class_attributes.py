"""The guide lists what the class of a policy may define."""

import importlib
import re
from pathlib import Path
from types import FunctionType

import pytest

import tests
from ding.policy.dqn import DQNPolicy
from ding.utils import MODEL_REGISTRY, POLICY_REGISTRY
from ding.utils.builtin_types import BUILTIN_TYPES

GUIDE = Path(next(iter(tests.__path__))).parent / "docs/extending.md"
#: Of an object, not of a class; made of others; or of a mode, which subclasses do not define.
OTHERS = {"_env_statistics", "_grad_norm", "_log_name_of"}
METHODS = (FunctionType, property, classmethod, staticmethod, type)


def test_guide_lists_all_attributes_of_the_base_classes():
    section = GUIDE.read_text().split("### What a policy may define\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.M)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    defined = {
        name
        for cls in DQNPolicy.__mro__[:-1]
        for name, value in vars(cls).items()
        if not name.startswith("__") and not isinstance(value, METHODS)
    }
    assert listed - {"_rewards_per_sample"} == defined - OTHERS - {"_rewards_per_sample"}


@pytest.mark.parametrize(
    ("package", "registry"),
    [("ding.model.template", MODEL_REGISTRY), ("ding.policy", POLICY_REGISTRY)],
)
def test_a_type_names_a_module_that_has_it(package, registry):
    for name in BUILTIN_TYPES[package.split(".")[1]]:
        if not name.endswith("_command"):
            module = importlib.import_module(f"{package}.{name}")
            assert registry.get(name) in vars(module).values()


def test_the_first_sentence_of_a_policy_names_its_paper():
    for name in BUILTIN_TYPES["policy"]:
        policy = POLICY_REGISTRY.get(name)
        first = " ".join(policy.__doc__.split("\n\n")[0].split())
        assert policy.paper.rpartition(" ")[2] in first, name
