"""Helpers around configs that scripts import from here."""

from easydict import EasyDict

from ding.config.hosts import (
    parallel_transform,
    set_collector_interaction_for_coordinator,
    set_host_port,
    set_learner_interaction_for_coordinator,
    set_system_cfg,
)
from ding.config.save import save_config_formatted
from ding.utils.errors import ConfigError

__all__ = [
    "parallel_test_create_config",
    "parallel_test_main_config",
    "parallel_test_system_config",
    "parallel_transform",
    "parallel_transform_k8s",
    "parallel_transform_slurm",
    "save_config_formatted",
    "set_collector_interaction_for_coordinator",
    "set_host_port",
    "set_host_port_k8s",
    "set_host_port_slurm",
    "set_learner_interaction_for_coordinator",
    "set_system_cfg",
]

_NO_HOST_LISTS = (
    "host lists for Slurm and Kubernetes are not made any more: workers join by the coordinator's "
    "address, `srun ding worker --join HOST:PORT` (docs/parallel.md)"
)


def set_host_port_slurm(
    cfg: EasyDict, coordinator_host: str, learner_node: list[str], collector_node: list[str]
) -> EasyDict:
    """Gone, as are the next three: start workers with ``ding worker --join HOST:PORT``.

    Raises:
        ConfigError: Always.
    """
    raise ConfigError(_NO_HOST_LISTS)


def set_host_port_k8s(
    cfg: EasyDict, coordinator_port: int, learner_port: int, collector_port: int
) -> EasyDict:
    """See `set_host_port_slurm`."""
    raise ConfigError(_NO_HOST_LISTS)


def parallel_transform_slurm(
    cfg: EasyDict,
    coordinator_host: str | None = None,
    learner_node: list[str] | None = None,
    collector_node: list[str] | None = None,
) -> None:
    """See `set_host_port_slurm`."""
    raise ConfigError(_NO_HOST_LISTS)


def parallel_transform_k8s(
    cfg: EasyDict,
    coordinator_port: int | None = None,
    learner_port: int | None = None,
    collector_port: int | None = None,
) -> None:
    """See `set_host_port_slurm`."""
    raise ConfigError(_NO_HOST_LISTS)


# A parallel config that compiles in no time, for tests of what coordinates workers.
parallel_test_main_config = EasyDict(
    exp_name="parallel_test",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=2,
        evaluator_env_num=1,
        n_evaluator_episode=1,
        stop_value=195,
    ),
    policy=dict(
        cuda=False,
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16, 16]),
        learn=dict(batch_size=16, learner=dict(learner_num=2, send_policy_freq=1)),
        collect=dict(n_sample=8, collector=dict(collector_num=2)),
        other=dict(
            replay_buffer=dict(replay_buffer_size=256),
            commander=dict(collector_task_space=2, learner_task_space=2, eval_interval=5),
        ),
    ),
)

parallel_test_create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="dqn"),
    learner=dict(type="base"),
    collector=dict(type="zergling"),
    commander=dict(type="naive"),
    comm_learner=dict(type="flask_fs"),
    comm_collector=dict(type="flask_fs"),
)

parallel_test_system_config = EasyDict(
    coordinator=dict(),
    path_data="parallel_test/data",
    path_policy="parallel_test/policy",
    communication_mode="auto",
    learner_gpu_num=0,
)
