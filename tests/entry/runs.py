"""Small serial runs, and environments and policies with every fault."""

import csv
import json
import os
import signal
import time

import numpy as np
import torch
from easydict import EasyDict
from gymnasium import spaces

from ding.data.row_journal import RowJournal
from ding.entry.run.state import rows_path, take_run_state, write_run_state
from ding.envs import BaseEnv, BaseEnvTimestep
from ding.policy.dqn import DQNPolicy
from ding.utils import POLICY_REGISTRY, deep_merge_dicts


class WalkEnv(BaseEnv):
    """Ten steps; action 1 gives a reward of 1. The observation is made of the seed and the step.

    As long as there is no file ``cfg.gate``, action 1 gives only 0.9: a run may learn, and does
    not reach a `stop_value` above 9 before its test lets it.

    ``cfg.fault`` comes at step ``cfg.at`` of the instance's life (``where='step'``), at its
    ``cfg.at``-th reset, or in its constructor.
    """

    def __init__(self, cfg: dict) -> None:
        self._cfg = {"fault": None, "where": "step", "at": 30, **cfg}
        self._steps = self._resets = 0
        self._rng = np.random.default_rng(0)
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.reward_space = spaces.Box(0, 1, (1,), np.float32)
        self._maybe_fail("init", 0)

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        self._rng = np.random.default_rng(seed)

    def reset(self) -> np.ndarray:
        self._resets += 1
        self._t, self._return = 0, 0.0
        self._start = self._rng.random(2)
        self._maybe_fail("reset", self._resets)
        return self._obs()

    def _obs(self) -> np.ndarray:
        return np.array([*self._start, self._t / 10], np.float32)

    def step(self, action) -> BaseEnvTimestep:
        time.sleep(self._cfg.get("seconds", 0))
        self._t += 1
        self._steps += 1
        gate = self._cfg.get("gate")
        worth = 1.0 if gate is None or os.path.exists(gate) else 0.9
        reward = worth * float(np.all(action == 1))
        self._return += reward
        done = self._t == 10
        info = {"eval_episode_return": self._return} if done else {}
        timestep = BaseEnvTimestep(self._obs(), np.array([reward], np.float32), done, info)
        return self._maybe_fail("step", self._steps, timestep)

    def _maybe_fail(self, where: str, count: int, timestep=None):
        cfg = self._cfg
        if cfg["fault"] is None or cfg["where"] != where or (where != "init" and count < cfg["at"]):
            return timestep
        if cfg["fault"] == "signal":
            if count == cfg["at"]:
                os.kill(cfg["pid"], cfg["signum"])
            return timestep
        if cfg["fault"] == "mark":  # no fault at all
            with open("marker", "w"):
                return timestep
        if cfg["fault"] == "raise":
            raise ValueError("the env's own words")
        if cfg["fault"] == "hang":
            time.sleep(1000)
        if cfg["fault"] == "deaf_hang":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
            time.sleep(1000)
        if cfg["fault"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        obs, reward, *end = timestep
        if cfg["fault"] == "nan_reward":
            reward = np.array([np.nan], np.float32)
        if cfg["fault"] == "nan_obs":
            obs = np.full(3, np.nan, np.float32)
        return BaseEnvTimestep(obs, reward, *end)

    def close(self) -> None:
        pass

    def state_dict(self) -> dict:
        return {"rng": self._rng.bit_generator.state}

    def load_state_dict(self, state: dict) -> None:
        self._rng.bit_generator.state = state["rng"]


@POLICY_REGISTRY.register("faulty_dqn", force_overwrite=True)
class FaultyDQN(DQNPolicy):
    """DQN whose ``cfg.other.fault`` shows after a few updates."""

    def _fault_now(self) -> str | None:
        self._calls = getattr(self, "_calls", 0) + 1
        return self._cfg.other.fault if self._calls > 12 else None

    def _forward_learn(self, data):
        output = super()._forward_learn(data)
        fault, priority = self._fault_now(), output["priority"]
        if fault == "nan_loss":
            output["total_loss"] = float("nan")
        elif fault == "nan_priority":
            priority[3] = float("nan")
        elif fault == "negative_priority":
            priority[3] = -1.0
        elif fault == "short_priority":
            output["priority"] = priority[:-1]
        elif fault == "no_priority":
            del output["priority"]
        return output

    def _forward_collect_batch(self, obs, eps):
        output = super()._forward_collect_batch(obs, eps)
        fault = self._cfg.other.fault
        if fault == "bad_action":
            output["action"] = torch.full_like(output["action"], 7)
        elif fault == "nan_action":
            output["action"] = torch.full(output["action"].shape, float("nan"))
        elif fault == "nan_weights":
            with torch.no_grad():
                next(self._model.parameters()).fill_(float("nan"))
        return output


@POLICY_REGISTRY.register("faulty_dqn_command", force_overwrite=True)
class FaultyDQNCommand(FaultyDQN):
    def _init_command(self):
        pass

    total_field = frozenset({"learn", "collect", "eval", "command"})

    @property
    def command_mode(self):
        return DQNPolicy.command_function(dict, lambda info: {"eps": 0.1}, dict)


def walk_config(exp_name="run", manager="base", policy="dqn", **changes):
    """``(main_config, create_config)`` of a run on `WalkEnv`; see `walk_envs`."""
    main = dict(
        exp_name=str(exp_name),
        env=dict(
            collector_env_num=2,
            evaluator_env_num=2,
            n_evaluator_episode=2,
            stop_value=1000,
            manager=dict(),
        ),
        policy=dict(
            model=dict(obs_shape=3, action_shape=2, encoder_hidden_size_list=[16, 16]),
            learn=dict(batch_size=8, learner=dict(hook=dict(save_ckpt_after_iter=20))),
            collect=dict(n_sample=8),
            eval=dict(evaluator=dict(eval_freq=30)),
            other=dict(replay_buffer=dict(replay_buffer_size=200)),
        ),
    )
    if policy == "ppo":
        main["policy"]["action_space"] = "discrete"
        main["policy"]["learn"] |= dict(epoch_per_collect=2, batch_size=16)
        main["policy"]["collect"] = dict(n_sample=64)
        del main["policy"]["other"]
        main["policy"]["model"] = dict(
            obs_shape=3, action_shape=2, action_space="discrete", encoder_hidden_size_list=[16, 16]
        )
    elif policy == "dqn":
        main["policy"] |= dict(priority=True, priority_IS_weight=True, nstep=2)
    elif policy == "r2d2":
        main["policy"] |= dict(burnin_step=1, learn_unroll_len=4, nstep=2)
    elif policy in ("impala", "acer"):
        main["policy"] |= dict(unroll_len=4, priority=True, priority_IS_weight=True)
    elif policy == "faulty_dqn":
        main["policy"]["priority"] = True
    main = deep_merge_dicts(main, changes)
    create = dict(env_manager=dict(type=manager), policy=dict(type=policy))
    return EasyDict(main), EasyDict(create)


def cartpole_config(exp_name="run", type_="dqn", env=None, hidden=8, **policy):
    """``(main_config, create_config)`` of a small run on CartPole, with settings of its policy."""
    counts = dict(collector_env_num=2, evaluator_env_num=2, n_evaluator_episode=4)
    main = dict(
        exp_name=exp_name,
        env=dict(env_id="CartPole-v1", **{**counts, **(env or {})}),
        policy=dict(
            model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[hidden]), **policy
        ),
    )
    types = dict(env=dict(type="gymnasium"), env_manager=dict(type="base"))
    return main, dict(types, policy=dict(type=type_))


