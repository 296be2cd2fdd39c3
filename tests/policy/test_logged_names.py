"""Names under which policies log, which dashboards and scripts of users look for."""

import pytest

from tests.policy.batches import build

#: By policy type.
NAMES = {
    "a2c": "cur_lr total_loss policy_loss value_loss entropy_loss adv_abs_max grad_norm",
    "acer": "actor_loss bc_loss policy_loss critic_loss entropy_loss kl_div",
    "bc": "cur_lr total_loss forward_time backward_time sync_time",
    "bcq": "td_error target_q_value critic_loss twin_critic_loss actor_loss recons_loss kld_loss "
    "vae_loss",
    **dict.fromkeys(
        ("bdq", "c51", "dqfd", "dqn", "iqn", "qrdqn", "rainbow"),
        "cur_lr total_loss q_value target_q_value",
    ),
    "collaq": "cur_lr total_loss colla_loss td_loss grad_norm",
    **dict.fromkeys(
        ("coma", "impala"),
        "cur_lr total_loss policy_loss value_loss entropy_loss",
    ),
    **dict.fromkeys(
        ("cql", "edac", "sac"),
        "policy_loss critic_loss cur_lr_q cur_lr_p target_q_value alpha td_error "
        "transformed_log_prob twin_critic_loss alpha_loss",
    ),
    "d4pg": "cur_lr_actor cur_lr_critic critic_loss actor_loss total_loss q_value action",
    **dict.fromkeys(
        ("ddpg", "td3_bc"),
        "cur_lr_actor cur_lr_critic critic_loss actor_loss total_loss q_value q_value_twin "
        "action td_error critic_twin_loss",
    ),
    "discrete_cql": "cur_lr total_loss q_target q_value",
    "discrete_sac": "cur_lr total_loss alpha_loss policy_loss critic_loss cur_lr_q cur_lr_p "
    "target_q_value q_value_1 q_value_2 alpha td_error target_value entropy twin_critic_loss",
    "fqf": "cur_lr_fraction_loss cur_lr_quantile_loss logit fraction_loss quantile_loss "
    "total_norm_quantiles_proposal total_norm_Q total_norm_fqf_fc total_norm_encoder",
    "madqn": "cur_lr total_loss total_q target_total_q grad_norm target_reward_total_q "
    "cooperation_grad_norm cooperation_loss",
    "mdqn": "cur_lr total_loss q_value action_gap clip_frac",
    "pdqn": "cur_lr total_loss q_loss continuous_loss q_value reward target_q_value",
    "pg": "cur_lr total_loss policy_loss entropy_loss return_abs_max grad_norm",
    **dict.fromkeys(
        ("ppg", "ppg_offpolicy"),
        "policy_cur_lr value_cur_lr policy_loss value_loss entropy_loss policy_adv_abs_max "
        "approx_kl clipfrac aux_value_loss auxiliary_loss behavioral_cloning_loss",
    ),
    "ppo": "cur_lr total_loss policy_loss value_loss entropy_loss adv_max adv_mean approx_kl "
    "clipfrac value_max value_mean",
    "ppo_offpolicy": "cur_lr total_loss policy_loss value value_loss entropy_loss adv_abs_max "
    "approx_kl clipfrac",
    "ppo_pg": "cur_lr total_loss policy_loss entropy_loss approx_kl clipfrac",
    **dict.fromkeys(
        ("qmix", "wqmix"),
        "cur_lr total_loss total_q target_total_q grad_norm target_reward_total_q",
    ),
    "qtran": "cur_lr total_loss td_loss opt_loss nopt_loss grad_norm",
    "r2d2": "cur_lr total_loss priority q_s_taken-a_t0 target_q_s_max-a_t0 q_s_a-mean_t0",
    "r2d3": "cur_lr total_loss nstep_loss 1step_loss sl_loss priority q_s_taken-a_t0 "
    "target_q_s_max-a_t0 q_s_a-mean_t0",
    "sql": "cur_lr total_loss record_value_function",
    "sqn": "alpha_loss alpha entropy q_loss q_value",
    "td3": "q_value loss lr entropy target_q_value td_error",
}
#: What is not logged, see docs/differences.md.
LEFT_OUT = {
    "acer": {"kl_div"},
    "bc": {"forward_time", "backward_time", "sync_time"},
    "discrete_sac": {"cur_lr", "target_value"},
    "fqf": {
        *("total_norm_quantiles_proposal", "total_norm_Q", "total_norm_fqf_fc"),
        "total_norm_encoder",
    },
    "madqn": {"cooperation_grad_norm"},
    "td3": {"loss", "lr", "entropy"},
    # `forward` returns it, one number for each sample.
    "r2d2": {"priority"},
    "r2d3": {"priority"},
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_are_those_that_dashboards_know(kind):
    names = build(kind).learn_mode.monitor_vars()
    assert len(names) == len(set(names))
    assert set(NAMES[kind].split()) - set(names) == LEFT_OUT.get(kind, set())


@pytest.mark.parametrize("kind", ["ppo", "ppo_offpolicy"])
def test_continuous_actions_have_more(kind):
    names = build(kind, "continuous").learn_mode.monitor_vars()
    assert {"mu_mean", "sigma_mean", "act"} <= set(names)


def test_agents_of_happo_have_names_of_their_own():
    names = build("happo", "agents").learn_mode.monitor_vars()
    for i in range(2):
        assert {f"agent{i}_policy_loss", f"agent{i}_approx_kl"} <= set(names)
    assert all(name.startswith("agent") for name in names)
