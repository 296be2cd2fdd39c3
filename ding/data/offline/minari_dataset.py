"""Data sets of Minari, and of its predecessor D4RL."""

import contextlib
import os
import re
import stat
from typing import TYPE_CHECKING

import numpy as np
import torch

from ding.data.arrays import Column
from ding.data.columns import Columns
from ding.data.offline.fields import as_column, as_index, as_plain
from ding.data.offline.hdf5_dataset import HDF5_ENDINGS, check_hdf5
from ding.data.offline.naive_dataset import read_saved
from ding.data.offline.transition_dataset import (
    TransitionDataset,
    collect_section,
    data_path,
    path_key,
)
from ding.data.tree import tree_map, tree_take
from ding.utils.errors import ConfigError, DataError
from ding.utils.registry_factory import DATASET_REGISTRY
from ding.utils.types import Settings

if TYPE_CHECKING:
    import minari

#: D4RL's names for the quality of the demonstrator, and the closest data set of Minari.
_LEVELS = {
    "random": "simple",
    "simple": "simple",
    "medium": "medium",
    "medium-replay": "medium",
    "medium-expert": "expert",
    "full-replay": "expert",
    "expert": "expert",
}
_MINARI_ID = re.compile(r"(?:[\w-]+/)+[\w-]+-v\d+")
#: Tasks of MuJoCo, and tasks of Adroit, whose data sets have the same names in Minari.
_MUJOCO = ("ant", "halfcheetah", "hopper", "humanoid", "swimmer", "walker2d", "reacher", "pusher")
_ADROIT = ("door", "hammer", "pen", "relocate")


@DATASET_REGISTRY.register("minari")
class MinariDataset(TransitionDataset):
    """A local data set of Minari.

    ``data_path`` is its id, such as ``mujoco/hopper/expert-v0``. Actions are divided by the bounds
    of the action space if these are symmetric and not -1 and 1. Needs the extra ``minari``.

    Args:
        cfg: The id, or a config with ``policy.collect.data_path`` or ``policy.learn.data_path``.

    Raises:
        ConfigError: There is no id, Minari is not installed, or the data set has to be downloaded
            first.
        DataError: The data set has no transitions.
    """

    def __init__(self, cfg: str | Settings) -> None:
        super().__init__(read_minari(data_path(cfg)))


@DATASET_REGISTRY.register("d4rl")
class D4RLDataset(TransitionDataset):
    """A data set by its name in D4RL, such as ``hopper-medium-expert-v2``.

    D4RL is no longer maintained: the closest data set of Minari is used. ``data_path`` may also be
    a file of D4RL (HDF5) or of this package.

    Args:
        cfg: The name, or a config with it as ``policy.collect.data_path``,
            ``policy.learn.data_path`` or, if neither is a file or such a name, ``env.env_id``.

    Raises:
        ConfigError: As for `MinariDataset`, or no data set of Minari corresponds to the name.
    """

    def __init__(self, cfg: str | Settings) -> None:
        name = _name(cfg)
        if os.path.exists(name):
            allow = not isinstance(cfg, str) and collect_section(cfg).get("allow_pickle", False)
            super().__init__(read_saved(name, bool(allow)))
            return
        minari_id = minari_id_of(name)
        super().__init__(read_minari(minari_id))
        if minari_id != name:
            self.adapted = f"data set {name!r} of D4RL: it is {minari_id!r} of Minari"


def _name(cfg: str | Settings) -> str:
    if isinstance(cfg, str):
        return cfg
    path = data_path(cfg) if path_key(cfg) is not None else None
    env_id = (cfg.get("env") or {}).get("env_id")
    if path is None and not isinstance(env_id, str):
        raise ConfigError(
            "policy.collect.data_type='d4rl' needs the data set's name, as "
            "policy.collect.data_path or env.env_id, such as 'hopper-medium-expert-v2'"
        )
    if path is None or not (os.path.exists(path) or _near(path)):
        # Configs that use the environment's id as the name often have an unrelated path as well.
        return str(env_id if path is None or _near(str(env_id)) else path)
    return path