def walk_envs(evaluator=None, number=2, **collector):
    """``env_setting`` of `WalkEnv`; keyword arguments go to collecting environment 1."""
    cfgs = [{} for _ in range(number)]
    cfgs[-1] = collector
    return [WalkEnv, cfgs, [evaluator or {} for _ in range(number)]]


def run_json(exp_name="run"):
    with open(os.path.join(exp_name, "run.json")) as file:
        return json.load(file)


def metrics(exp_name="run"):
    with open(os.path.join(exp_name, "metrics.jsonl")) as file:
        return [json.loads(line) for line in file]


def untimed_metrics(exp_name="run"):
    """Rows without what depends on the clock."""
    timed = ("time", "_sec", "duration", "thruput")
    rows = [
        {k: v for k, v in row.items() if not any(word in k for word in timed)}
        for row in metrics(exp_name)
        if not any(name.startswith("usage_iter/") for name in row)  # every few seconds
    ]
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def episodes(exp_name="run"):
    """Rows of episodes.csv without their time."""
    with open(os.path.join(exp_name, "episodes.csv")) as file:
        return [{k: v for k, v in row.items() if k != "time"} for row in csv.DictReader(file)]


def save_run_state(parts, journal=None):
    """Save the state of a serial run as its keeper does, which keeps one journal."""
    exp_name = parts.cfg.exp_name
    journal = journal or RowJournal(rows_path(exp_name))
    write_run_state(exp_name, take_run_state(parts, journal), journal)
