"""Evaluation of a trained policy, and recording of its samples and episodes."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from easydict import EasyDict

from ding.config.complete import Strict
from ding.data import Columns
from ding.data.dataset import offline_data_save_type, saved_path
from ding.data.offline.hdf5_dataset import HDF5_ENDINGS
from ding.entry.components import (
    InputConfig,
    episode_returns,
    load_config,
    load_weights,
    make_env_manager,
    players,
    seed_envs,
)
from ding.entry.run.folder import make_writable
from ding.policy import Policy, create_policy
from ding.rl_utils import get_nstep_return_data
from ding.torch_utils import to_device
from ding.utils import read_file, set_pkg_seed
from ding.utils.errors import CheckpointError, ConfigError, DataError
from ding.utils.settings import EnvSetting
from ding.utils.types import State
from ding.worker import (
    EpisodeSerialCollector,
    ISerialEvaluator,
    SampleSerialCollector,
    create_serial_evaluator,
)
from ding.worker.collector.steps import Envs, Samples

Actor = TypeVar("Actor", SampleSerialCollector, EpisodeSerialCollector, ISerialEvaluator)
Collector = TypeVar("Collector", SampleSerialCollector, EpisodeSerialCollector)
#: Key of the discount factor in rows of episodes, and its value if they lack it.
_GAMMA, _DEFAULT_GAMMA = "discount_factor", 0.99


def eval(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    state_dict: State | None = None,
    load_path: str | None = None,
    replay_path: str | None = None,
) -> float:
    """Evaluate a policy by its mean return.

    The weights are ``state_dict``, else the file ``load_path``, else that of the config's
    ``policy.learn.learner.hook.load_ckpt_before_run`` or ``policy.load_path``, else those of
    ``model``.

    Args:
        input_cfg: Path of a config file, or ``(main_config, create_config)``.
        seed: Seed of all random number generators.
        env_setting: Env class or function, the collectors' env configs, the evaluators'.
        model: Network that replaces the config's.
        state_dict: State of the policy's eval mode.
        load_path: Path of a checkpoint.
        replay_path: Folder for videos of the episodes.

    Returns:
        Mean return over ``env.n_evaluator_episode`` episodes.

    Raises:
        ConfigError: The config is invalid, or names no weights.
        CheckpointError: The weights cannot be read or do not fit.

    Example:

        >>> from ding.entry import eval
        >>> from ding.entry.quick_config import quick_config
        >>> from ding.model import DQN
        >>> model = DQN(4, 2)  # untrained weights; of a run: load_path="…/ckpt_best.pth.tar"
        >>> mean_return = eval(quick_config("CartPole-v1", "dqn"), seed=0, model=model)
    """
    returns = evaluate(input_cfg, seed, env_setting, model, state_dict, load_path, replay_path)
    return sum(returns) / len(returns)


def evaluate(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    state_dict: State | None = None,
    load_path: str | None = None,
    replay_path: str | None = None,
    strict: Strict = False,
) -> list[float]:
    """The return of each episode, as in `eval`; in battles those of the first player."""
    cfg = _compile(input_cfg, seed, env_setting, model, strict)

    def build(env: Envs, policy: Policy, **log: object) -> ISerialEvaluator:
        own = cfg.policy.eval.evaluator
        return create_serial_evaluator(own, env=env, policy=players(cfg, policy, env)[1], **log)

    weights = state_dict, load_path
    with _acting(cfg, env_setting, model, weights, "evaluator", build, replay_path) as evaluator:
        _, info = evaluator.eval()
    return episode_returns(info)


def collect_demo_data(
    input_cfg: InputConfig,
    seed: int,
    collect_count: int,
    expert_data_path: str | None = None,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    state_dict: State | None = None,
    state_dict_path: str | None = None,
) -> None:
    """Save training samples that a policy collects, as a list of rows; as HDF5 if the path ends in
    ``.hdf5`` or ``.h5``, or with ``policy.collect.data_type='hdf5'``.

    In the latter case, ``a/expert_demos.hdf5`` is written for ``a/expert.pkl``, the name that
    offline configs expect.

    ε-greedy policies act with ``policy.other.eps.collect``, by default greedily.

    Args:
        input_cfg: Path of a config file, or ``(main_config, create_config)``.
        seed: Seed of all random number generators.
        collect_count: Number of samples.
        expert_data_path: File to write; ``policy.collect.save_path`` by default.
        env_setting: Env class or function, the collectors' env configs, the evaluators'.
        model: Network that replaces the config's.
        state_dict: State of the policy's collect mode.
        state_dict_path: Path of a checkpoint; for the default see `eval`.

    Raises:
        ConfigError: The config is invalid, or names no weights or file.
        CheckpointError: The weights cannot be read or do not fit, or the file cannot be written.

    Example:

        >>> from ding.entry import collect_demo_data
        >>> from ding.entry.quick_config import quick_config
        >>> from ding.model import DQN
        >>> config = quick_config("CartPole-v1", "dqn")
        >>> collect_demo_data(config, 0, 64, "demo.pkl", model=DQN(4, 2))
    """
    cfg = _compile(input_cfg, seed, env_setting, model)
    path = expert_data_path or cfg.policy.collect.get("save_path")
    if not path:
        raise ConfigError("where to? Pass expert_data_path, or set policy.collect.save_path")
    is_hdf5 = path.endswith(HDF5_ENDINGS) or cfg.policy.collect.get("data_type") == "hdf5"
    data_type = "hdf5" if is_hdf5 else "naive"
    path = saved_path(path, data_type)  # before collection, as it may raise
    weights = state_dict, state_dict_path
    samples = _collect(SampleSerialCollector, collect_count, cfg, env_setting, model, weights)
    _save(path, samples, f"{len(samples)} samples", data_type)


def collect_episodic_demo_data(
    input_cfg: InputConfig,
    seed: int,
    collect_count: int,
    expert_data_path: str,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    state_dict: State | None = None,
    state_dict_path: str | None = None,
) -> None:
    """Save whole episodes that a policy plays, each a list of its transitions.

    Each transition contains the policy's ``discount_factor``, from which n-step ones can be made.

    Args:
        collect_count: Number of episodes.

    The other arguments and the errors are those of `collect_demo_data`.
    """
    cfg = _compile(input_cfg, seed, env_setting, model)
    cfg.policy.collect.collector.get_train_sample = False
    weights = state_dict, state_dict_path
    episodes = _collect(EpisodeSerialCollector, collect_count, cfg, env_setting, model, weights)
    policy = cfg.policy
    gamma = policy.get("discount_factor", policy.collect.get("discount_factor"))
    known = {} if gamma is None else {_GAMMA: float(gamma)}
    data = [[{**row, **known} for row in episode] for episode in episodes]
    _save(expert_data_path, data, f"{len(data)} episodes")


def episode_to_transitions(
    data_path: str, expert_data_path: str, nstep: int, gamma: float | None = None
) -> None:
    """Convert a file of episodes to n-step transitions, saved as a list of rows.

    Args:
        data_path: A file of `collect_episodic_demo_data`.
        expert_data_path: File to write.
        nstep: Number of steps per transition; at an episode's end there are fewer.
        gamma: Discount factor; by default that of the policy that collected the episodes, or 0.99
            if the file does not contain it.

    Raises:
        DataError: The file contains no episodes.
    """
    _save_transitions(_read_episodes(data_path), expert_data_path, nstep, gamma)


def episode_to_transitions_filter(
    data_path: str,
    expert_data_path: str,
    nstep: int,
    min_episode_return: float,
    gamma: float | None = None,
) -> None:
    """`episode_to_transitions` for the episodes whose return is at least ``min_episode_return``.

    Raises:
        DataError: The file contains no episodes, or none with such a return.
    """
    episodes = _read_episodes(data_path)
    returns = [
        sum(float(np.sum(np.asarray(row["reward"]))) for row in episode) for episode in episodes
    ]
    good = [one for one, value in zip(episodes, returns) if value >= min_episode_return]
    if not good:
        best = f", the best {max(returns):g}" if returns else ""
        raise DataError(
            f"none of the {len(episodes)} episodes in {data_path} returns at least "
            f"min_episode_return={min_episode_return:g}{best}"
        )
    _save_transitions(good, expert_data_path, nstep, gamma)


def _read_episodes(path: str) -> list[Samples]:
    episodes = read_file(path)
    if not isinstance(episodes, list) or not all(isinstance(one, list) for one in episodes):
        raise DataError(f"{path} must hold a list of episodes, each a list of transitions")
    return episodes


def _save_transitions(episodes: list[Samples], path: str, nstep: int, gamma: float | None) -> None:
    rows: Samples = []
    for episode in episodes:
        stored = episode[0].get(_GAMMA, _DEFAULT_GAMMA) if episode else _DEFAULT_GAMMA
        plain = [{name: row[name] for name in row if name != _GAMMA} for row in episode]
        rows += get_nstep_return_data(plain, nstep, gamma=stored if gamma is None else gamma)
    _save(path, rows, f"{len(rows)} transitions")


def _compile(
    input_cfg: InputConfig,
    seed: int,
    env_setting: EnvSetting | None,
    model: torch.nn.Module | None,
    strict: Strict = False,
) -> EasyDict:
    return load_config(
        input_cfg, seed, env_setting, model, command=False, strict=strict, collects=False
    )


@contextlib.contextmanager
def _acting(
    cfg: EasyDict,
    env_setting: EnvSetting | None,
    model: torch.nn.Module | None,
    weights: tuple[State | None, str | None],
    role: str,
    build: Callable[..., Actor],
    replay_path: str | None = None,
) -> Iterator[Actor]:
    """A collector or evaluator of the policy with its weights, which leaves no files.

    Args:
        weights: A state, or the path of a checkpoint.
        role: ``collector`` or ``evaluator``.
        build: Creates it from an env manager, a policy and the log's destination.
    """
    collects = role == "collector"
    state = _find_weights(cfg, model, *weights)
    if replay_path is not None:
        make_writable(replay_path, f"cannot write videos into {os.path.abspath(replay_path)!r}")
    with contextlib.ExitStack() as stack:
        env = make_env_manager(cfg, env_setting, evaluate=not collects)
        stack.callback(env.close)
        seed_envs(env, cfg.seed, role, dynamic_seed=collects)
        if replay_path is not None:
            env.enable_save_replay(replay_path)
        set_pkg_seed(cfg.seed, use_cuda=cfg.policy.cuda)
        # Collecting may need attributes that the learn mode sets up, such as the scale of values.
        fields = ["learn", "collect"] if collects else ["eval"]
        policy = create_policy(cfg.policy, model=model, enable_field=fields)
        if state is not None:
            mode = policy.collect_mode if collects else policy.eval_mode
            load_weights(mode, state, weights[1] or "the given state")
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ding-"))
        part = build(env, policy, tb_logger=_NoWriter(), exp_name=folder)
        stack.callback(part.close)
        if getattr(env, "normalises", False) and policy._get_attribute("env_statistics") is None:
            raise CheckpointError(
                f"{weights[1] or 'the policy'} holds no 'env_statistics', by which the "
                "environments of its run normalised what it learned from: without them it would "
                "act on other inputs. It was saved before they were kept, or without them: train "
                "it again"
            )
        yield part


def _collect(
    kind: type[Collector],
    count: int,
    cfg: EasyDict,
    env_setting: EnvSetting | None,
    model: torch.nn.Module | None,
    weights: tuple[State | None, str | None],
) -> Any:
    """Collect `count` samples or episodes, depending on the collector."""
    own = EasyDict({**kind.default_config(), **cfg.policy.collect.collector})

    def build(env: Envs, policy: Policy, **log: Any) -> Collector:
        return kind(own, env, policy.collect_mode, **log)

    eps = cfg.policy.other.get("eps")
    exploration = {} if eps is None else {"eps": float(eps.get("collect", 0.0))}
    with _acting(cfg, env_setting, model, weights, "collector", build) as collector:
        return collector.collect(count, policy_kwargs=exploration)


def _find_weights(
    cfg: EasyDict, model: torch.nn.Module | None, state_dict: State | None, load_path: str | None
) -> State | None:
    """The state to load; ``None`` if the given model has the weights."""
    if state_dict is not None:
        return state_dict
    hook = cfg.policy.learn.learner.get("hook", {})
    path = load_path or hook.get("load_ckpt_before_run") or cfg.policy.get("load_path")
    if path:
        state = read_file(path)
        if not isinstance(state, dict) or "model" not in state:
            raise CheckpointError(f"{path} is no checkpoint of a policy: it holds no 'model'")
        return state
    if model is None:
        raise ConfigError(
            "no weights: pass load_path (CLI: --load-path <run>/ckpt/ckpt_best.pth.tar), "
            "state_dict or a trained model"
        )
    return None


def _save(path: str, data: Samples | list[Samples], what: str, data_type: str = "naive") -> None:
    if data_type == "naive" and not isinstance(data, Columns):
        data = to_device(data, "cpu")
    offline_data_save_type(data, path, data_type)
    print(f"saved {what} to {os.path.abspath(path)}")


class _NoWriter:
    """Accepts all calls of a ``SummaryWriter``, and ignores them."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None
