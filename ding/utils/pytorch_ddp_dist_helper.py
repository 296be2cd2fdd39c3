"""Wrappers of ``torch.distributed`` that do nothing if there is only one process."""

import datetime
import errno
import functools
import os
import socket
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from easydict import EasyDict

from ding.utils.system_helper import interface_to

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup, Work

Given = ParamSpec("Given")
Result = TypeVar("Result")
_pending: dict[str, "Work"] = {}


def get_rank() -> int:
    """Rank of this process; 0 if it is the only one."""
    dist = _active()
    return dist.get_rank() if dist else 0


def get_world_size() -> int:
    """Number of processes of the run; 1 if this is the only one."""
    dist = _active()
    return dist.get_world_size() if dist else 1


def broadcast(value: "torch.Tensor", rank: int) -> None:
    """Overwrite `value` with the value of process `rank`."""
    if dist := _active():
        dist.broadcast(value, rank)


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: "ProcessGroup | None" = None
) -> None:
    """Overwrite the items of a list with those of process `src`; items are pickled."""
    if dist := _active():
        dist.broadcast_object_list(object_list, src, group)


def allreduce(x: "torch.Tensor") -> None:
    """Overwrite `x` with its mean over all processes."""
    if dist := _active():
        dist.all_reduce(x)
        x.div_(dist.get_world_size())


def allreduce_with_indicator(grad: "torch.Tensor", indicator: "torch.Tensor") -> None:
    """Overwrite `grad` with its mean over the processes that have a gradient.

    Args:
        indicator: 1 if this process has a gradient, otherwise 0; overwritten with the number of
            processes that have one.
    """
    if dist := _active():
        dist.all_reduce(grad)
        dist.all_reduce(indicator)
    if indicator.item() > 0:
        grad.div_(indicator.item())


def allreduce_async(name: str, x: "torch.Tensor") -> None:
    """`allreduce` that continues in the background until `synchronize`.

    Raises:
        ValueError: An operation with this name is in progress.
    """
    if dist := _active():
        if name in _pending:
            raise ValueError(f"an allreduce named {name!r} is under way: call synchronize() first")
        x.div_(dist.get_world_size())
        _pending[name] = dist.all_reduce(x, async_op=True)


def synchronize() -> None:
    """Wait for all `allreduce_async` operations."""
    while _pending:
        _pending.popitem()[1].wait()


def reduce_data(x: "int | float | torch.Tensor", dst: int) -> "int | float | torch.Tensor":
    """The sum over all processes, in process `dst`; unspecified in other processes."""
    return _on_tensor(x, lambda dist, tensor: dist.reduce(tensor, dst))


def allreduce_data(x: "int | float | torch.Tensor", op: str) -> "int | float | torch.Tensor":
    """The sum (``op='sum'``) or mean (``'avg'``) over all processes; tensors in place.

    A float is returned as a float; an int as an int, if the result is integral.

    Raises:
        ValueError: ``op`` has another value.
    """
    if op not in ("sum", "avg"):
        raise ValueError(f"op must be 'sum' or 'avg', got {op!r}")

    def reduce(dist: ModuleType, tensor: "torch.Tensor") -> None:
        dist.all_reduce(tensor)
        if op == "avg":
            tensor.div_(dist.get_world_size())

    return _on_tensor(x, reduce)


