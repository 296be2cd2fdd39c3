"""A master with one collector worker, for tests."""

import time

from easydict import EasyDict

from ding.data.chunks import SharedFolder
from ding.interaction import Master
from ding.torch_utils.weights_file import write_weights
from ding.worker import create_comm_collector
from tests.worker.collector import parallel_tasks as tasks
from tests.worker.collector.parallel_tasks import task_info, weights


class Driver:
    """A master with one collector worker."""

    def __init__(self, folder, **cfg):
        self.data, self.policy = SharedFolder(f"{folder}/data"), SharedFolder(f"{folder}/policy")
        self.worker = create_comm_collector(
            EasyDict(
                type="flask_fs",
                name="collector0",
                port="auto",
                path_data=self.data.path,
                path_policy=self.policy.path,
                **cfg,
            )
        )
        self.reported = set()
        self.master = Master(port=0, heartbeat_tolerance=5, request_retry_waiting=0.05)

    def __enter__(self):
        self.worker.start()
        self.master.start()
        self.connection = self.master.new_connection("c", "127.0.0.1", self.worker.port)
        self.connection.connect()
        return self

    def __exit__(self, *args):
        tasks.RELEASE.set()
        self.master.close()
        self.worker.close()

    def task(self, name, **data):
        task = self.connection.new_task({"name": name, **data})
        task.start().join()
        if name == "collector_data_task" and isinstance(task.result, list):
            self.reported |= {m["data_id"] for m in task.result if "data_id" in m}
        return task

    def untold(self):
        """Files in the folder that were not reported to the master."""
        return set(self.data.names()) - self.reported

    def ask(self, name, **data):
        task = self.task(name, **data)
        assert task.status.name == "COMPLETED", task.result
        return task.result

    def begin(self, **cfg):
        self.ask("collector_start_task", task_info=task_info(**cfg))

    def drain(self, take=True, **data):
        """Metadata until the task is done, and the last progress."""
        found, deadline = [], time.monotonic() + 30
        while time.monotonic() < deadline:
            *metadata, progress = self.ask("collector_data_task", **{"wait": 0.5, **data})
            found += metadata
            if progress["collector_done"]:
                return found, progress
        raise AssertionError("the task does not end")

    def publish(self, value=0.0, policy_iter=0, name="policy_a"):
        write_weights(self.policy, name, weights(value), {"policy_iter": policy_iter})

    def fail(self, **data):
        """What a data task fails with, and after how many seconds."""
        begin, deadline = time.monotonic(), time.monotonic() + 30
        while time.monotonic() < deadline:
            task = self.task("collector_data_task", **{"wait": 0.5, **data})
            if task.status.name == "FAILED":
                return task.result, time.monotonic() - begin
        raise AssertionError("no data task fails")
