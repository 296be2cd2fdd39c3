"""A collector and a learner that use the protocol, but not this library.

They use HTTP from the standard library, store one sample per file, answer one request at a time,
name files with a leading ``./``, and do not support ``collector_close_task``.
"""

import json
import os
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch

EPISODE_STEPS = 10


class ForeignSlave:
    """Connects to one master, works on its tasks, and sends heartbeats.

    Attributes:
        port: Where it listens.
        refused: Names of tasks that it did not know.
    """

    def __init__(self) -> None:
        slave = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"] or 0))
                slave.requested(self.path, self.headers["Token"], json.loads(content or b"{}"))
                body = b'{"success": true, "code": 0, "message": "", "data": null}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_DELETE = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._master: tuple[str, str] | None = None
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._server.serve_forever, args=(0.05,)),
            threading.Thread(target=self._beat),
        ]
        self.port = self._server.server_port
        self.refused: list[str] = []

    def __enter__(self) -> "ForeignSlave":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join(10)

    def requested(self, path: str, token: str, body: dict[str, Any]) -> None:
        if path == "/connect":
            self._master = body["master"]["address"], token
        elif path == "/disconnect":
            self._master = None
        elif path == "/task/new":
            threading.Thread(target=self._work, args=(body["task"]["id"], body["data"])).start()

    def _work(self, task_id: str, task: dict[str, Any]) -> None:
        step = getattr(self, task["name"], None)
        if step is None:
            self.refused.append(task["name"])
            kind, result = "fail", {"message": "task name error"}
        else:
            kind, result = "complete", step(task)
        self._tell("PUT", f"/slave/task/{kind}", {"task": {"id": task_id}, "result": result})

    def _beat(self) -> None:
        while not self._ended.wait(0.5):
            self._tell("GET", "/slave/heartbeat", {})

    def _tell(self, method: str, path: str, body: dict[str, Any]) -> None:
        master = self._master
        if master is None:
            return
        headers = {"Channel": "0", "Token": master[1], "Content-Type": "application/json"}
        content = json.dumps(body).encode()
        request = urllib.request.Request(master[0] + path, content, headers, method=method)
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except OSError:
            self._master = None  # the run is over


class ForeignCollector(ForeignSlave):
    """Plays a game of ten steps, of which each with action 1 gives 1."""

    def __init__(self, path_data: str, path_policy: str) -> None:
        super().__init__()
        self._data, self._policy = path_data, path_policy
        self.settings: list[dict[str, Any]] = []
        self.names: list[str] = []

    def resource(self, task: dict[str, Any]) -> dict[str, Any]:
        return {"gpu": 0, "cpu": 1}

    def collector_start_task(self, task: dict[str, Any]) -> dict[str, Any]:
        info = task["task_info"]
        self._ids = {"task_id": info["task_id"], "buffer_id": info["buffer_id"]}
        self._cfg = info["collector_cfg"]
        self.settings.append(self._cfg["collect_setting"])
        self._steps, self._gained = 0, 0.0
        return {"message": "collector task has started"}

    def collector_data_task(self, task: dict[str, Any]) -> dict[str, Any]:
        values, policy_iter = self._weights()
        if self._cfg["eval_flag"]:
            reward = EPISODE_STEPS * float(values[1] > values[0])
            done = {"collector_done": True, "cur_episode": 1, "cur_step": EPISODE_STEPS}
            return {**self._ids, **done, "reward_mean": reward, "policy_iter": policy_iter}
        if self._steps >= 5 * EPISODE_STEPS:
            return {**self._ids, "collector_done": True, "cur_episode": 5, "cur_step": self._steps}
        explores = torch.rand(()) < self._cfg["collect_setting"]["eps"]
        action = int(torch.randint(2, ()) if explores else values.argmax())
        name = f"{self._ids['task_id']}_{self._steps}"
        sample = {"action": torch.tensor([action]), "reward": torch.tensor([float(action)])}
        torch.save(sample, os.path.join(self._data, name))
        self._steps += 1
        self.names.append(f"./{name}")
        more = {"env_id": 0, "policy_iter": policy_iter, "unroll_len": 1}
        return {**self._ids, **more, "data_id": f"./{name}", "cur_step": self._steps}

    def _weights(self) -> tuple[torch.Tensor, int]:
        path = os.path.join(self._policy, self._cfg["policy_update_path"])
        if not os.path.exists(path):
            return torch.zeros(2), 0
        state = torch.load(path, weights_only=True)
        return state["values"], state["iter"]


class ForeignLearner(ForeignSlave):
    """Learns how much each action gives."""

    def __init__(self, path_data: str, path_policy: str) -> None:
        super().__init__()
        self._data, self._policy = path_data, path_policy
        self.closed: list[str] = []

    def resource(self, task: dict[str, Any]) -> dict[str, Any]:
        return {"gpu": 0, "cpu": 1}

    def learner_start_task(self, task: dict[str, Any]) -> dict[str, Any]:
        info = task["task_info"]
        self._ids = {"task_id": info["task_id"], "buffer_id": info["buffer_id"]}
        self._policy_id, self._step = info["policy_id"], 0
        self._values = torch.zeros(2)
        return {"message": "learner task has started"}

    def learner_get_data_task(self, task: dict[str, Any]) -> dict[str, Any]:
        return {**self._ids, "batch_size": 8, "cur_learner_iter": self._step}

    def learner_learn_task(self, task: dict[str, Any]) -> dict[str, Any]:
        for meta in task["data"]:
            sample = torch.load(os.path.join(self._data, meta["data_id"]), weights_only=True)
            error = sample["reward"] - self._values[sample["action"]]
            self._values[sample["action"]] += 0.1 * error
        self._step += 1
        path = os.path.join(self._policy, self._policy_id)
        torch.save({"values": self._values, "iter": self._step}, path + ".new")
        os.replace(path + ".new", path)
        names = ("replay_buffer_idx", "replay_unique_id")
        priority_info = {name: [meta.get(name) for meta in task["data"]] for name in names}
        priority_info["priority"] = [1.0] * len(task["data"])
        info = {"learner_step": self._step, "learner_done": False, "priority_info": priority_info}
        return {**self._ids, "info": info}

    def learner_close_task(self, task: dict[str, Any]) -> dict[str, Any]:
        self.closed.append(self._ids["task_id"])
        return {**self._ids, "learner_step": self._step, "learner_done": False}
