"""A comm learner and a master that speak over real HTTP, with chunks of a tiny problem."""

import threading
import time

import numpy as np
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.data.chunks import SharedFolder, write_chunk
from ding.interaction import Master
from ding.interaction.master import TaskStatus
from ding.policy.dqn import DQNPolicy
from ding.worker.learner.base_learner import BaseLearner
from ding.worker.learner.comm.base_comm_learner import create_comm_learner

BATCH = 8
OWN_THREADS = ("train-", "policy-publisher", "join-")


class Failed(Exception):
    """A task failed; holds the result that the slave reported."""

    def __init__(self, cause, result):
        super().__init__(cause)
        self.cause, self.result = cause, result


def rows(n=32, seed=0, nan=False):
    random = np.random.default_rng(seed)
    reward = random.normal(size=(n, 1)).astype(np.float32)
    return Columns(
        {
            "obs": torch.from_numpy(random.normal(size=(n, 4)).astype(np.float32)),
            "next_obs": torch.from_numpy(random.normal(size=(n, 4)).astype(np.float32)),
            "action": torch.from_numpy(random.integers(0, 2, size=n)),
            "reward": torch.from_numpy(reward * (np.nan if nan else 1.0)),
            "done": torch.from_numpy(random.random(n) < 0.1),
            "collect_iter": np.zeros(n, np.int64),
        }
    )


def policy_cfg(**kwargs):
    cfg = DQNPolicy.default_config()
    cfg.priority = True
    cfg.model = dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16, 16])
    cfg.learn.batch_size = BATCH
    return EasyDict({**cfg, **kwargs})


def learner_cfg(exp_name="exp", hook=None, **kwargs):
    cfg = BaseLearner.default_config()
    cfg.hook.update(log_show_after_iter=1000, **(hook or {}))
    return EasyDict({**cfg, "exp_name": exp_name, **kwargs})


def task_info(learner=None, policy=None, **kwargs):
    return {
        "task_id": "learner_task_1",
        "policy_id": "policy_1",
        "buffer_id": "buffer_1",
        "learner_cfg": learner_cfg(**(learner or {})),
        "replay_buffer_cfg": {"replay_buffer_size": 1000},
        "policy": policy_cfg(**(policy or {})),
        **kwargs,
    }


def report(name, n=32, number=0):
    """The report on a chunk that a learner receives."""
    return {"data_id": name, "sample_num": n, "collect_iter": 0, "number": number}


def until(condition, timeout=20):
    """Wait until something holds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.005)


class Asker:
    """A master of one slave that asks it step by step; a context."""

    def __init__(self, address, key=None):
        self.address = address
        self.master = Master(port=0, heartbeat_tolerance=5.0, key=key, request_retry_waiting=0.05)

    def __enter__(self):
        self.master.start()
        self.connect()
        return self

    def __exit__(self, *args):
        self.master.close()

    def connect(self, name="learner"):
        host, port = self.address.rsplit(":", 1)
        self.connection = self.master.new_connection(name, host, int(port))
        self.connection.connect()

    def ask(self, name, timeout=30, **data):
        task = self.connection.new_task({"name": name, **data}).start().join(timeout)
        if task.status is TaskStatus.COMPLETED:
            return task.result
        assert task.status is TaskStatus.FAILED, f"no answer to {name} in {timeout} s"
        raise Failed(task.cause, task.result)


class Rig(Asker):
    """Learner, master, and the folders between them; a context."""

    def __init__(self, tmp_path, key=None, **kwargs):
        self.path = tmp_path
        self.data = SharedFolder(str(tmp_path / "data"))
        self.policy = SharedFolder(str(tmp_path / "policy"))
        cfg = dict(
            type="flask_fs",
            name="learner0",
            host="127.0.0.1",
            port="auto",
            path_data=self.data.path,
            path_policy=self.policy.path,
            exp_name="exp",
            heartbeat_span=0.2,
            run_key=key,
        )
        self.learner = create_comm_learner(EasyDict({**cfg, **kwargs}))
        super().__init__(None, key)
        self.trained = 0
        self.infos = []
        self.unnamed = []
        self.leaves_threads = False
        self._threads = set(threading.enumerate())

    def __enter__(self):
        self.learner.start()
        self.address = self.learner.address
        return super().__enter__()

    def __exit__(self, *args):
        self.learner.close()
        super().__exit__(*args)
        new = set(threading.enumerate()) - self._threads
        left = [t.name for t in new if t.name.startswith(OWN_THREADS)]
        assert not left or self.leaves_threads, f"left threads {left}"

    def begin(self, **kwargs):
        return self.ask("learner_start_task", task_info=task_info(**kwargs))

    def chunk(self, name="c0", n=32, **kwargs):
        """Write a chunk; the next request names it to the learner."""
        write_chunk(self.data, name, rows(n, **kwargs))
        self.unnamed.append(report(name, n))
        return name

    def learn(self, draws=0, data=None, **kwargs):
        """Permit batches, and name the chunks that are new; returns the info."""
        chunks, self.unnamed = self.unnamed, []
        data = {"draws": draws, "chunks": chunks, **(data or {})}
        answer = self.ask("learner_learn_task", data=data, **kwargs)
        self.infos.append(answer["info"])
        self.trained += answer["info"]["trained"]
        return answer["info"]

    def feed(self, batches, timeout=30):
        """Permit what is wanted until ``batches`` more were trained on; returns the last info."""
        deadline, goal = time.monotonic() + timeout, self.trained + batches
        while self.trained < goal:
            assert time.monotonic() < deadline, f"{self.trained} of {goal} batches were trained on"
            wanted = self.ask("learner_get_data_task", wait=0.2)["batch_num"]
            info = self.learn(wanted)
        return info

    def replay(self, name="buffer_1"):
        """The state of one of the replay buffers of the learner."""
        return self.learner.replays[name].state_dict()

    def close_task(self):
        return self.ask("learner_close_task")