def minari_id_of(name: str) -> str:
    """The id of Minari's data set closest to one of D4RL; an id of Minari is returned unchanged.

    Raises:
        ConfigError: No data set corresponds to the name.
    """
    found = _near(name)
    if found is None:
        raise ConfigError(
            f"no data set of Minari is near {name!r}: expected such as 'hopper-medium-expert-v2' "
            "or an id of Minari such as 'mujoco/hopper/expert-v0' (minari list remote)"
        )
    return found


def _near(name: str) -> str | None:
    if _MINARI_ID.fullmatch(name):
        return name
    words = name.lower().removesuffix("-").split("-")
    if words[-1].startswith("v") and words[-1][1:].isdigit():
        words.pop()
    task, level = words[0], "-".join(words[1:])
    if task in _MUJOCO and level in _LEVELS:
        return f"mujoco/{task}/{_LEVELS[level]}-v0"
    if task in _ADROIT and level in ("human", "cloned", "expert"):
        return f"D4RL/{task}/{level}-v2"
    if task == "kitchen" and level in ("complete", "mixed", "partial"):
        return f"D4RL/{task}/{level}-v2"
    mazes = {"antmaze": f"D4RL/antmaze/{level}-v1", "maze2d": f"D4RL/pointmaze/{level}-v2"}
    return mazes.get(task) if level else None


def read_minari(dataset_id: str) -> Columns:
    """All transitions of a data set; errors as for `MinariDataset`."""
    try:
        import minari
    except ImportError as error:
        raise ConfigError(
            f"the data set {dataset_id!r} needs Minari, which is not installed: "
            'pip install "ding[minari]", then minari download ' + dataset_id
        ) from error
    _check_files(dataset_id)
    try:
        dataset = minari.load_dataset(dataset_id)
    except (FileNotFoundError, ValueError) as error:
        raise ConfigError(
            f"the data set {dataset_id!r} is not on this machine ({error}): "
            f"minari download {dataset_id}"
        ) from error
    parts = [Columns(_columns_of(one)) for one in dataset.iterate_episodes() if len(one.rewards)]
    if not parts:
        raise DataError(f"the data set {dataset_id!r} has no transitions")
    data = Columns.concat(parts).map_columns(as_column)
    scale = _bound(dataset)
    if scale is not None:
        action = torch.as_tensor(data.column("action"))
        data = data.with_columns(action=action / torch.from_numpy(scale))
    return data


def _check_files(dataset_id: str) -> None:
    """Refuse special files, decompression bombs and references to other files.

    Raises:
        DataError: A file of the data set is refused.
        CheckpointError: A file is damaged.
    """
    from minari.storage.datasets_root_dir import get_dataset_path  # an extra

    for where, folders, names in os.walk(get_dataset_path(dataset_id)):
        for path in (os.path.join(where, name) for name in [*folders, *names]):
            mode = os.lstat(path).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise DataError(f"{path} is neither a file nor a folder, expected Minari's data")
            if path.endswith(HDF5_ENDINGS):
                check_hdf5(path)


def _columns_of(episode: "minari.EpisodeData") -> dict[str, Column]:
    """Columns of an episode of T transitions, which has T + 1 observations."""
    obs = tree_map(as_plain, episode.observations)
    return {
        "obs": tree_take(obs, slice(-1)),
        "next_obs": tree_take(obs, slice(1, None)),
        "action": tree_map(lambda leaf: as_index(as_plain(leaf)), episode.actions),
        "reward": np.asarray(episode.rewards, np.float32),
        "done": np.asarray(episode.terminations, bool),
    }


def _bound(dataset: "minari.MinariDataset") -> np.ndarray | None:
    """Divisor of actions, float32 in the shape of an action; ``None`` for no division."""
    with contextlib.suppress(AttributeError):
        low, high = dataset.action_space.low, dataset.action_space.high
        if np.array_equal(low, -high) and np.isfinite(high).all() and not np.all(high == 1):
            return np.asarray(high, np.float32)
    return None
