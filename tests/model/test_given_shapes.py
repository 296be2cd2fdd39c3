"""A size is a size, however it is written: 5, [5], (5,), a number or an array of numpy."""

import inspect

import numpy as np
import pytest
import torch

from ding.utils import MODEL_REGISTRY
from ding.utils.default_helper import one_size, sizes_of
from ding.utils.errors import ConfigError

SIZES = dict(
    obs_shape=5, agent_obs_shape=5, global_obs_shape=6, action_shape=3, state_dim=5, act_dim=3
)
OTHERS = dict(agent_num=2, num_branches=2, hidden_size_list=[8, 8], action_bins_per_branch=4)
OWN = dict(
    coma=dict(obs_shape=dict(agent_state=5, global_state=6), actor_hidden_size_list=[8, 8]),
    pdqn=dict(action_shape=dict(action_type_shape=3, action_args_shape=1)),
    collaq=dict(alone_obs_shape=5, self_feature_range=[0, 2], ally_feature_range=[2, 5]),
    qtran=dict(embedding_size=8),
    dt=dict(n_blocks=1, n_heads=1, h_dim=8, context_len=4, drop_p=0.0),
)
SHAPES = (*SIZES, "alone_obs_shape", "action_bins_per_branch")
FORMS = {
    "list": lambda size: [size],
    "tuple": lambda size: (size,),
    "integer of numpy": np.int64,
    "array": lambda size: np.array([size]),
    "torch.Size": lambda size: torch.Size([size]),
}


def arguments(name):
    parameters = inspect.signature(MODEL_REGISTRY.get(name)).parameters
    own = {key: size for key, size in {**SIZES, **OTHERS}.items() if key in parameters}
    own.update(OWN.get(name, {}))
    if "action_space" in parameters:
        default = parameters["action_space"].default
        own["action_space"] = "regression" if default is inspect.Parameter.empty else default
    return own


def in_form(shape, form):
    if isinstance(shape, dict):
        return {key: in_form(size, form) for key, size in shape.items()}
    return form(shape)


def layout(name, options):
    torch.manual_seed(0)
    state = MODEL_REGISTRY.get(name)(**options).state_dict()
    return {key: tuple(value.shape) for key, value in state.items()}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", sorted(MODEL_REGISTRY.query()))
def test_networks_take_a_size_in_any_form(name, form):
    options = arguments(name)
    given = {key: in_form(options[key], FORMS[form]) for key in options if key in SHAPES}
    assert given
    assert layout(name, {**options, **given}) == layout(name, options)


def test_what_is_no_shape():
    assert sizes_of(np.int32(3)) == sizes_of([np.int64(3)]) == sizes_of(np.array(3)) == [3]
    assert all(type(size) is int for size in sizes_of(np.array([3, 4])))
    for wrong in ("5", 5.0, [5.5], None, {}):
        with pytest.raises(ConfigError, match=r"obs_shape is .*; expected"):
            one_size(wrong, "obs_shape", "the size")
    with pytest.raises(ConfigError, match=r"action_shape is \[2, 3\]; expected one.* the choice"):
        one_size([2, 3], "action_shape", "the choice")
