"""Configs that set every key that public configs of policies of teams set compile and learn."""

import json

import pytest
from easydict import EasyDict

from ding.config.check import Notes
from ding.config.compile import compile_run_config
from ding.entry import serial_pipeline

EPS = dict(type="exp", start=1, end=0.05, decay=100)
BUFFER = dict(replay_buffer_size=100, max_reuse=1e9, max_staleness=1e9)
MODEL = dict(
    agent_num=2,
    obs_shape=8,
    global_obs_shape=8,
    action_shape=5,
    hidden_size_list=[8, 8],
    lstm_type="gru",
    dueling=False,
)
LEARN = dict(
    update_per_collect=2,
    batch_size=4,
    learning_rate=0.0005,
    clip_value=5,
    target_update_theta=0.008,
    discount_factor=0.95,
    double_q=True,
)
COLLECT = dict(unroll_len=4, env_num=2)


def of_team(model, learn, **more):
    return dict(
        cuda=False,
        agent_num=2,
        model={**MODEL, **model},
        learn={**LEARN, **learn},
        collect=COLLECT,
        eval=dict(env_num=2, evaluator=dict(eval_freq=100)),
        other=dict(eps=EPS, replay_buffer=BUFFER),
        **more,
    )


CONFIGS = {
    "qmix": of_team(dict(mixer=True), {}),
    "wqmix": of_team({}, dict(wqmix_ow=False, alpha=0.1)),
    "qtran": of_team(dict(embedding_size=8), dict(td_weight=1, opt_weight=0.01, nopt_min_weight=1)),
    "collaq": of_team(
        dict(
            mixer=True,
            alone_obs_shape=6,
            attention=True,
            attention_size=8,
            self_feature_range=[0, 2],
            ally_feature_range=[6, 8],
        ),
        dict(collaq_loss_weight=1.0),
        priority=False,
        priority_IS_weight=False,
    ),
    "madqn": of_team(dict(global_cooperation=True), {}, nstep=3, command=dict()),
    "coma": dict(
        cuda=False,
        agent_num=2,
        model=dict(
            agent_num=2,
            obs_shape=dict(agent_state=8, global_state=8),
            action_shape=5,
            actor_hidden_size_list=[8, 8],
        ),
        learn=dict(
            update_per_collect=2,
            batch_size=4,
            learning_rate=0.0005,
            target_update_theta=0.001,
            discount_factor=0.99,
            td_lambda=0.8,
            policy_weight=0.001,
            value_weight=1,
            entropy_weight=0.01,
        ),
        collect=COLLECT,
        eval=dict(env_num=2, evaluator=dict(eval_freq=100)),
        other=dict(eps=EPS, replay_buffer=dict(replay_buffer_size=100, max_use=10)),
    ),
    "discrete_sac": dict(
        cuda=False,
        on_policy=False,
        multi_agent=True,
        random_collect_size=16,
        command=dict(),
        model=dict(
            agent_num=2,
            agent_obs_shape=8,
            global_obs_shape=8,
            action_shape=5,
            twin_critic=True,
            actor_head_hidden_size=8,
            critic_head_hidden_size=8,
        ),
        learn=dict(
            update_per_collect=2,
            batch_size=4,
            learning_rate_q=5e-4,
            learning_rate_policy=5e-4,
            learning_rate_alpha=5e-5,
            target_theta=0.005,
            discount_factor=0.99,
            alpha=0.2,
            auto_alpha=True,
            log_space=True,
            target_entropy=-2,
            ignore_done=False,
        ),
        collect=dict(n_sample=32, unroll_len=1, env_num=2),
        eval=dict(env_num=2, evaluator=dict(eval_freq=100)),
        other=dict(eps=EPS, replay_buffer=dict(replay_buffer_size=100)),
    ),
}


def configs(policy, amount, collector, folder="run"):
    cfg = CONFIGS[policy]
    main = EasyDict(
        exp_name=str(folder),
        env=dict(
            agent_num=2,
            collector_env_num=2,
            evaluator_env_num=2,
            n_evaluator_episode=2,
            stop_value=100,
            manager=dict(shared_memory=False, reset_timeout=6000),
        ),
        policy={**cfg, "collect": {**cfg["collect"], **amount}},
    )
    create = EasyDict(
        env=dict(type="grid_spread"),
        env_manager=dict(type="base"),
        policy=dict(type=policy),
        collector=dict(type=collector),
    )
    return main, create


TEAMS = [policy for policy in CONFIGS if policy != "discrete_sac"]
RUNS = [
    ("discrete_sac", "sample", {}),
    *((policy, "sample", dict(n_sample=4)) for policy in TEAMS),
    *((policy, "episode", dict(n_episode=2)) for policy in TEAMS),
]


@pytest.mark.parametrize(("policy", "collector", "amount"), RUNS)
def test_all_counted_keys(policy, collector, amount, tmp_path):
    main, create = configs(policy, amount, collector, tmp_path / "run")
    notes = Notes()
    compile_run_config(main, create, notes=notes, strict=True)
    assert not notes.unknown
    serial_pipeline((main, create), seed=0, max_env_step=40)
    end = json.loads((tmp_path / "run" / "run.json").read_text())
    assert end["train_iter"] > 0
    assert not end.get("warnings")
