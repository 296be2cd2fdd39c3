"""Fair shares of evaluation episodes among environments."""

from typing import Any

import numpy as np

from ding.utils.errors import ConfigError


class VectorEvalMonitor:
    """Results of ``n_episode`` episodes, of which each environment owes its share.

    Taking the first ``n_episode`` to end would favour short episodes, so each environment runs
    a number fixed in advance: ``n_episode / env_num``, the first ones one more.

    Args:
        env_num: Number of environments.
        n_episode: Number of episodes.

    Raises:
        ConfigError: Fewer episodes than environments.
    """

    def __init__(self, env_num: int, n_episode: int) -> None:
        if n_episode < env_num:
            raise ConfigError(
                f"n_evaluator_episode={n_episode} is less than evaluator_env_num={env_num}: "
                f"some environments would have nothing to do; raise it to {env_num} or more"
            )
        share, extra = divmod(n_episode, env_num)
        self._share = [share + (env_id < extra) for env_id in range(env_num)]
        self._returns: list[list[float]] = [[] for _ in range(env_num)]
        self._infos: list[list[Any]] = [[] for _ in range(env_num)]
        self._frames: list[list[np.ndarray]] = [[] for _ in range(env_num)]
        self._videos: list[tuple[float, list[np.ndarray]]] = []

    def is_finished(self) -> bool:
        """Whether every environment has run its share."""
        return all(map(self.env_is_finished, range(len(self._share))))

    def env_is_finished(self, env_id: int) -> bool:
        """Whether one environment has run its share."""
        return len(self._returns[env_id]) >= self._share[env_id]

    def update_info(self, env_id: int, info: Any) -> None:
        """Take the info of an episode's end; beyond the share it is ignored."""
        if len(self._infos[env_id]) < self._share[env_id]:
            self._infos[env_id].append(info)

    def update_reward(self, env_id: int, reward: Any) -> None:
        """Take the return of an episode; beyond the share it is ignored."""
        if self.env_is_finished(env_id):
            return
        episode_return = float(np.asarray(reward).item())
        self._returns[env_id].append(episode_return)
        if self._frames[env_id]:
            self._videos.append((episode_return, self._frames[env_id]))
            self._frames[env_id] = []

    def update_video(self, imgs: dict[int, np.ndarray]) -> None:
        """Take a frame, uint8 ``[H, W, C]``, of each environment's running episode."""
        for env_id, img in imgs.items():
            if not self.env_is_finished(env_id):
                self._frames[env_id].append(img)

    def get_video(self) -> np.ndarray:
        """Worst, median and best episode, uint8 ``[3, T, C, H, W]``; short ones end in a still.

        Raises:
            ValueError: No frames were taken.
        """
        if not self._videos:
            raise ValueError("no frames were taken: call update_video() at each step")
        ranked = [frames for _, frames in sorted(self._videos, key=lambda item: item[0])]
        chosen = [ranked[0], ranked[len(ranked) // 2], ranked[-1]]
        longest = max(map(len, chosen))
        padded = [frames + [frames[-1]] * (longest - len(frames)) for frames in chosen]
        return np.stack([np.stack(frames) for frames in padded]).transpose(0, 1, 4, 2, 3)

    def get_episode_return(self) -> list[float]:
        """Returns of all finished episodes, environment by environment."""
        return [value for returns in self._returns for value in returns]

    def get_latest_reward(self, env_id: int) -> float:
        """Return of the environment's latest episode."""
        return self._returns[env_id][-1]

    def get_current_episode(self) -> int:
        """Number of finished episodes."""
        return sum(map(len, self._returns))

    def get_episode_info(self) -> dict[str, list[Any]]:
        """What all finished episodes' infos have in common: a list of values for each key."""
        infos = [info for infos in self._infos for info in infos]
        if not infos:
            return {}
        shared = [key for key in infos[0] if all(key in info for info in infos)]
        return {key: [info[key] for info in infos] for key in shared}

    def get_means(self) -> dict[str, float]:
        """Means over all finished episodes of what their infos hold as numbers: ``<key>_mean``."""
        return {
            f"{key}_mean": float(np.mean([np.asarray(value).item() for value in values]))
            for key, values in self.get_episode_info().items()
            if all(_is_number(value) for value in values)
        }


def _is_number(value: Any) -> bool:
    if isinstance(value, str | bytes) or value is None:
        return False
    array = np.asarray(value)
    return array.size == 1 and array.dtype.kind in "biuf"
