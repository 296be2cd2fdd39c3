"""A Ray cluster of simulated nodes in a separate process, protected by a token.

Commands come as lines of JSON on stdin, each is answered by one: ``["add", label, resource]`` and
``["remove", label, graceful]``. The cluster ends with stdin.
"""

import json
import os
import secrets
import subprocess
import sys

MEMORY = 100 * 2**20


class Nodes:
    """The process, from outside.

    Attributes:
        address: Of the cluster's head.
        environ: What a driver needs in its environment.
    """

    def __init__(self):
        self.environ = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env={**os.environ, **self.environ, "RAY_USAGE_STATS_ENABLED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.address = self._answer()

    def add(self, label, resource=None):
        """A node that has ten of a resource, of that name if no other is given."""
        return self._ask("add", label, resource or label)

    def remove(self, label, graceful=False):
        return self._ask("remove", label, graceful)

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, *command):
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self):
        for line in self._process.stdout:
            if line.startswith("ANSWER "):
                return json.loads(line.removeprefix("ANSWER "))
        raise RuntimeError("the Ray cluster could not be started")


def main():
    from ray.cluster_utils import Cluster

    def settings(label):
        return dict(num_cpus=3, resources={label: 10}, object_store_memory=MEMORY)

    head = {**settings("head"), "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = {"second": cluster.add_node(**settings("second"))}
    try:
        _tell(cluster.address)
        for line in sys.stdin:
            match json.loads(line):
                case ["add", label, resource]:
                    nodes[label] = cluster.add_node(**settings(resource))
                case ["remove", label, graceful]:
                    cluster.remove_node(nodes.pop(label), allow_graceful=graceful)
            _tell(None)
    finally:
        cluster.shutdown()


def _tell(answer):
    print("ANSWER " + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
