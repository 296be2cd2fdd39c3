"""Named tuples that users' code makes; the policies of this package compute from dicts."""

from collections import namedtuple

ppg_data = namedtuple("ppg_data", "logit_new logit_old action value_new value_old return_ weight")
ppg_joint_loss = namedtuple("ppg_joint_loss", "auxiliary_loss behavioral_cloning_loss")

happo_data = namedtuple(
    "happo_data", "logit_new logit_old action value_new value_old adv return_ weight factor"
)
happo_policy_data = namedtuple("happo_policy_data", "logit_new logit_old action adv weight factor")
happo_value_data = namedtuple("happo_value_data", "value_new value_old return_ weight")
happo_loss = namedtuple("happo_loss", "policy_loss value_loss entropy_loss")
happo_policy_loss = namedtuple("happo_policy_loss", "policy_loss entropy_loss")
happo_info = namedtuple("happo_info", "approx_kl clipfrac")

coma_data = namedtuple("coma_data", "logit action q_value target_q_value reward weight")
coma_loss = namedtuple("coma_loss", "policy_loss q_value_loss entropy_loss")

dqfd_nstep_td_data = namedtuple(
    "dqfd_nstep_td_data",
    "q next_n_q action next_n_action reward done done_one_step weight "
    "new_n_q_one_step next_n_action_one_step is_expert",
)
iqn_nstep_td_data = namedtuple(
    "iqn_nstep_td_data", "q next_n_q action next_n_action reward done replay_quantiles weight"
)
fqf_nstep_td_data = namedtuple(
    "fqf_nstep_td_data", "q next_n_q action next_n_action reward done quantiles_hats weight"
)
m_q_1step_td_data = namedtuple("m_q_1step_td_data", "q target_q next_q act reward done weight")
