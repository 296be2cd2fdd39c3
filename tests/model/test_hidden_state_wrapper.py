import pytest
import torch
from torch import nn

from ding.model import model_wrap


class Counter(nn.Module):
    """Adds 1 to each state; `None` is a state that begins."""

    def forward(self, data):
        states = [torch.zeros(1) if s is None else s for s in data["prev_state"]]
        return {"seen": [s.item() for s in states], "next_state": [s + 1 for s in states]}


def wrap(**kwargs):
    return model_wrap(Counter(), "hidden_state", state_num=3, **kwargs)


def test_states_are_kept_per_environment():
    wrapper = wrap()
    data = {"obs": None}
    assert wrapper.forward(data)["seen"] == [0, 0, 0]
    assert data == {"obs": None}
    assert wrapper.forward({}, data_id=[2, 0])["seen"] == [1, 1]
    output = wrapper.forward({})
    assert output["seen"] == [2, 1, 2]
    assert "next_state" not in output


def test_reset_restarts_where_asked():
    wrapper = wrap()
    wrapper.forward({})
    wrapper.reset(data_id=[1])
    assert wrapper.forward({})["seen"] == [1, 0, 1]
    wrapper.reset()
    assert wrapper.forward({})["seen"] == [0, 0, 0]
    wrapper.reset(data_id=[0, 2], state=[torch.tensor([5.0]), torch.tensor([7.0])])
    assert wrapper.forward({})["seen"] == [5, 1, 7]


def test_states_outside_valid_id_stay():
    wrapper = wrap()
    wrapper.forward({}, valid_id=[1])
    assert wrapper.forward({})["seen"] == [0, 1, 0]


def test_the_states_that_went_in_are_given_back():
    wrapper = wrap(save_prev_state=True, init_fn=lambda: torch.full((1,), 4.0, requires_grad=True))
    output = wrapper.forward({}, data_id=[0, 1])
    assert [s.item() for s in output["prev_state"]] == [4, 4]
    assert not any(s.requires_grad for s in output["prev_state"])


def test_sampling_around_it_resets_it():
    class Logits(Counter):
        def forward(self, data):
            output = super().forward(data)
            return {**output, "logit": torch.eye(len(output["seen"]))}

    wrapper = model_wrap(model_wrap(Logits(), "hidden_state", state_num=3), "argmax_sample")
    assert wrapper.forward({})["action"].tolist() == [0, 1, 2]
    wrapper.reset(data_id=[0])
    assert wrapper.forward({})["seen"] == [0, 1, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w: w.forward({}, data_id=[3]), r"ids \[3\] came.*state_num=3, ids 0 to 2"),
        (lambda w: w.reset(data_id=[7]), r"ids \[7\] came"),
        (lambda w: w.reset(data_id=[0], state=[]), "0 states came for 1 ids"),
        (lambda w: w.after_forward([1], {0: None, 1: None}), "returned 1 states"),
    ],
)
def test_ids_and_numbers_that_do_not_fit_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(wrap())


def test_environments_may_come_without_having_been_announced():
    wrapper = model_wrap(Counter(), "hidden_state", state_num=None)
    assert wrapper.state_of(7) is None
    wrapper.forward({"x": 1}, data_id=[7, 2])
    assert wrapper.state_of(7) is not None
    wrapper.reset(data_id=[7])
    assert wrapper.state_of(7) is None