def get_group(group_size: int) -> "ProcessGroup | None":
    """This process's group of `group_size` consecutive ranks; None if there is only one process.

    Raises:
        ValueError: The number of processes is not a multiple of `group_size`.
    """
    dist = _active()
    world = get_world_size()
    if world % group_size:
        raise ValueError(f"{world} processes cannot form groups of {group_size}")
    if dist is None:
        return None
    # All processes must take part in creating each group, including those outside of it.
    groups = [dist.new_group(range(i, i + group_size)) for i in range(0, world, group_size)]
    return groups[dist.get_rank() // group_size]


def dist_mode(func: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decorator: `dist_init` before the function, `dist_finalize` after it."""

    @functools.wraps(func)
    def wrapper(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        with DDPContext():
            return func(*args, **kwargs)

    return wrapper


def dist_init(
    backend: str = "nccl",
    addr: str | None = None,
    port: str | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    timeout: datetime.timedelta = datetime.timedelta(seconds=60000),
    store: "torch.distributed.Store | None" = None,
) -> tuple[int, int]:
    """Initialise the process group; does nothing for a single process.

    Arguments that are None are read from the environment variables of ``torchrun`` (``RANK``,
    ``WORLD_SIZE``, ``MASTER_ADDR``, ``MASTER_PORT``) or Slurm (``SLURM_PROCID``,
    ``SLURM_NTASKS``).

    Args:
        backend: ``'nccl'`` becomes ``'gloo'`` without CUDA.
        store: A ``torch.distributed.Store`` for the rendezvous, instead of an address.

    Returns:
        This process's rank, and the number of processes.
    """
    import torch
    import torch.distributed as dist

    rank = _setting("RANK", "SLURM_PROCID", 0) if rank is None else rank
    world_size = _setting("WORLD_SIZE", "SLURM_NTASKS", 1) if world_size is None else world_size
    if world_size == 1:
        return 0, 1
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "10314")
    if addr is not None:
        os.environ["MASTER_ADDR"] = addr
    if port is not None:
        os.environ["MASTER_PORT"] = str(port)
    has_cuda = torch.cuda.is_available()
    if has_cuda:
        torch.cuda.set_device(rank % torch.cuda.device_count())
    backend = "gloo" if backend == "nccl" and not has_cuda else backend
    address, number = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    # torchrun serves a store at this address itself.
    if store is None and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        store = tcp_store(address, number, rank, world_size, timeout)
    # By default, gloo uses the address of the host name, which may be a loopback address.
    if interface := interface_to(address):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    dist.init_process_group(backend, rank=rank, world_size=world_size, timeout=timeout, store=store)
    return dist.get_rank(), dist.get_world_size()


def tcp_store(
    host: str,
    port: int,
    rank: int,
    world_size: int,
    timeout: datetime.timedelta,
    listener: socket.socket | None = None,
) -> "torch.distributed.TCPStore":
    """A store for the rendezvous of processes, which process 0 serves only at `host`.

    By default, ``torch.distributed`` listens on all interfaces, whatever the host.

    Args:
        listener: Socket on which process 0 already listens, from `listen_at`.
    """
    from torch.distributed import TCPStore

    listen_fd: int | None = None
    if rank == 0:
        listen_fd = (listener or listen_at(host, port)).detach()
    return TCPStore(
        host,
        port,
        world_size,
        rank == 0,
        timeout,
        wait_for_workers=False,
        master_listen_fd=listen_fd,
    )


def listen_at(host: str, port: int = 0) -> socket.socket:
    """Listen at an address of this host; port 0 selects a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:
            raise
        # The other processes reach this host under an address that it does not have itself.
        return socket.create_server(("", port), family=family, backlog=2048)


def dist_finalize() -> None:
    """Destroy the process group."""
    synchronize()
    if dist := _active():
        dist.destroy_process_group()


class DDPContext:
    """`dist_init` at the start of a ``with`` block and `dist_finalize` at its end."""

    def __init__(self) -> None:
        self.rank, self.world_size = 0, 1

    def __enter__(self) -> "DDPContext":
        self.rank, self.world_size = dist_init()
        return self

    def __exit__(self, *args: object, **kwargs: object) -> None:
        dist_finalize()


DistContext = DDPContext


def to_ddp_config(cfg: EasyDict) -> EasyDict:
    """Divide batch size, ``n_sample`` and ``n_episode`` by the world size, rounded up; in place."""
    world = get_world_size()
    policy = cfg.policy
    for section, key in (
        (policy, "batch_size"),
        (policy.get("learn", {}), "batch_size"),
        (policy.get("collect", {}), "n_sample"),
        (policy.get("collect", {}), "n_episode"),
    ):
        if section.get(key) is not None:
            section[key] = -(-section[key] // world)
    return cfg


def _active() -> ModuleType | None:
    # A process that has not imported torch is not in a process group.
    dist = sys.modules.get("torch.distributed")
    return dist if dist and dist.is_available() and dist.is_initialized() else None


def _on_tensor(
    x: "int | float | torch.Tensor", change: Callable[[ModuleType, "torch.Tensor"], object]
) -> "int | float | torch.Tensor":
    dist = _active()
    if dist is None:
        return x
    import torch

    if isinstance(x, torch.Tensor):
        change(dist, x)
        return x
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    # Not float32, which cannot represent all integers beyond 2^24.
    tensor = torch.tensor(x, device=device, dtype=torch.float64)
    change(dist, tensor)
    value = tensor.item()
    return round(value) if isinstance(x, int) and value == round(value) else value


def _setting(name: str, slurm_name: str, default: int) -> int:
    return int(os.environ.get(name, os.environ.get(slurm_name, default)))
