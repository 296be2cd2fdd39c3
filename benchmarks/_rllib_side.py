"""RLlib on CartPole, with settings of its tuned examples, until the mean return is 195.

    python benchmarks/_rllib_side.py PPO 2 0 90      # algorithm, CPUs, seed, seconds at most

Prints ``RESULT {...}``: seconds from the start of Python to the first iteration, and to the goal
(``null`` if it was not reached), and env steps a second while it trained.
"""

import json
import os
import sys
import time

#: When Python was started, according to the parent process.
BEGIN = float(os.environ.get("BENCH_BEGIN") or time.time())
os.environ.update(RAY_DEDUP_LOGS="0", RAY_USAGE_STATS_ENABLED="0", PYTHONWARNINGS="ignore")
GOAL = 195.0
#: Episodes over which the mean return is taken: fewer than by default, which makes it sooner.
EPISODES = 20


def main(algorithm: str, cpus: int, seed: int, limit: float) -> None:
    import ray

    ray.init(
        address="local", num_cpus=cpus, include_dashboard=False, object_store_memory=200 * 2**20
    )
    try:
        algo = _config(algorithm, cpus, seed).build_algo()
        try:
            print("RESULT " + json.dumps(_train(algo, limit)), flush=True)
        finally:
            algo.stop()
    finally:
        ray.shutdown()


def _train(algo, limit: float) -> dict:
    start = time.time()
    reached, steps, mean = None, 0, float("nan")
    while reached is None and time.time() - start < limit:
        results = algo.train()
        runners = results["env_runners"]
        steps = runners.get("num_env_steps_sampled_lifetime", steps)
        mean = runners.get("episode_return_mean", mean)
        if mean >= GOAL:
            reached = time.time() - BEGIN
    spent = time.time() - start
    return {
        "start": start - BEGIN,
        "reached": reached,
        "envstep": int(steps),
        "steps_per_second": steps / spent,
        "mean": float(mean),
    }


def _config(algorithm: str, cpus: int, seed: int):
    from ray.rllib.algorithms.appo import APPOConfig
    from ray.rllib.algorithms.dqn import DQNConfig
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    shared = DefaultModelConfig(fcnet_hiddens=[32], fcnet_activation="linear", vf_share_layers=True)
    if algorithm == "PPO":
        config = PPOConfig().training(
            lr=0.0003, num_epochs=6, vf_loss_coeff=0.01, train_batch_size_per_learner=2000
        )
        config.rl_module(model_config=shared)
    elif algorithm == "APPO":
        config = APPOConfig().training(
            vf_loss_coeff=0.05, entropy_coeff=0.0, train_batch_size_per_learner=500
        )
        config.rl_module(model_config=DefaultModelConfig(vf_share_layers=True))
    elif algorithm == "DQN":
        config = DQNConfig().training(
            lr=0.0005,
            train_batch_size_per_learner=32,
            replay_buffer_config={
                "type": "PrioritizedEpisodeReplayBuffer",
                "capacity": 50000,
                "alpha": 0.6,
                "beta": 0.4,
            },
            n_step=(2, 5),
            double_q=True,
            dueling=True,
            epsilon=[(0, 1.0), (10000, 0.02)],
        )
        config.rl_module(
            model_config=DefaultModelConfig(
                fcnet_hiddens=[256],
                fcnet_activation="tanh",
                fcnet_bias_initializer="zeros_",
                head_fcnet_hiddens=[256],
            )
        )
    else:
        raise SystemExit(f"no settings for {algorithm}; expected PPO, APPO or DQN")
    config.environment("CartPole-v1").debugging(seed=seed, log_level="ERROR")
    # One runner next to the algorithm's own process: as many cores as our run has.
    config.env_runners(num_env_runners=max(1, cpus - 1), num_envs_per_env_runner=8)
    return config.reporting(metrics_num_episodes_for_smoothing=EPISODES, min_time_s_per_iteration=0)


if __name__ == "__main__":
    name, cores, number, seconds = sys.argv[1:]
    main(name, int(cores), int(number), float(seconds))
