import datetime
import socket
import traceback

import pytest
import torch
from easydict import EasyDict

from ding.utils import (
    DDPContext,
    allreduce,
    allreduce_async,
    allreduce_data,
    allreduce_with_indicator,
    broadcast,
    broadcast_object_list,
    dist_finalize,
    dist_init,
    dist_mode,
    find_free_port,
    get_group,
    get_rank,
    get_world_size,
    reduce_data,
    to_ddp_config,
)
from ding.utils.pytorch_ddp_dist_helper import synchronize, tcp_store
from tests.children import forkserver


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)


def make_config():
    return EasyDict(policy={"learn": {"batch_size": 65}, "collect": {"n_sample": 8}})


def test_everything_is_a_no_op_when_alone():
    with DDPContext() as context:
        assert (context.rank, context.world_size) == (get_rank(), get_world_size()) == (0, 1)
        assert not torch.distributed.is_initialized()
        x = torch.tensor([1.0, 2.0])
        allreduce(x)
        allreduce_async("x", x)
        synchronize()
        broadcast(x, 0)
        broadcast_object_list([1])
        assert reduce_data(x, 0) is x
        assert allreduce_data(3, "sum") == 3
        assert x.tolist() == [1.0, 2.0]
        assert get_group(1) is None
        assert to_ddp_config(make_config()) == make_config()
    assert dist_mode(lambda n: n + 1)(1) == 2
    dist_finalize()


@pytest.mark.parametrize(("host", "elsewhere"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_the_store_listens_at_the_given_address(host, elsewhere):
    port = find_free_port("127.0.0.1")
    store = tcp_store(host, port, 0, 1, datetime.timedelta(seconds=10))
    store.set("a", "b")
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        pass
    with socket.socket() as other:
        other.settimeout(5)
        assert (other.connect_ex(("127.0.0.2", port)) == 0) is elsewhere


def test_the_store_is_served_under_the_address_of_another(monkeypatch):
    port = find_free_port("127.0.0.1")
    bind = socket.create_server
    hosts = []

    def create_server(address, **kwargs):
        hosts.append(address[0])
        return bind(("192.0.2.1" if len(hosts) == 1 else "127.0.0.1", address[1]), **kwargs)

    monkeypatch.setattr(socket, "create_server", create_server)
    tcp_store("127.0.0.1", port, 0, 1, datetime.timedelta(seconds=10)).set("a", "b")
    assert hosts == ["127.0.0.1", ""]


def test_indicator_zero_leaves_the_gradient():
    grad = torch.ones(2)
    allreduce_with_indicator(grad, torch.tensor(0.0))
    assert grad.tolist() == [1, 1]


def test_unknown_reduction():
    with pytest.raises(ValueError, match="'sum' or 'avg'"):
        allreduce_data(1, "max")


def _one_of_two(rank, port, results):
    try:
        results.put((rank, _exchange(rank, port)))
    except BaseException:
        results.put((rank, traceback.format_exc()))


def _exchange(rank, port):
    assert dist_init("nccl", "127.0.0.1", str(port), rank, 2) == (rank, 2)
    # First: a rank that has left while the other still connects breaks the connection.
    group = get_group(2)
    mine = torch.tensor([float(rank + 1)])
    mean, later, sent = mine.clone(), mine.clone(), mine.clone()
    allreduce(mean)
    allreduce_async("later", later)
    synchronize()
    broadcast(sent, 1)
    objects = [{"from": rank}]
    broadcast_object_list(objects, 0)
    grad = mine.clone()
    allreduce_with_indicator(grad, torch.tensor(float(rank == 1)))
    reduced = reduce_data(rank + 1, 0)
    cfg = to_ddp_config(make_config())
    out = {
        "mean": mean.item(),
        "async": later.item(),
        "sent": sent.item(),
        "objects": objects,
        "grad": grad.item(),
        "reduced": reduced if rank == 0 else 3,
        "sum": allreduce_data(rank + 1, "sum"),
        "avg": allreduce_data(rank + 1, "avg"),
        "batch": cfg.policy.learn.batch_size,
        "n_sample": cfg.policy.collect.n_sample,
        "group": group is not None,
    }
    dist_finalize()
    assert get_world_size() == 1
    return out


def test_two_processes_agree():
    context = forkserver()
    results, port = context.Queue(), find_free_port("127.0.0.1")
    workers = [context.Process(target=_one_of_two, args=(r, port, results)) for r in (0, 1)]
    for worker in workers:
        worker.start()
    answers = dict(results.get(timeout=50) for _ in workers)
    for worker in workers:
        worker.join(10)
    assert answers[0] == answers[1]
    assert answers[0] == {
        "mean": 1.5, "async": 1.5, "sent": 2.0, "objects": [{"from": 0}], "grad": 3.0,
        "reduced": 3, "sum": 3, "avg": 1.5, "batch": 33, "n_sample": 4, "group": True,
    }  # fmt: skip
