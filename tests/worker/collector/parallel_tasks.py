"""Tasks for parallel collectors, environments that fail on demand, and a worker in memory."""

import threading
import time
from typing import Any

import torch
from easydict import EasyDict

from ding.policy import DQNPolicy, create_policy
from ding.utils import ENV_REGISTRY
from ding.worker.collector.parts_cache import PartsCache
from tests.fakes import DuelLineEnv, LineEnv

#: Of a collector's report.
FINISH_KEYS = {
    *("eval_flag", "env_num", "duration", "train_iter", "collector_done"),
    *("predefined_episode_count", "real_episode_count", "step_count", "sample_count"),
    *("avg_time_per_episode", "avg_time_per_step", "avg_time_per_train_sample"),
    *("avg_step_per_episode", "avg_sample_per_episode"),
    *("reward_mean", "reward_std", "reward_raw", "finish_time", "collect_setting"),
}
#: Lets environments that hang go on.
RELEASE = threading.Event()


@ENV_REGISTRY.register("parallel_line")
class ParallelLineEnv(LineEnv):
    """A line; ``fail_at`` raises, ``hang_at`` waits at that step (counted over all episodes)."""

    made = 0

    def __init__(self, cfg: dict) -> None:
        super().__init__(cfg)
        type(self).made += 1

    def step(self, action: Any) -> Any:
        at = self._steps + 1
        if at == self._cfg.get("fail_at"):
            raise RuntimeError("the track broke")
        if at == self._cfg.get("hang_at"):
            RELEASE.wait(30)
        time.sleep(self._cfg.get("step_time", 0.0))
        return super().step(action)

    def reset(self) -> Any:
        if self._cfg.get("hang_in_reset") and self._steps:
            RELEASE.wait(30)
        return super().reset()


@ENV_REGISTRY.register("parallel_duel")
class ParallelDuelEnv(DuelLineEnv):
    """A line for two."""


def policy_cfg(**cfg: Any) -> EasyDict:
    """A small DQN for the line."""
    merged = DQNPolicy.default_config()
    merged.type = "dqn"
    merged.model = dict(obs_shape=2, action_shape=2, encoder_hidden_size_list=[4])
    merged.collect.n_sample = 16
    merged.update(cfg)
    return merged


def env_cfg(kind: str = "parallel_line", episodes: float | None = None, **cfg: Any) -> dict:
    manager = dict(type="base") if episodes is None else dict(type="base", episode_num=episodes)
    manager.update(cfg.pop("manager", {}))
    merged = dict(type=kind, collector_env_num=2, evaluator_env_num=2, manager=manager)
    return {**merged, "n_evaluator_episode": 3, **cfg}


def collector_cfg(kind: str = "zergling", **cfg: Any) -> EasyDict:
    merged = dict(
        type=kind,
        env=env_cfg(episodes=2),
        policy=policy_cfg(),
        policy_update_path="policy_a",
        collect_setting={"eps": 0.5},
        eval_flag=False,
        exp_name="exp",
        seed=0,
    )
    merged.update(cfg)
    if merged["eval_flag"]:
        merged["collect_setting"] = {}
    return EasyDict(merged)


def task_info(task_id: str = "task", **cfg: Any) -> EasyDict:
    return EasyDict(task_id=task_id, buffer_id="buffer", collector_cfg=collector_cfg(**cfg))


def weights(value: float, **cfg: Any) -> dict[str, Any]:
    """Published weights of the small DQN, all of one value."""
    state = create_policy(policy_cfg(**cfg), enable_field=["collect"]).collect_mode.state_dict()
    return {"model": {name: torch.full_like(t, value) for name, t in state["model"].items()}}


class MemoryLink:
    """A worker that keeps what is sent."""

    def __init__(self, name: str = "memory") -> None:
        self.parts = PartsCache(name)
        self.data: dict[str, Any] = {}
        self.metadata: list[dict[str, Any]] = []
        self.policies: dict[str, Any] = {}
        self.asked: list[str] = []
        self.changed = True
        self.waiting = 0

    def get_policy_update_info(self, path: str) -> Any:
        self.asked.append(path)
        value = self.policies.get(path)
        if isinstance(value, Exception):
            raise value
        return value

    def send_stepdata(self, path: str, stepdata: Any) -> None:
        self.data[path] = stepdata

    def send_metadata(self, metadata: Any) -> None:
        self.metadata.append(metadata)

    def policy_changed(self, path: str) -> bool:
        return self.changed

    def new_data_id(self) -> str:
        return f"data_{len(self.data)}"

    def backlog(self) -> int:
        return self.waiting

    def chunk_rows(self, samples: Any) -> int:
        return len(samples)
