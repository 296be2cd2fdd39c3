"""Returns, advantages, losses and exploration.

Not lazy: ``gae`` is a function here and a module below, and the function must win.
"""

from ding.rl_utils import td
from ding.rl_utils.a2c import a2c_data, a2c_error, a2c_error_continuous, a2c_loss
from ding.rl_utils.acer import (
    acer_policy_error,
    acer_trust_region_update,
    acer_value_error,
)
from ding.rl_utils.adder import (
    Adder,
    get_gae,
    get_gae_with_default_last_value,
    get_nstep_return_data,
    get_train_sample,
)
from ding.rl_utils.columnar import gae_columns, nstep_columns
from ding.rl_utils.exploration import (
    BaseNoise,
    GaussianNoise,
    OUNoise,
    create_noise_generator,
    get_epsilon_greedy_fn,
)
from ding.rl_utils.gae import gae, gae_data, shape_fn_gae
from ding.rl_utils.ppo import (
    calculate_kl_div,
    ppo_data,
    ppo_data_continuous,
    ppo_error,
    ppo_error_continuous,
    ppo_info,
    ppo_loss,
    ppo_policy_data,
    ppo_policy_data_continuous,
    ppo_policy_error,
    ppo_policy_error_continuous,
    ppo_policy_loss,
    ppo_value_data,
    ppo_value_error,
    shape_fn_ppo,
)
from ding.rl_utils.retrace import compute_q_retraces
from ding.rl_utils.td import *  # noqa: F403
from ding.rl_utils.value_rescale import inv_symlog, symlog, value_inv_transform, value_transform
from ding.rl_utils.vtrace import (
    shape_fn_vtrace_continuous_action,
    shape_fn_vtrace_discrete_action,
    vtrace_advantage,
    vtrace_data,
    vtrace_error_continuous_action,
    vtrace_error_discrete_action,
    vtrace_loss,
    vtrace_nstep_return,
)

__all__ = [
    "Adder",
    "BaseNoise",
    "GaussianNoise",
    "OUNoise",
    "a2c_data",
    "a2c_error",
    "a2c_error_continuous",
    "a2c_loss",
    "acer_policy_error",
    "acer_trust_region_update",
    "acer_value_error",
    "calculate_kl_div",
    "compute_q_retraces",
    "create_noise_generator",
    "gae",
    "gae_columns",
    "gae_data",
    "get_epsilon_greedy_fn",
    "get_gae",
    "get_gae_with_default_last_value",
    "get_nstep_return_data",
    "get_train_sample",
    "inv_symlog",
    "nstep_columns",
    "ppo_data",
    "ppo_data_continuous",
    "ppo_error",
    "ppo_error_continuous",
    "ppo_info",
    "ppo_loss",
    "ppo_policy_data",
    "ppo_policy_data_continuous",
    "ppo_policy_error",
    "ppo_policy_error_continuous",
    "ppo_policy_loss",
    "ppo_value_data",
    "ppo_value_error",
    "shape_fn_gae",
    "shape_fn_ppo",
    "shape_fn_vtrace_continuous_action",
    "shape_fn_vtrace_discrete_action",
    "symlog",
    "value_inv_transform",
    "value_transform",
    "vtrace_advantage",
    "vtrace_data",
    "vtrace_error_continuous_action",
    "vtrace_error_discrete_action",
    "vtrace_loss",
    "vtrace_nstep_return",
]
__all__ += td.__all__
