"""Imitation of a policy of the zoo reaches most of what that policy reaches."""

import pytest

from ding.entry import serial_pipeline_sqil
from tests.learning.test_learning import train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_sqil(tmp_path, learned):
    config = "cartpole/cartpole_sqil_config.py"
    train(serial_pipeline_sqil, config, 350, 40_000, tmp_path, learned)
