"""Builds the parts of a serial run from a compiled config."""

import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import torch
from easydict import EasyDict
from gymnasium import spaces
from tensorboardX import SummaryWriter

from ding.config import read_config
from ding.config.compile import compile_run_config, is_parallel, serial_form
from ding.config.parts import is_ours
from ding.envs import create_env_manager, env_seeds, get_vec_env_setting
from ding.policy import Policy, PolicyFactory, create_policy
from ding.policy.fit import check_fit, check_own_network
from ding.policy.own_state import OwnState
from ding.reward_model import BaseRewardModel, create_reward_model
from ding.utils import ENV_REGISTRY, REWARD_MODEL_REGISTRY, get_world_size, set_pkg_seed
from ding.utils.errors import CheckpointError, ConfigError, mismatch
from ding.utils.settings import EnvSetting
from ding.utils.types import Settings, State
from ding.worker import (
    BaseLearner,
    BaseSerialCommander,
    IBuffer,
    ISerialEvaluator,
    create_buffer,
    create_learner,
    create_serial_collector,
    create_serial_evaluator,
)
from ding.worker.collector.steps import Envs, Mode, Result

#: Options of each parameter group, by the optimiser's name in the policy.
Options = dict[str, list[State]]
InputConfig: TypeAlias = str | os.PathLike[str] | Sequence[Settings]

_logger = logging.getLogger(__name__)


@dataclass
class Components:
    """The parts of a serial run.

    Attributes:
        collector: An ``ISerialCollector``; the arguments of its ``collect`` depend on the kind.
        collector_policy: That of the collector: a collect mode, or one for each player.
        replay_buffer: ``None`` where training does not draw from one.
        reward_model: ``None`` where policies learn from the environments' rewards.
        built_options: The optimisers' options as the config says, before any state was loaded.
        given: Names of what the caller gave in addition to the config: ``env_setting``, ``model``.
        mode: Name of the pipeline on the command line; empty for one that has none there.
        first_iter: Updates of the checkpoint, if any, with which the run began.
        own_states: What users' classes add to our parts, by name; `own_states` fills it.
    """

    cfg: EasyDict
    policy: Policy
    learner: BaseLearner
    collector: Any
    collector_env: Envs
    collector_policy: Mode
    evaluator: ISerialEvaluator
    replay_buffer: IBuffer | None
    commander: BaseSerialCommander
    built_options: Options
    reward_model: BaseRewardModel | None = None
    given: tuple[str, ...] = ()
    mode: str = "serial"
    first_iter: int = 0
    own_states: dict[str, tuple[object, OwnState]] = field(default_factory=dict)

    def close(self) -> None:
        """Close all processes, files and threads, even if closing one of them fails."""
        with contextlib.ExitStack() as stack:
            for part in (self.replay_buffer, self.learner, self.evaluator, self.collector):
                _close_later(stack, part)


def load_config(
    input_cfg: InputConfig,
    seed: int,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    command: bool = True,
    **options: Any,
) -> EasyDict:
    """Read and compile a config; see `ding.config.compile.compile_run_config`."""
    main: Settings
    create: Settings
    if isinstance(input_cfg, str | os.PathLike):
        main, create = read_config(os.fspath(input_cfg))
    elif isinstance(input_cfg, tuple | list) and len(input_cfg) == 2:
        main, create = input_cfg
    else:
        raise ConfigError(
            "input_cfg must be the path of a config file or a pair (main_config, create_config), "
            f"got {type(input_cfg).__name__}"
        )
    if is_parallel(create):
        main, create = serial_form(main, create)
    options.update(env_setting=env_setting, own_model=model is not None, command=command)
    return compile_run_config(main, create, seed, **options)


def seed_envs(manager: Envs, seed: int, role: str, dynamic_seed: bool | None = True) -> None:
    """Seed an env manager for its role in the run with `seed`."""
    manager.seed(env_seeds(seed, role, manager.env_num), dynamic_seed=dynamic_seed)


def make_env_manager(cfg: EasyDict, env_setting: EnvSetting | None, evaluate: bool) -> Envs:
    """The env manager of collectors or evaluators.

    Args:
        env_setting: Env class or function, the collectors' env configs, the evaluators'; ``None``
            for the config's.
    """
    if env_setting is None:
        env_fn, *cfgs = get_vec_env_setting(cfg.env, collect=not evaluate, eval_=evaluate)
    else:
        env_fn, *cfgs = env_setting
    return create_env_manager(
        cfg.env.manager, [partial(env_fn, one) for one in cfgs[evaluate] or ()]
    )


