"""Off-policy training in one process."""

from collections.abc import Callable
from typing import Any

import torch

from ding.entry.components import Components, InputConfig, build_components, load_config
from ding.entry.training_run import TrainingRun
from ding.entry.utils import random_collect
from ding.policy import Policy
from ding.utils import get_rank
from ding.utils.console import Console
from ding.utils.run_log import RunLog

#: One round of collecting and learning.
Round = Callable[[Components, TrainingRun], None]


def serial_pipeline(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: list[Any] | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    dynamic_seed: bool | None = True,
) -> Policy:
    """Train a policy from a replay buffer until it is good enough or a limit is reached.

    Args:
        input_cfg: Path of a config file, or ``(main_config, create_config)``.
        seed: Seed of everything random.
        env_setting: Env class or function, the collectors' env configs, the evaluators'; instead
            of the env that the config names.
        model: Network instead of the one that the config describes.
        max_train_iter: Updates after which the run ends.
        max_env_step: Environment steps after which it ends.
        dynamic_seed: Whether collecting environments draw a new seed for each episode.

    Returns:
        The trained policy.

    Raises:
        DingError: See its tree: config, environments, data and files each have their own.
        SystemExit: SIGINT or SIGTERM ended the run, after its state was saved.
    """
    cfg = load_config(input_cfg, seed, env_setting, model)
    return train(
        *(cfg, off_policy_round, env_setting, model),
        *(max_train_iter, max_env_step, dynamic_seed),
    )


def train(
    cfg: Any,
    one_round: Round,
    env_setting: list[Any] | None,
    model: torch.nn.Module | None,
    max_train_iter: int | None,
    max_env_step: int | None,
    dynamic_seed: bool | None,
) -> Policy:
    """The loop of all serial pipelines: evaluate when due, then collect and learn."""
    max_train_iter, max_env_step = max_train_iter or int(1e10), max_env_step or int(1e10)
    stop_value = cfg.policy.eval.evaluator.get("stop_value")
    words = ""
    with (
        RunLog(cfg.exp_name, seed=cfg.seed) as log,
        Console(
            cfg.exp_name,
            stop_value,
            max_env_step,
            max_train_iter,
            "quiet" if get_rank() else "auto",
        ) as console,
    ):
        parts = build_components(cfg, log.writer, env_setting, model, dynamic_seed)
        try:
            run = TrainingRun(parts, log, console, max_train_iter, max_env_step)
            with run.listening():
                run.start()
                if parts.learner.train_iter == 0:
                    _fill_randomly(parts)
                while run.goes_on():
                    run.evaluate_if_due()
                    if not run.stopped:
                        one_round(parts, run)
                words = run.finish()
        finally:
            parts.close()
        console.close(words)
        run.exit_if_interrupted()
    return parts.policy


def off_policy_round(parts: Components, run: TrainingRun) -> None:
    """Collect into the buffer, then learn ``update_per_collect`` times from it."""
    cfg, learner, buffer = parts.cfg.policy, parts.learner, parts.replay_buffer
    assert buffer is not None
    settings = parts.commander.step()
    run.show_exploration(settings)
    data = parts.collector.collect(train_iter=learner.train_iter, policy_kwargs=settings)
    buffer.push(players_data(data), cur_collector_envstep=parts.collector.envstep)
    for _ in range(cfg.learn.update_per_collect):
        batch = buffer.sample(learner.policy.get_attribute("batch_size"), learner.train_iter)
        if batch is None:
            # Not enough yet: more has to be collected first. The buffer has logged why.
            break
        learner.train(batch, parts.collector.envstep)
        if learner.policy.get_attribute("priority"):
            buffer.update(learner.priority_info)


def players_data(data: Any) -> Any:
    """The samples of all players of a battle as one batch; of a single policy as they are."""
    if not isinstance(data, tuple):
        return data
    samples, _ = data
    return sum(samples[1:], samples[0])


def _fill_randomly(parts: Components) -> None:
    cfg = parts.cfg.policy
    if cfg.get("random_collect_size", 0) > 0 and parts.replay_buffer is not None:
        random_collect(
            *(cfg, parts.policy, parts.collector, parts.collector_env),
            *(parts.commander, parts.replay_buffer),
        )
