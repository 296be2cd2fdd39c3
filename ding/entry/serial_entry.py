"""Off-policy and on-policy training in one process."""

import contextlib
from numbers import Real

import torch

from ding.config.check import Notes
from ding.config.complete import Strict
from ding.entry.components import Components, InputConfig, build_components, load_config
from ding.entry.run.folder import serial_folder
from ding.entry.run.serial import SerialRun
from ding.entry.run.signals import Interrupt, RunStop, StopNow
from ding.entry.run.watch import RunWatch
from ding.entry.utils import random_collect
from ding.policy import Policy
from ding.torch_utils.model_helper import threads_that_fit
from ding.utils import get_rank
from ding.utils.callbacks import Callbacks, GivenCallbacks
from ding.utils.console import Console
from ding.utils.default_helper import first_goal
from ding.utils.ending import Ending
from ding.utils.errors import ConfigError
from ding.utils.run_claims import FolderWatch
from ding.utils.run_log import RunLog
from ding.utils.settings import EnvSetting
from ding.utils.types import State
from ding.worker import BaseLearner
from ding.worker.collector.steps import Samples, SampleStock


def serial_pipeline(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    dynamic_seed: bool | None = True,
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy from a replay buffer until its goal or a limit is reached.

    Args:
        input_cfg: Path of a config file, or ``(main_config, create_config)``.
        seed: Seed of all random number generators.
        env_setting: Env class or function, the collectors' env configs, the evaluators'; replaces
            the config's environment.
        model: Network that replaces the config's.
        max_train_iter: Updates after which the run ends; the round of collecting and learning
            that reaches them is completed. Updates of an initial checkpoint count as well. With 0
            the policy is only evaluated.
        max_env_step: Environment steps after which the run ends, in the same way.
        dynamic_seed: Whether collecting environments draw a new seed for each episode.
        strict: Whether unknown config keys are errors instead of warnings: all, or those at or
            under these paths.
        callbacks: Called during the run, in addition to the ``callbacks`` of the config:
            `ding.utils.callbacks.RunCallback` objects, classes, or names ``module:Name``.

    Returns:
        The trained policy.

    Raises:
        DingError: Errors of config, environments, data and files have separate subclasses.
        SystemExit: SIGINT or SIGTERM ended the run, after its state was saved.

    Example:

        >>> from ding.entry import serial_pipeline
        >>> from ding.entry.quick_config import quick_config
        >>> config = quick_config("CartPole-v1", "dqn")  # or the path of a config file
        >>> policy = serial_pipeline(config, seed=0, max_env_step=64)
    """
    pipeline = SerialPipeline(input_cfg, seed, env_setting, model, strict)
    return pipeline.train(max_train_iter, max_env_step, dynamic_seed, callbacks)[0]


def serial_pipeline_onpolicy(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy on each new collection until its goal or a limit is reached.

    Arguments, return value and errors are those of `ding.entry.serial_pipeline`.

    Example:

        >>> from ding.entry import serial_pipeline_onpolicy
        >>> from ding.entry.quick_config import quick_config
        >>> config = quick_config("CartPole-v1", "ppo")
        >>> config[0]["policy"]["collect"]["n_sample"] = 64
        >>> policy = serial_pipeline_onpolicy(config, seed=0, max_env_step=64)
    """
    pipeline = OnPolicyPipeline(input_cfg, seed, env_setting, model, strict)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


#: PPG's policy stores the data of its auxiliary phases itself.
serial_pipeline_onpolicy_ppg = serial_pipeline_onpolicy


class SerialPipeline:
    """Trains off-policy; other pipelines override the methods that differ.

    Its config is compiled, and saved when the run has locked its folder.

    Attributes:
        mode: Name of the pipeline on the command line.
        on_policy: Whether it trains without a replay buffer; None: the policy decides.
        collects: Whether it collects, so that the config must contain how much.
        cfg: The compiled config.
        notes: What its user should know of it.
        max_own_iter: Updates after which it ends, without those of a checkpoint that it began with.
        watch: Looks after the main thread while the run is built and trained.
    """

    mode = "serial"
    on_policy: bool | None = False
    collects = True
    max_own_iter: float = int(1e10)
    watch: RunWatch | None = None

    def __init__(
        self,
        input_cfg: InputConfig,
        seed: int,
        env_setting: EnvSetting | None = None,
        model: torch.nn.Module | None = None,
        strict: Strict = False,
    ) -> None:
        self.notes = Notes()
        self.cfg = load_config(
            input_cfg,
            seed,
            env_setting,
            model,
            on_policy=self.on_policy,
            collects=self.collects,
            notes=self.notes,
            strict=strict,
        )
        self.input_cfg, self.env_setting, self._model = input_cfg, env_setting, model
        self.settle()

    @property
    def replays(self) -> bool | None:
        """Whether it learns from a replay buffer; None: the policy decides."""
        return None if self.on_policy is None else not self.on_policy

    def settle(self) -> None:
        """Check and complete parts of the compiled config that only this pipeline reads."""

    def outfit(self, parts: Components) -> None:
        """Change the parts after they were built."""

    def prepare(self, parts: Components) -> None:
        """Called before the first round of a run without environment steps, or of one that starts
        from a checkpoint with the policy only."""
        cfg, is_new = self.cfg.policy, parts.collector.envstep == 0
        if is_new and cfg.get("random_collect_size", 0) > 0 and parts.replay_buffer is not None:
            random_collect(
                *(cfg, parts.policy, parts.collector, parts.collector_env),
                *(parts.commander, parts.replay_buffer),
            )

    def round(self, parts: Components, run: SerialRun) -> None:
        """Collect and learn: from the replay buffer, or once from the new samples."""
        cfg, learner, buffer = parts.cfg.policy, parts.learner, parts.replay_buffer
        data = players_data(run.collect(parts.commander.step()))
        if buffer is None:
            run.learn(data)
            return
        buffer.push(data, cur_collector_envstep=parts.collector.envstep)
        batch_size = learner.policy.get_attribute("batch_size")
        if isinstance(batch_size, int) and buffer.count() < batch_size:
            return  # normal at every start: no warning
        for _ in range(cfg.learn.get("update_per_collect", 1)):
            batch = buffer.sample(batch_size, learner.train_iter)
            if batch is None:
                # More must be collected first. The buffer has logged why.
                break
            run.learn(batch)
            if learner.policy.get_attribute("priority"):
                buffer.update(priority_info(learner))

    def train(
        self,
        max_train_iter: int | None,
        max_env_step: int | None = None,
        dynamic_seed: bool | None = True,
        callbacks: GivenCallbacks = None,
    ) -> tuple[Policy, bool]:
        """Build, train and close; returns the policy, and whether it has reached its goal."""
        limits = _limit(max_train_iter, "max_train_iter"), _limit(max_env_step, "max_env_step")
        called = Callbacks(self.cfg.get("callbacks"), callbacks)
        with RunStop() as stop:
            try:
                policy, ending = self._train(stop, called, limits, dynamic_seed)
            except StopNow as signalled:
                raise SystemExit(signalled.ending.exit_status) from None
        ending.raise_if_bad()
        return policy, ending.status == "converged"

    def _train(
        self,
        stop: RunStop,
        callbacks: Callbacks,
        limits: tuple[float, float],
        dynamic_seed: bool | None,
    ) -> tuple[Policy, Ending]:
        cfg, notes = self.cfg, self.notes
        goal = first_goal(cfg.policy.eval.evaluator.get("stop_value"))
        shown_goal = goal if isinstance(goal, int | float) else None
        mode = "quiet" if get_rank() else "auto"
        env_num = max(cfg.env.get(f"{user}_env_num") or 1 for user in ("collector", "evaluator"))
        with (
            serial_folder(cfg, self.mode) as begin,
            RunLog(
                cfg.exp_name, starts=True, config=cfg, seed=cfg.seed, mode=self.mode, **notes.facts
            ) as log,
            Console(cfg.exp_name, shown_goal, limits[1], limits[0], mode) as console,
            RunWatch(stop, cfg.env.manager, env_num, log) as watch,
        ):
            self.watch, folder = watch, FolderWatch(cfg.exp_name)
            if notes.text:
                log.logger.warning("%s", notes.text)
            try:
                watch.stepping(launches=True)
                built = build_components(
                    *(cfg, log.writer, self.env_setting, self._model, dynamic_seed),
                    *(self.mode, self.replays),
                )
                with contextlib.closing(built) as parts:
                    watch.rest()
                    self.outfit(parts)
                    # From here on there is a state to save: a signal is only recorded.
                    stop.patient = True
                    run = SerialRun(
                        *(parts, log, console, stop, watch, folder, begin, callbacks),
                        *(*limits, self.max_own_iter),
                    )
                    watch.run = run
                    with threads_that_fit(parts.learner.policy.get_attribute("model")):
                        ending = run.train(self.prepare, self.round)
            except StopNow as signalled:
                log.finish("interrupted", f"{signalled}, before training began")
                raise
            except Interrupt as interrupt:
                raise interrupt.cause or interrupt from None
            console.close(run.report)
        if stop.ending is not None and ending.status != "converged":
            ending = stop.ending  # the signal arrived while the parts were closed
        return parts.policy, ending


class OnPolicyPipeline(SerialPipeline):
    """Trains on each new collection."""

    mode, on_policy = "serial_onpolicy", True


def _limit(value: float | None, name: str) -> float:
    if value is None:
        return int(1e10)
    if not isinstance(value, Real) or value < 0:
        raise ConfigError(f"{name} must be a number >= 0, or None for no limit, got {value!r}")
    return value


def priority_info(learner: BaseLearner) -> State:
    """The new priorities of the batch, in the buffers' format."""
    info = learner.priority_info
    if "priority" not in info:
        raise ConfigError(
            "policy.priority is True, but what the policy's learning returns has no 'priority': "
            "return the samples' new priorities, or set policy.priority to False"
        )
    return info


def players_data(data: Samples | tuple[list[Samples], object]) -> Samples:
    """Concatenate the samples of a battle's players to one batch; a single policy's unchanged."""
    if not isinstance(data, tuple):
        return data
    stock = SampleStock()
    for own in data[0]:
        if len(own):
            stock.add(own)
    return stock.take()