def build_components(
    cfg: EasyDict,
    writer: SummaryWriter,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    dynamic_seed: bool | None = True,
    mode: str = "serial",
    replays: bool | None = None,
) -> Components:
    """Build all parts of a serial run; nothing is left open if one of them fails.

    Args:
        mode: See `Components`.
        replays: Whether it learns from a replay buffer; by default the policy decides.
    """
    if replays is None:
        replays = not cfg.policy.on_policy
    brought = {"env_setting": env_setting, "model": model}
    collector_env = make_env_manager(cfg, env_setting, evaluate=False)
    evaluator_env = make_env_manager(cfg, env_setting, evaluate=True)
    seed_envs(collector_env, cfg.seed, "collector", dynamic_seed)
    # The same episodes in each evaluation, so that results are comparable.
    seed_envs(evaluator_env, cfg.seed, "evaluator", dynamic_seed=False)
    with contextlib.ExitStack() as opened:
        _close_later(opened, collector_env)
        _close_later(opened, evaluator_env)
        set_pkg_seed(cfg.seed, use_cuda=cfg.policy.cuda)
        policy: Any = create_policy(
            cfg.policy, model=model, enable_field=["learn", "collect", "eval", "command"]
        )
        shared = {"tb_logger": writer, "exp_name": cfg.exp_name}
        learner = create_learner(cfg.policy.learn.learner, policy=policy.learn_mode, **shared)
        _close_later(opened, learner)
        collect_policy, eval_policy = players(cfg, policy, evaluator_env)
        collector = create_serial_collector(
            cfg.policy.collect.collector, env=collector_env, policy=collect_policy, **shared
        )
        _close_later(opened, collector)
        if not cfg.policy.collect.collector.type.endswith("_1v1"):
            if model is None:
                made = env_setting[0] if env_setting else ENV_REGISTRY.get(cfg.env.type)
                for line in check_fit(cfg.policy, collector_env, own_env=not is_ours(made)):
                    _logger.warning("%s", line)
            check_own_network(policy, collector_env)
        evaluator = create_serial_evaluator(
            cfg.policy.eval.evaluator, env=evaluator_env, policy=eval_policy, **shared
        )
        _close_later(opened, evaluator)
        buffer = None
        if replays:
            buffer = create_buffer(cfg.policy.other.replay_buffer, **shared)
            _close_later(opened, buffer)
        commander = BaseSerialCommander(
            cfg.policy.other.commander, learner, collector, evaluator, buffer, policy.command_mode
        )
        reward_model = None
        if cfg.get("reward_model"):
            reward_model = _reward_model(cfg, policy, collector, collector_env, writer)
            learner.reward_model = reward_model
        # All parts exist: `Components.close` closes them from here on.
        opened.pop_all()
    return Components(
        *(cfg, policy, learner, collector, collector_env, collect_policy),
        *(evaluator, buffer, commander, optimizer_options(policy)),
        reward_model=reward_model,
        given=tuple(name for name, value in brought.items() if value is not None),
        mode=mode,
    )


def _reward_model(
    cfg: EasyDict, policy: Policy, collector: Any, env: Envs, writer: SummaryWriter
) -> BaseRewardModel:
    """The reward model of a run; the collector passes it all transitions."""
    kind, type_ = cfg.policy.collect.collector.type, cfg.reward_model.get("type")
    if not type_:
        known = ", ".join(sorted(REWARD_MODEL_REGISTRY.query()))
        raise ConfigError(f"missing key reward_model.type: one of {known}")
    if kind.endswith("_1v1"):
        raise ConfigError(
            f"reward_model.type={type_!r} is for a single policy, and the collector {kind!r} is "
            "for several: leave reward_model out"
        )
    if get_world_size() > 1:
        raise ConfigError(
            f"reward_model.type={type_!r} learns from what one process collects: start the run "
            "with one learner"
        )
    model = create_reward_model(cfg.reward_model, policy._device, writer, env)
    collect = cfg.policy.collect
    if model.needs_replay and cfg.policy.on_policy:
        raise ConfigError(
            f"reward_model.type={type_!r} adds what the policy has not done: use an off-policy one"
        )
    if model.needs_episodes and not (kind == "episode" and collect.collector.get_train_sample):
        raise ConfigError(
            f"reward_model.type={type_!r} needs whole episodes: set policy.collect.n_episode, no "
            "n_sample, and policy.collect.collector.get_train_sample=True"
        )
    collector.on_trajectories = model.collected
    return model


