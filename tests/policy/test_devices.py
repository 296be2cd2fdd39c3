"""Every policy learns the same on a GPU as on the CPU: gradients of two updates agree."""

import pytest
import torch

from tests.policy.batches import CASES, IDS
from tests.policy.joint_ranks import learned

DEVICES = [
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU"),
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_gradients_are_those_of_the_cpu(case, device):
    expected = learned(*case)
    found = learned(*case, device=device)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        torch.testing.assert_close(
            *(found[name].cpu(), values),
            rtol=1e-3,
            atol=1e-4 * values.abs().max().item() + 1e-8,
            check_dtype=False,
            msg=lambda text, name=name: f"{name}: {text}",
        )
