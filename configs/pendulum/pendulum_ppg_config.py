"""Phasic policy gradient (Cobbe et al. 2020) with a vector of real actions."""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/pendulum_ppg",
    env=dict(
        env_id="Pendulum-v1",
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=20,
        # Of torques between -1 and 1, made what the environment takes.
        act_scale=True,
        stop_value=-250,
    ),
    policy=dict(
        cuda=False,
        action_space="continuous",
        model=dict(
            obs_shape=3,
            action_shape=1,
            action_space="continuous",
            encoder_hidden_size_list=[64, 64],
            actor_head_hidden_size=64,
            critic_head_hidden_size=64,
        ),
        learn=dict(
            actor_epoch_per_collect=10,
            critic_epoch_per_collect=10,
            batch_size=64,
            learning_rate=0.001,
            entropy_weight=0.0,
            adv_norm=True,
            value_norm=True,
            aux_freq=8,
            aux_train_epoch=2,
        ),
        # A torque's effect is seen soon; a short horizon makes for steadier estimates.
        collect=dict(n_sample=1600, discount_factor=0.9, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=500)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="ppg"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_onpolicy

    serial_pipeline_onpolicy([main_config, create_config], seed=0)
