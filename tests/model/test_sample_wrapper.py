import copy
import pickle

import pytest
import torch
from torch import nn

from ding.model import DQN, VAC, model_wrap
from ding.model.wrapper.model_wrappers import sample_action
from ding.utils.errors import DataError


class Fixed(nn.Module):
    """Says the same, whatever it sees; adds what else it was given."""

    def __init__(self, logit, **extra):
        super().__init__()
        self.logit, self.extra = logit, extra

    def forward(self, obs=None):
        return {"logit": self.logit, **self.extra}


def frequencies(action, n):
    return torch.bincount(action, minlength=n) / action.numel()


def close(a, b, atol=0.03):
    torch.testing.assert_close(a, torch.tensor(b), atol=atol, rtol=0)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


ROWS = 4000
LOGIT = torch.tensor([0.1, 0.2, 0.7]).log().expand(ROWS, 3)
MASK = torch.tensor([1, 1, 0]).expand(ROWS, 3)


def test_argmax():
    output = model_wrap(Fixed(LOGIT), "argmax_sample").forward(None)
    assert output["action"].dtype == torch.int64
    assert output["action"].shape == (ROWS,)
    assert (output["action"] == 2).all()
    assert torch.equal(output["logit"], LOGIT)


def test_multinomial_draws_with_the_probabilities():
    wrapper = model_wrap(Fixed(LOGIT), "multinomial_sample")
    close(frequencies(wrapper.forward(None)["action"], 3), [0.1, 0.2, 0.7])
    close(frequencies(wrapper.forward(None, alpha=1e6)["action"], 3), [1 / 3] * 3)
    close(frequencies(wrapper.forward(None, alpha=1e-3)["action"], 3), [0.0, 0.0, 1.0])


def test_multinomial_never_takes_the_impossible():
    logit = torch.tensor([0.0, -torch.inf]).expand(100_000, 2)
    assert (model_wrap(Fixed(logit), "multinomial_sample").forward(None)["action"] == 0).all()


def test_sample_action_takes_probabilities_of_any_shape():
    prob = torch.tensor([0.0, 1.0, 3.0]).expand(2, ROWS, 3)
    action = sample_action(prob=prob)
    assert action.shape == (2, ROWS)
    close(frequencies(action.flatten(), 3), [0.0, 0.25, 0.75])
    with pytest.raises(ValueError, match="neither logit nor prob"):
        sample_action()


@pytest.mark.parametrize(
    ("eps", "expected"),
    [(0.0, [0.0, 0.0, 1.0]), (1.0, [1 / 3] * 3), (0.5, [1 / 6, 1 / 6, 2 / 3]), (1, [1 / 3] * 3)],
)
def test_eps_greedy_explores_with_eps(eps, expected):
    output = model_wrap(Fixed(LOGIT), "eps_greedy_sample").forward(None, eps=eps)
    assert output["action"].dtype == torch.int64
    close(frequencies(output["action"], 3), expected)


def test_eps_may_differ_between_rows():
    wrapper = model_wrap(Fixed(LOGIT[:4]), "eps_greedy_sample")
    seen = {i: set() for i in range(4)}
    for _ in range(50):
        for eps in ([0.0, 1.0, 0.0, 1.0], {10: 0.0, 11: 1.0, 12: 0.0, 13: 1.0}):
            for i, action in enumerate(wrapper.forward(None, eps=eps)["action"].tolist()):
                seen[i].add(action)
    assert [len(seen[i]) for i in range(4)] == [1, 3, 1, 3]


def test_eps_greedy_multinomial():
    wrapper = model_wrap(Fixed(LOGIT), "eps_greedy_multinomial_sample")
    close(frequencies(wrapper.forward(None, eps=0.0)["action"], 3), [0.1, 0.2, 0.7])
    close(frequencies(wrapper.forward(None, eps=1.0)["action"], 3), [1 / 3] * 3)
    close(frequencies(wrapper.forward(None, eps=0.0, alpha=1e-3)["action"], 3), [0.0, 0.0, 1.0])


@pytest.mark.parametrize("name", ["eps_greedy_sample", "eps_greedy_multinomial_sample"])
def test_a_missing_eps_is_named(name):
    with pytest.raises(TypeError, match="without eps"):
        model_wrap(Fixed(LOGIT), name).forward(None)


@pytest.mark.parametrize("where", ["output", "observation"])
@pytest.mark.parametrize(
    ("name", "kwargs", "expected"),
    [
        ("argmax_sample", {}, [0.0, 1.0, 0.0]),
        ("multinomial_sample", {}, [1 / 3, 2 / 3, 0.0]),
        ("eps_greedy_sample", {"eps": 0.0}, [0.0, 1.0, 0.0]),
        ("eps_greedy_sample", {"eps": 1.0}, [0.5, 0.5, 0.0]),
        ("eps_greedy_sample", {"eps": 0.5}, [0.25, 0.75, 0.0]),
        ("eps_greedy_multinomial_sample", {"eps": 1.0}, [0.5, 0.5, 0.0]),
    ],
)
def test_masks_keep_actions_legal(name, kwargs, expected, where):
    obs = {"action_mask": MASK} if where == "observation" else None
    model = Fixed(LOGIT) if where == "observation" else Fixed(LOGIT, action_mask=MASK.bool())
    output = model_wrap(model, name).forward(obs, **kwargs)
    frequency = frequencies(output["action"], 3)
    assert frequency[2] == 0
    close(frequency, expected)
    assert torch.equal(output["logit"], LOGIT)


