"""Returns, advantages, losses and exploration.

The imports are not lazy: ``gae`` is a function here and also a submodule, and the function must
have precedence.
"""

import inspect
from collections import namedtuple as _tuple

from ding.rl_utils.a2c import (
    a2c_data as a2c_data,
    a2c_error as a2c_error,
    a2c_error_continuous as a2c_error_continuous,
    a2c_loss as a2c_loss,
)
from ding.rl_utils.acer import (
    acer_policy_error as acer_policy_error,
    acer_trust_region_update as acer_trust_region_update,
    acer_value_error as acer_value_error,
    compute_q_retraces as compute_q_retraces,
)
from ding.rl_utils.adder import (
    Adder as Adder,
    get_gae as get_gae,
    get_gae_with_default_last_value as get_gae_with_default_last_value,
    get_nstep_return_data as get_nstep_return_data,
    get_train_sample as get_train_sample,
)
from ding.rl_utils.exploration import (
    BaseNoise as BaseNoise,
    GaussianNoise as GaussianNoise,
    OUNoise as OUNoise,
    create_noise_generator as create_noise_generator,
    get_epsilon_greedy_fn as get_epsilon_greedy_fn,
)
from ding.rl_utils.gae import (
    gae as gae,
    gae_columns as gae_columns,
    gae_data as gae_data,
    shape_fn_gae as shape_fn_gae,
)
from ding.rl_utils.log_prob_utils import (
    LogProbFunction as LogProbFunction,
    efficient_method as efficient_method,
    less_efficient_method as less_efficient_method,
    naive_method as naive_method,
)
from ding.rl_utils.nstep import nstep_columns as nstep_columns
from ding.rl_utils.ppo import (
    calculate_kl_div as calculate_kl_div,
    ppo_data as ppo_data,
    ppo_data_continuous as ppo_data_continuous,
    ppo_error as ppo_error,
    ppo_error_continuous as ppo_error_continuous,
    ppo_info as ppo_info,
    ppo_loss as ppo_loss,
    ppo_policy_data as ppo_policy_data,
    ppo_policy_data_continuous as ppo_policy_data_continuous,
    ppo_policy_error as ppo_policy_error,
    ppo_policy_error_continuous as ppo_policy_error_continuous,
    ppo_policy_loss as ppo_policy_loss,
    ppo_value_data as ppo_value_data,
    ppo_value_error as ppo_value_error,
    shape_fn_ppo as shape_fn_ppo,
)
from ding.rl_utils.td import *  # noqa: F403
from ding.rl_utils.upgo import (
    tb_cross_entropy as tb_cross_entropy,
    upgo_loss as upgo_loss,
    upgo_returns as upgo_returns,
)
from ding.rl_utils.value_rescale import (
    inv_symlog as inv_symlog,
    symlog as symlog,
    value_inv_transform as value_inv_transform,
    value_transform as value_transform,
)
from ding.rl_utils.vtrace import (
    shape_fn_vtrace_continuous_action as shape_fn_vtrace_continuous_action,
    shape_fn_vtrace_discrete_action as shape_fn_vtrace_discrete_action,
    vtrace_advantage as vtrace_advantage,
    vtrace_data as vtrace_data,
    vtrace_error_continuous_action as vtrace_error_continuous_action,
    vtrace_error_discrete_action as vtrace_error_discrete_action,
    vtrace_loss as vtrace_loss,
    vtrace_nstep_return as vtrace_nstep_return,
)

# For users' code; the policies of this package use dicts.
ppg_data = _tuple("ppg_data", "logit_new logit_old action value_new value_old return_ weight")
ppg_joint_loss = _tuple("ppg_joint_loss", "auxiliary_loss behavioral_cloning_loss")

happo_data = _tuple(
    "happo_data", "logit_new logit_old action value_new value_old adv return_ weight factor"
)
happo_policy_data = _tuple("happo_policy_data", "logit_new logit_old action adv weight factor")
happo_value_data = _tuple("happo_value_data", "value_new value_old return_ weight")
happo_loss = _tuple("happo_loss", "policy_loss value_loss entropy_loss")
happo_policy_loss = _tuple("happo_policy_loss", "policy_loss entropy_loss")
happo_info = _tuple("happo_info", "approx_kl clipfrac")

coma_data = _tuple("coma_data", "logit action q_value target_q_value reward weight")
coma_loss = _tuple("coma_loss", "policy_loss q_value_loss entropy_loss")

dqfd_nstep_td_data = _tuple(
    "dqfd_nstep_td_data",
    "q next_n_q action next_n_action reward done done_one_step weight "
    "new_n_q_one_step next_n_action_one_step is_expert",
)
iqn_nstep_td_data = _tuple(
    "iqn_nstep_td_data", "q next_n_q action next_n_action reward done replay_quantiles weight"
)
fqf_nstep_td_data = _tuple(
    "fqf_nstep_td_data", "q next_n_q action next_n_action reward done quantiles_hats weight"
)
m_q_1step_td_data = _tuple("m_q_1step_td_data", "q target_q next_q act reward done weight")

# All imported names above, so that they need not be listed twice.
__all__ = [name for name, value in vars().items() if name[0] != "_" and not inspect.ismodule(value)]
