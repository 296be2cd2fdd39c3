"""Behavioural cloning from observation (Torabi et al. 2018) of a PPO policy of the zoo.

`ding -m serial_bco -c configs/cartpole/cartpole_bco_config.py -s 0`. CartPole-v1 counts as solved
at a mean return of 475; neither the expert's actions nor the environment's rewards are used.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_bco",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=10,
        stop_value=475,
    ),
    policy=dict(
        cuda=False,
        continuous=False,
        expert_random_collect_size=4000,
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[64, 64]),
        learn=dict(
            train_epoch=5,
            batch_size=64,
            learning_rate=1e-3,
            optimizer="Adam",
            weight_decay=0.0,
        ),
        collect=dict(n_sample=400, model_path="zoo:cartpole_ppo"),
        eval=dict(evaluator=dict(eval_freq=300)),
    ),
    bco=dict(
        learn=dict(idm_batch_size=64, idm_learning_rate=1e-3, idm_train_epoch=10),
        model=dict(idm_encoder_hidden_size_list=[64, 64]),
        alpha=0.2,
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="bc"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_bco

    serial_pipeline_bco([main_config, create_config], seed=0)