def test_a_mask_without_a_legal_action_is_named():
    mask = torch.tensor([[1, 0], [0, 0]])
    wrapper = model_wrap(Fixed(torch.zeros(2, 2), action_mask=mask), "argmax_sample")
    with pytest.raises(DataError, match="no legal action in 1 of 2 rows"):
        wrapper.forward(None)


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("argmax_sample", {}),
        ("multinomial_sample", {}),
        ("eps_greedy_sample", {"eps": 0.5}),
        ("eps_greedy_multinomial_sample", {"eps": 0.5}),
    ],
)
def test_several_action_dimensions(name, kwargs):
    output = model_wrap(DQN(4, [2, 5]), name).forward(torch.randn(8, 4), **kwargs)
    assert [a.shape for a in output["action"]] == [(8,), (8,)]
    mask = [torch.tensor([[1, 0]] * 8), torch.tensor([[0, 0, 1, 0, 0]] * 8)]
    logit = [torch.randn(8, 2), torch.randn(8, 5)]
    output = model_wrap(Fixed(logit, action_mask=mask), name).forward(None, **kwargs)
    assert [set(a.tolist()) for a in output["action"]] == [{0}, {2}]


def test_the_seed_decides_the_actions():
    wrapper = model_wrap(DQN(4, 5), "eps_greedy_sample")
    x = torch.randn(64, 4)
    draws = []
    for _ in range(2):
        torch.manual_seed(7)
        draws.append(wrapper.forward(x, eps=0.5)["action"])
    assert torch.equal(*draws)


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("argmax_sample", {}),
        ("multinomial_sample", {}),
        ("eps_greedy_sample", {"eps": 0.5}),
        ("eps_greedy_multinomial_sample", {"eps": 0.5}),
        ("deterministic_sample", None),
        ("reparam_sample", None),
    ],
)
def test_nan_of_a_policy_is_refused(name, kwargs):
    logit = torch.zeros(8, 3)
    logit[2, 1] = torch.nan
    if kwargs is None:
        logit, kwargs = {"mu": logit, "sigma": torch.ones(8, 3)}, {}
    with pytest.raises(DataError, match="policy's network gave NaN in 1 of 8 rows"):
        model_wrap(Fixed(logit), name).forward(None, **kwargs)


def test_infinite_logits_are_not_nan():
    logit = torch.tensor([[torch.inf, 0.0], [0.0, -torch.inf]])
    output = model_wrap(Fixed(logit), "argmax_sample").forward(None)
    assert output["action"].tolist() == [0, 0]


@pytest.mark.parametrize("form", [dict, list])
def test_continuous_actions(form):
    mu, sigma = torch.full((ROWS, 2), 3.0), torch.full((ROWS, 2), 0.5)
    logit = {"mu": mu, "sigma": sigma} if form is dict else [mu, sigma]
    assert torch.equal(model_wrap(Fixed(logit), "deterministic_sample").forward(None)["action"], mu)
    action = model_wrap(Fixed(logit), "reparam_sample").forward(None)["action"]
    assert action.shape == (ROWS, 2)
    close(action.mean(0), [3.0, 3.0])
    close(action.std(0), [0.5, 0.5])


def test_a_continuous_actor_critic():
    wrapper = model_wrap(VAC(4, 2, "continuous"), "reparam_sample")
    output = wrapper.forward(torch.randn(8, 4), mode="compute_actor_critic")
    assert output["action"].shape == (8, 2)
    assert output["value"].shape == (8,)


def test_wrappers_nest_and_show_the_model_through():
    model = DQN(4, 2)
    wrapper = model_wrap(model_wrap(model, "base"), "argmax_sample")
    assert wrapper.state_dict().keys() == model.state_dict().keys()
    assert next(iter(wrapper.parameters())) is next(model.parameters())
    wrapper.eval()
    assert not model.training
    assert "ArgmaxSampleWrapper > BaseModelWrapper > DQN: encoder" in wrapper.info("encoder")
    assert "no nothing" in wrapper.info("nothing")
    with pytest.raises(AttributeError, match="nothing"):
        _ = wrapper.nothing
    wrapper.reset(data_id=[0])
    for twin in (copy.deepcopy(wrapper), pickle.loads(pickle.dumps(wrapper))):
        x = torch.randn(3, 4)
        assert torch.equal(twin.forward(x)["logit"], wrapper(x)["logit"])