def load_weights(mode: Mode, state: State, source: str, whose: str = "this policy") -> None:
    """Load saved weights into a policy's mode; raises `CheckpointError` if they do not fit."""
    try:
        mode.load_state_dict(state)
    except (KeyError, RuntimeError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{source} does not fit {whose}: {mismatch(error)}. Was it saved with another "
            "model or policy type? Evaluate a run with its own config: ding eval RUN"
        ) from error


def _close_later(stack: contextlib.ExitStack, part: object) -> None:
    # Custom parts may have no `close`.
    if hasattr(part, "close"):
        stack.callback(part.close)


def players(cfg: EasyDict, policy: Policy, env: Envs) -> tuple[Mode, Mode]:
    """The modes to collect with and to evaluate; in battles lists with one mode per player."""
    collect_policy: Mode | list[Mode] = policy.collect_mode
    eval_policy: Mode | list[Mode] = policy.eval_mode
    count = cfg.env.get("player_num", 2)
    if cfg.policy.collect.collector.type.endswith("_1v1"):
        collect_policy = [policy.collect_mode] * count
    if cfg.policy.eval.evaluator.type == "battle_interaction":
        opponent = cfg.policy.eval.evaluator.get("opponent", "random")
        if opponent == "self":
            other: Mode = policy.eval_mode
        elif opponent == "random":
            other = PolicyFactory.get_random_policy(
                policy.eval_mode, _opponent_space(env.action_space)
            )
        else:
            raise ConfigError(
                f"policy.eval.evaluator.opponent must be 'random' or 'self', got {opponent!r}"
            )
        eval_policy = [policy.eval_mode, *[other] * (count - 1)]
    return collect_policy, eval_policy


def episode_returns(info: Result) -> list[float]:
    """Returns of an evaluation's episodes; in battles those of the first player."""
    if isinstance(info, Mapping):
        return [float(value) for value in info.get("eval_episode_return", ())]
    battles = isinstance(info, list) and info and isinstance(info[0], list)
    return [float(episode["eval_episode_return"]) for episode in info[0]] if battles else []


def _opponent_space(space: spaces.Space[object]) -> spaces.Space[object]:
    """The second player's part of an action space of all players; other spaces unchanged."""
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim > 1:
        return spaces.MultiDiscrete(space.nvec[1], start=space.start[1])
    if isinstance(space, spaces.MultiDiscrete):
        return spaces.Discrete(int(space.nvec[1]), start=int(space.start[1]))
    if isinstance(space, spaces.Box) and space.shape:
        return spaces.Box(space.low[1], space.high[1], dtype=space.dtype.type)
    return space[1] if isinstance(space, spaces.Tuple) else space


def optimizer_options(policy: object) -> Options:
    """The options of a policy's optimisers: all entries of their groups except parameters."""
    return {
        name: [
            {key: value for key, value in group.items() if key != "params" and _is_plain(value)}
            for group in optimizer.param_groups
        ]
        for name, optimizer in _optimizers(policy).items()
    }


def keep_configured(policy: object, built: Options, built_before: Options) -> None:
    """After a state was loaded, apply options that the config has changed since.

    Args:
        policy: The policy, with the state's options.
        built: The options by the current config, before any state was loaded.
        built_before: The options by the config at the time of saving.
    """
    for name, optimizer in _optimizers(policy).items():
        groups = zip(optimizer.param_groups, built.get(name, ()), built_before.get(name, ()))
        for group, now, before in groups:
            for key, value in now.items():
                if key not in before or value == before[key]:
                    continue
                loaded = group.get(key)
                # Scale the new value as a schedule had scaled the old one.
                moved = type(loaded) is float and type(value) is float and before[key]
                group[key] = value * (loaded / before[key]) if moved else value


def has_schedule(policy: object) -> bool:
    """Whether a policy changes its learning rate during training."""
    parts = getattr(policy, "__dict__", {}).values()
    return any(isinstance(part, torch.optim.lr_scheduler.LRScheduler) for part in parts)


def _optimizers(policy: object) -> dict[str, torch.optim.Optimizer]:
    found = getattr(policy, "__dict__", {})
    return {name: v for name, v in found.items() if isinstance(v, torch.optim.Optimizer)}


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)
