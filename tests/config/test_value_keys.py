"""Configs that set every key that public configs of value-based policies set compile."""

import pytest
from easydict import EasyDict

from ding.config.check import Notes
from ding.config.compile import compile_run_config

EPS = dict(type="exp", start=0.95, end=0.1, decay=10000)
SHAPES = dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16, 16])
COMMON = dict(
    cuda=False,
    priority=True,
    discount_factor=0.97,
    nstep=1,
    model=SHAPES,
    learn=dict(batch_size=16, learning_rate=0.001, update_per_collect=1, target_update_freq=100),
    collect=dict(n_sample=16, unroll_len=1),
    eval=dict(evaluator=dict(eval_freq=100)),
    other=dict(eps=EPS, replay_buffer=dict(replay_buffer_size=1000)),
)
HOOKS = dict(load_ckpt_before_run="", save_ckpt_after_iter=10, save_ckpt_after_run=True)
RECURRENT = dict(
    priority_IS_weight=True,
    on_policy=False,
    burnin_step=2,
    learn_unroll_len=40,
    unroll_len=42,
    model=dict(lstm_type="pytorch"),
    learn=dict(target_update_theta=0.001),
    collect=dict(env_num=4, traj_len_inf=True),
    eval=dict(env_num=2),
    other=dict(replay_buffer=dict(alpha=0.6, beta=0.4)),
)
DEMONSTRATIONS = dict(
    lambda1=1.0, lambda2=1.0, lambda3=1e-5, lambda_one_step_td=1.0, per_train_iter_k=8
)
# What each policy's configs set in addition to the above.
KEYS = {
    "rainbow": dict(
        priority_IS_weight=True,
        model=dict(v_min=-10, v_max=10, n_atom=51),
        learn=dict(iqn=False),
    ),
    "iqn": dict(kappa=1.0, model=dict(num_quantiles=32), learn=dict(kappa=1.0)),
    "fqf": dict(
        kappa=1.0,
        model=dict(num_quantiles=32, quantile_embedding_size=64),
        learn=dict(learning_rate_fraction=1e-9, learning_rate_quantile=1e-4, ent_coef=0),
    ),
    "c51": dict(model=dict(v_min=-10, v_max=10, n_atom=51)),
    "qrdqn": dict(
        model=dict(num_quantiles=32),
        learn=dict(kappa=1.0, learner=dict(load_path="", hook=HOOKS)),
        collect=dict(
            data_type="naive", collect_count=9, model_path="", save_path="", expert_data_path=""
        ),
        other=dict(eps=dict(collect=0.2)),
    ),
    "sql": dict(model=dict(dueling=True), learn=dict(alpha=0.1), collect=dict(model_path="")),
    "mdqn": dict(
        entropy_tau=0.03,
        m_alpha=0.9,
        model=dict(dueling=True),
        learn=dict(learner=dict(hook=HOOKS)),
    ),
    "dqn": dict(learn=dict(alpha=0.1, discount_factor=0.9)),
    "bdq": dict(
        load_path="",
        model=dict(num_branches=2, action_bins_per_branch=3),
        learn=dict(ignore_done=False),
    ),
    "sqn": dict(
        model=dict(dueling=True),
        learn=dict(
            alpha=0.2,
            learning_rate_q=0.001,
            learning_rate_alpha=0.001,
            target_entropy=0.2,
            multi_gpu=False,
        ),
        collect=dict(nstep=1),
    ),
    "dqfd": dict(
        model=dict(dueling=True),
        learn=dict(DEMONSTRATIONS, expert_replay_buffer_size=100),
        collect=dict(model_path="expert.pth.tar"),
    ),
    "r2d2": dict(
        RECURRENT,
        model=dict(RECURRENT["model"], res_link=True),
        collect=dict(RECURRENT["collect"], each_iter_n_sample=16),
    ),
    "r2d3": dict(
        RECURRENT,
        learn=dict(
            DEMONSTRATIONS, margin_function=0.8, target_update_theta=0.1, value_rescale=True
        ),
        collect=dict(RECURRENT["collect"], pho=0.25),
    ),
}


def merged(base, more):
    both = {**base, **more}
    for name in base.keys() & more.keys():
        if isinstance(base[name], dict):
            both[name] = merged(base[name], more[name])
    return both


@pytest.mark.parametrize("type_", KEYS)
def test_all_counted_keys(type_):
    policy = merged(COMMON, KEYS[type_])
    if type_ in ("fqf", "sqn"):
        del policy["learn"]["learning_rate"]
    if type_ == "bdq":
        del policy["model"]["action_shape"]
    if "unroll_len" in policy:
        del policy["collect"]["unroll_len"]
    env = dict(
        env_id="CartPole-v1",
        collector_env_num=4,
        evaluator_env_num=2,
        n_evaluator_episode=2,
        stop_value=195,
    )
    main = EasyDict(exp_name="run", env=env, policy=policy)
    create = EasyDict(
        env=dict(type="gymnasium"),
        env_manager=dict(type="base"),
        policy=dict(type=type_, import_names=[f"ding.policy.{type_}"]),
    )
    notes = Notes()
    compile_run_config(main, create, notes=notes, strict=True)
    assert not notes.adapted
