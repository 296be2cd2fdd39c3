"""One run of SB3 with a config's hyperparameters, for ``returns.py --peer sb3``.

Runs with the interpreter that has SB3. Reads a job as JSON from the standard input, and prints the
run's facts as JSON. Evaluations are as often as the config's, of as many episodes, deterministic,
on an environment that is not trained on.
"""

import json
import sys
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import ale_py
import gymnasium
import numpy as np
from stable_baselines3 import PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import (
    VecEnv,
    VecFrameStack,
    VecNormalize,
    sync_envs_normalization,
)
from torch import nn


def main() -> None:
    job = json.load(sys.stdin)
    began = time.perf_counter()
    train, test = make_envs(job)
    model = BUILDERS[job["policy"]](job, train)
    watch = Watch(job, test)
    model.learn(job["env_step"], callback=watch)
    result = {
        "status": "converged" if watch.reached else "finished",
        "env_steps": model.num_timesteps,
        "updates": model._n_updates,
        "seconds": round(time.perf_counter() - began, 1),
        "evaluations": watch.evaluations,
        "versions": versions(
            *("stable-baselines3", "gymnasium", "torch", "mujoco", "box2d", "ale-py")
        ),
    }
    print(json.dumps(result))


def versions(*packages: str) -> dict[str, str]:
    """Of those packages that are installed."""
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def make_envs(job: dict[str, Any]) -> tuple[VecEnv, VecEnv]:
    """Training and evaluation environments, normalised as the config says."""
    env = job["env"]
    if job["frame_stack"]:
        gymnasium.register_envs(ale_py)
        stacked = [
            VecFrameStack(make_atari_env(env["env_id"], count, seed), job["frame_stack"])
            for count, seed in ((env["collector_env_num"], job["seed"]), (1, job["seed"] + 10_000))
        ]
        return stacked[0], stacked[1]
    train = make_vec_env(env["env_id"], env["collector_env_num"], seed=job["seed"])
    test = make_vec_env(env["env_id"], 1, seed=job["seed"] + 10_000)
    if not env.get("norm_obs", {}).get("use_norm"):
        return train, test
    gamma = env["norm_reward"]["reward_discount"]
    normalised = VecNormalize(train, gamma=gamma)
    return normalised, VecNormalize(test, training=False, norm_reward=False)


class Watch(BaseCallback):
    """Evaluates after each ``eval_every`` env steps, and ends training at the goal."""

    def __init__(self, job: dict[str, Any], env: VecEnv) -> None:
        super().__init__()
        self._every, self._episodes, self._env = job["eval_every"], job["episodes"], env
        self._goal, self._next = job["goal"], 0
        self.evaluations: dict[str, list[float]] = {"env_step": [], "update": [], "return": []}

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._next:
            self._next += self._every
            self.evaluate()
        return not self.reached

    def _on_training_end(self) -> None:
        if not self.reached:
            self.evaluate()

    @property
    def reached(self) -> bool:
        returns = self.evaluations["return"]
        return self._goal is not None and bool(returns) and returns[-1] >= self._goal

    def evaluate(self) -> None:
        if isinstance(self._env, VecNormalize):
            sync_envs_normalization(self.training_env, self._env)
        mean, _ = evaluate_policy(self.model, self._env, self._episodes)
        values = (self.num_timesteps, self.model._n_updates, float(f"{mean:.6g}"))
        for column, value in zip(self.evaluations.values(), values, strict=True):
            column.append(value)


def ppo(job: dict[str, Any], env: VecEnv) -> BaseAlgorithm:
    learn, collect = job["learn"], job["collect"]
    steps = collect["n_sample"] // job["env"]["collector_env_num"]
    rate, schedule = learn["learning_rate"], learn.get("lr_scheduler")
    sizes = {"pi": job["hidden"], "vf": job["hidden"]}
    # The standard deviation begins as ours does, and values are clipped as much as ratios.
    network = {"net_arch": sizes, "activation_fn": nn.Tanh, "log_std_init": -0.5}
    if job["frame_stack"]:
        # Convolutions as Mnih et al. (2015), then a layer for each of policy and value.
        sizes = {name: size[-1:] for name, size in sizes.items()}
        network = {"net_arch": sizes, "activation_fn": nn.ReLU}
    return PPO(
        "CnnPolicy" if job["frame_stack"] else "MlpPolicy",
        env,
        # The config's schedule falls linearly over the whole run.
        learning_rate=(lambda left: rate * left) if schedule else rate,
        n_steps=steps,
        batch_size=learn["batch_size"],
        n_epochs=learn["epoch_per_collect"],
        gamma=collect["discount_factor"],
        gae_lambda=collect["gae_lambda"],
        clip_range=learn["clip_ratio"],
        clip_range_vf=learn["clip_ratio"],
        ent_coef=learn["entropy_weight"],
        vf_coef=learn["value_weight"],
        max_grad_norm=learn["grad_clip_value"],
        policy_kwargs=network,
        seed=job["seed"],
        device="cpu",
    )


def off_policy(job: dict[str, Any]) -> dict[str, Any]:
    """What SAC and TD3 have in common."""
    learn = job["learn"]
    return {
        "buffer_size": job["buffer_size"],
        "learning_starts": job["random_collect_size"],
        "batch_size": learn["batch_size"],
        "tau": learn["target_theta"],
        "gamma": learn["discount_factor"],
        # Counted in steps of all environments.
        "train_freq": max(1, job["collect"]["n_sample"] // job["env"]["collector_env_num"]),
        "gradient_steps": learn["update_per_collect"],
        "policy_kwargs": {"net_arch": job["hidden"]},
        "seed": job["seed"],
        "device": "cpu",
    }


def sac(job: dict[str, Any], env: VecEnv) -> BaseAlgorithm:
    learn = job["learn"]
    alpha = f"auto_{learn['alpha']}" if learn["auto_alpha"] else learn["alpha"]
    rate = learn["learning_rate_q"]
    return SAC("MlpPolicy", env, learning_rate=rate, ent_coef=alpha, **off_policy(job))


def td3(job: dict[str, Any], env: VecEnv) -> BaseAlgorithm:
    size = env.action_space.shape
    noise = NormalActionNoise(np.zeros(size), np.full(size, job["collect"]["noise_sigma"]))
    rate = job["learn"]["learning_rate_critic"]
    return TD3("MlpPolicy", env, learning_rate=rate, action_noise=noise, **off_policy(job))


BUILDERS = {"ppo": ppo, "sac": sac, "td3": td3}


if __name__ == "__main__":
    main()
