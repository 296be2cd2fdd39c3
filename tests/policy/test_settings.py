"""Settings that a policy cannot take are refused, and those without effect on it are reported."""

import pytest

from ding.utils.errors import ConfigError
from tests.policy.batches import build


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("a2c", {"priority": True}),
        ("pg", {"priority": True}),
        ("ppo_pg", {"priority": True}),
        ("d4pg", {"multi_agent": True}),
    ],
)
def test_what_it_does_not_have_is_refused(name, setting):
    (key,) = setting
    with pytest.raises(ConfigError, match=rf"policy\.{key}=True: .* does not have it"):
        build(name, **setting)
