"""Several learners with parts of a batch learn what one learns with all of it."""

import json
from pathlib import Path

import pytest
import torch

from ding.policy.joint import joint_mean, joint_moments, normalised
from tests.children import run_ranks
from tests.policy.batches import CASES, IDS
from tests.policy.joint_ranks import learned

SCRIPT = Path(__file__).with_name("joint_ranks.py")
#: One of each way to normalise; the others are slow tests.
FEW = ("dqn", "qmix", "r2d2", "acer", "impala", "td3_bc", "ppo", "ppo_offpolicy", "sac")
FEW = (*FEW, "cql", "sqn", "ppg")


def split(cases, folder):
    """What each of two learners ends with, by case: parts of unequal size, one with padding."""
    (folder / "cases.json").write_text(json.dumps(cases))
    run_ranks(SCRIPT, folder)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


def check(case, ranks):
    whole = learned(*case)
    for rank in ranks:
        assert rank[case].keys() == whole.keys()
        for name, expected in whole.items():
            torch.testing.assert_close(
                *(rank[case][name], expected),
                rtol=1e-3,
                atol=1e-4 * expected.abs().max().item() + 1e-8,
                check_dtype=False,
                msg=lambda text, name=name: f"{name}: {text}",
            )


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return split([(name, "") for name in FEW], tmp_path_factory.mktemp("few"))


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    return split(CASES, tmp_path_factory.mktemp("every"))


@pytest.mark.parametrize("name", FEW)
def test_learners_with_parts_of_a_batch_learn_as_one_with_all_of_it(few, name):
    check((name, ""), few)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_so_do_those_of_every_policy(every, case):
    check(case, every)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_normalised_samples_have_deviation_one_by_n_minus_one(count):
    values = torch.randn(count, generator=torch.Generator().manual_seed(0)) * 3 + 5
    out = normalised(values, joint=False)
    assert out.mean().item() == pytest.approx(0, abs=1e-6)
    if count == 1:
        assert out.tolist() == [0]
    else:
        assert out.std(correction=1).item() == pytest.approx(1, abs=1e-5)


def test_moments_of_one_learner_are_the_plain_ones():
    values = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    count, mean, variance = joint_moments(values, joint=False)
    assert (count, mean, variance) == (4, 3, 3.5)
    assert joint_mean(values, joint=False) == 3
