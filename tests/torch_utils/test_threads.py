import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits
from torch import nn

from ding.torch_utils.model_helper import threads_that_fit


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with threadpool_limits(2, "blas"):
        yield
    torch.set_num_threads(before)


def threads_of_products():
    """Of numpy's matrix products, one number for each library that computes some."""
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_small_networks_get_one_and_the_rest_is_put_back():
    with pytest.raises(ZeroDivisionError), threads_that_fit(nn.Linear(4, 4)):
        assert torch.get_num_threads() == 1
        assert threads_of_products() == {1}
        _ = 1 / 0
    assert torch.get_num_threads() == 2
    assert threads_of_products() == {2}


@pytest.mark.parametrize("model", [nn.Conv2d(1, 1, 3), nn.Linear(2000, 2000)])
def test_large_ones_keep_theirs(model):
    with threads_that_fit(model):
        assert torch.get_num_threads() == 2


def test_the_users_choice_stands(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with threads_that_fit(nn.Linear(4, 4)):
        assert torch.get_num_threads() == 2
