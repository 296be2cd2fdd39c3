"""The guide lists what the class of a policy may define."""

import re
from pathlib import Path
from types import FunctionType

import tests
from ding.policy.dqn import DQNPolicy

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
