import pytest
import torch

from ding.model import C51DQN, QRDQN, RainbowDQN
from ding.rl_utils import dist_nstep_td_data, dist_nstep_td_error
from ding.torch_utils.nn_test_helper import is_differentiable


@pytest.mark.parametrize("cls", [C51DQN, RainbowDQN])
def test_atoms_are_a_distribution_with_the_logit_as_mean(cls):
    model = cls(4, 3, v_min=-2, v_max=6, n_atom=5)
    output = model(torch.randn(8, 4))
    assert output["logit"].shape == (8, 3)
    assert output["distribution"].shape == (8, 3, 5)
    torch.testing.assert_close(output["distribution"].sum(-1), torch.ones(8, 3))
    atoms = torch.tensor([-2.0, 0.0, 2.0, 4.0, 6.0])
    torch.testing.assert_close(output["logit"], (output["distribution"] * atoms).sum(-1))


def test_rainbow_is_dueling_and_noisy():
    model = RainbowDQN(4, 3, n_atom=5).eval()
    x = model.encoder(torch.randn(8, 4))
    scores = model.head.atom_scores(x)
    torch.testing.assert_close(scores.mean(1), model.head.Q(x))
    model.train()
    assert not torch.equal(model.head.Q(x), model.head.Q(x))


def test_quantiles_have_the_logit_as_mean():
    output = QRDQN(4, 3, num_quantiles=4)(torch.randn(8, 4))
    assert output["q"].shape == (8, 3, 4)
    torch.testing.assert_close(output["logit"], output["q"].mean(-1))
    assert output["tau"].shape == (8, 4, 1)
    assert output["tau"][0, :, 0].tolist() == [0.125, 0.375, 0.625, 0.875]


@pytest.mark.parametrize("cls", [C51DQN, QRDQN, RainbowDQN])
def test_several_action_dimensions_and_images(cls):
    output = cls((3, 44, 44), [2, 3], [4, 4, 8])(torch.rand(2, 3, 44, 44))
    assert [part.shape for part in output["logit"]] == [(2, 2), (2, 3)]


def test_the_projected_loss_trains_every_parameter():
    model = C51DQN(4, 3)
    dist = model(torch.randn(8, 4))["distribution"]
    action = torch.zeros(8, dtype=torch.int64)
    data = dist_nstep_td_data(
        dist, dist.detach(), action, action, torch.rand(1, 8), torch.zeros(8), None
    )
    loss, _ = dist_nstep_td_error(data, 0.9, -10, 10, 51)
    is_differentiable(loss, model)


def test_the_state_holds_parameters_only():
    for model in (C51DQN(4, 3), QRDQN(4, 3), RainbowDQN(4, 3)):
        assert set(model.state_dict()) == {name for name, _ in model.named_parameters()}
