"""Connects to a Ray cluster, or starts one for a run, and disconnects."""

import atexit
import contextlib
import importlib.util
import logging
import os
import re
import secrets
import signal
import socket
import stat
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

from ding.utils import durations
from ding.utils.ending import Ending
from ding.utils.errors import ConfigError
from ding.utils.file_helper import write_secret
from ding.utils.log_file import leave_process
from ding.utils.processes import end_processes, process_identity
from ding.utils.system_helper import ReportingThread

try:
    import ray
    from ray._private.node import Node
    from ray._private.ray_logging import stderr_deduplicator, stdout_deduplicator
    from ray._private.runtime_env.py_modules import upload_py_modules_if_needed
except ImportError as error:
    raise ConfigError(
        f"the engine 'ray' needs the package ray: pip install 'ding[ray]' ({error})"
    ) from error


_logger = logging.getLogger(__name__)

#: Prefix of addresses at which this process is a client of a driver on the cluster.
_CLIENT = "ray://"
#: Ray's setting: seconds without the head after which Ray ends a process.
_RAYS_PATIENCE = "RAY_gcs_rpc_server_reconnect_timeout_s"
_RAYS_PATIENCE_DEFAULT = 60.0
#: Services that `ray.init` starts on a head and that runs do not use; a quarter of the start's CPU
#: time: the autoscaler, the dashboard's process (even without a dashboard) and the log monitor.
_UNUSED_SERVICES = ("start_monitor", "start_api_server", "start_log_monitor")


class RayCluster:
    """The driver's connection to Ray.

    The address is always explicit: without one, `ray.init` would join any cluster that it finds.

    Args:
        cfg: The engine's section: ``address``, ``modules``, ``runtime_env``,
            ``object_store_memory``, ``head_tolerance``.
        namespace: Namespace of this run's actors.
    """

    def __init__(self, cfg: Mapping[str, Any], namespace: str) -> None:
        self._cfg, self._namespace = cfg, namespace
        self._joined = False
        self._head: tuple[str, int] | None = None
        self._processes: set[int] = set()
        self._left = threading.Event()
        #: The runtime environment of each actor; the rest is in the job's.
        self.worker_env: dict[str, Any] | None = None

    @property
    def is_own(self) -> bool:
        """Whether the cluster is started for the run, and ends with it."""
        return self._cfg["address"] is None

    @property
    def head_tolerance(self) -> float:
        """Seconds for which the head may be unreachable; fixed for a head that the run has
        started, which does not return once it has ended."""
        is_own = self.is_own and self._joined
        return durations.RAY_HEAD_GONE if is_own else float(self._cfg["head_tolerance"])

    def connect(self) -> None:
        """Start the cluster, or connect to it.

        Raises:
            ConfigError: There is no cluster, it rejects this process, or a module is missing.
        """
        tolerance = self._cfg["head_tolerance"]
        most = float(os.environ.get(_RAYS_PATIENCE, _RAYS_PATIENCE_DEFAULT))
        if not 0 < tolerance < most:
            raise ConfigError(
                f"system_config.engine.head_tolerance={tolerance!r} must be above 0 and below "
                f"{most:g} s, after which Ray ends this process; set {_RAYS_PATIENCE} here and on "
                "all nodes to wait longer"
            )
        if ray.is_initialized():  # a process has one connection; use the existing one
            given, found = self._cfg["address"], str(ray.get_runtime_context().gcs_address)
            if given not in (None, "auto", found):
                raise ConfigError(
                    f"system_config.engine.address is {given!r}, and this process is connected to "
                    f"Ray at {found}: call ray.shutdown() first, or give that address"
                )
            self.worker_env = _uploaded(_runtime_env(self._cfg, elsewhere=True))
        else:
            self._init()
        given = str(self._cfg["address"])
        # A Ray client reaches only that address.
        is_client = given.startswith(_CLIENT)
        address = given if is_client else str(ray.get_runtime_context().gcs_address)
        host, _, port = address.removeprefix(_CLIENT).rpartition(":")
        self._head = host, int(port)

    def _init(self) -> None:
        given = self._cfg["address"]
        arguments: dict[str, Any] = {
            "namespace": self._namespace,
            "log_to_driver": False,
            "logging_level": logging.ERROR,
            "runtime_env": _runtime_env(self._cfg, given is not None),
        }
        if given is None:
            # Listening services are protected by Ray's token, if this version of Ray has one.
            if "ray._raylet" not in sys.modules:
                os.environ.setdefault("RAY_AUTH_MODE", "token")
            secure_token()
            arguments.update(address="local", include_dashboard=False)
            if self._cfg["object_store_memory"]:
                arguments["object_store_memory"] = int(self._cfg["object_store_memory"])
        else:
            _check_reachable(given)
            arguments["address"] = given
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        before = _children([os.getpid()])
        for lines in (stderr_deduplicator, stdout_deduplicator):
            # Ray prints its daemons' reports there, with dumps of their state.
            lines.skip_re = re.compile("")
        # Exceptions of signal handlers in the main thread are lost in Ray's callbacks from C.
        started: Future[None] = Future()
        self._left.clear()
        holder = ReportingThread(self._hold, "start-ray", _logger.warning, (arguments, started))
        try:
            holder.start()
            started.result()
        except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            what = "Ray cannot be started" if given is None else f"no Ray cluster at {given!r}"
            raise ConfigError(
                f"system_config.engine: {what}: {type(error).__name__}: {error}"
            ) from error
        except BaseException as error:  # a signal
            deadline = time.monotonic() + durations.RAY_LEAVE_EARLY
            while not started.done() and time.monotonic() < deadline:
                self._kill_started(before)
                wait([started], durations.RAY_KILL_LOOK)
            # A normal exit of a partly connected process crashes in Ray's threads.
            ending = getattr(error, "ending", None)
            status = ending.exit_status if isinstance(ending, Ending) else 1
            atexit.register(leave_process, status)
            self._kill_started(before)
            self._left.set()
            raise
        self._joined = True
        self._processes = _children([os.getpid()]) - before

    def _hold(self, arguments: Mapping[str, Any], started: "Future[None]") -> None:
        """Start Ray, and wait until it is left: Linux ends Ray's processes with this thread."""
        unused = {name: vars(Node)[name] for name in _UNUSED_SERVICES if name in vars(Node)}
        for name in unused:
            setattr(Node, name, lambda *_, **__: None)
        try:
            ray.init(**arguments)
        except BaseException as error:  # the edge of the thread: raised in the main thread
            started.set_exception(error)
            return
        finally:
            for name, method in unused.items():
                setattr(Node, name, method)
        started.set_result(None)
        self._left.wait()

    def answers(self) -> bool:
        """Whether the cluster's head can be reached."""
        return self._head is None or _listens(self._head)

    @property
    def head(self) -> str:
        return "Ray" if self._head is None else f"{self._head[0]}:{self._head[1]}"

    def leave(self, seconds: float = durations.RAY_LEAVE) -> bool:
        """Disconnect, and end a cluster that was started for the run.

        Returns whether this succeeded within ``seconds``.
        """
        if not self._joined:
            return True
        self._joined = False
        # Workers of a killed node daemon can outlive Ray's shutdown. They are found before it,
        # since children of a daemon that has ended get another parent.
        started = [process_identity(pid) for pid in _with_descendants(self._processes)]
        # Without a head, Ray's shutdown takes much longer than a run's end may take.
        leaving = ReportingThread(ray.shutdown, "leave-ray", _logger.warning)
        leaving.start()
        leaving.join(seconds)
        self._left.set()
        has_left = not leaving.is_alive()
        if not has_left:
            atexit.unregister(ray.shutdown)  # it would also block the exit of this process
        end_processes(started, durations.RAY_PROCESS_END if has_left else 0.0)
        return has_left

    @staticmethod
    def _kill_started(before: set[int]) -> None:
        for pid in _with_descendants(_children([os.getpid()]) - before):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class NodeWatch:
    """Detects nodes of the run that are lost; for one thread, except `gone`.

    Ray detects the loss of a node after about 15 seconds, and places actors there until then.
    """

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int]] = {}
        self._answered: dict[str, float] = {}
        #: Ids of nodes that do not answer.
        self.gone: frozenset[str] = frozenset()

    def look(self, nodes: Collection[str]) -> None:
        """Check which of these nodes answer.

        A node that this process could never reach, such as behind a gateway, counts as answering.
        """
        for node in set(nodes) - self._places.keys():
            for facts in ray.nodes():
                if facts["NodeID"] == node:
                    place = facts["NodeManagerAddress"], int(facts["NodeManagerPort"])
                    self._places[node] = place
                    if _listens(place):
                        self._answered[node] = time.monotonic()
        now, gone = time.monotonic(), set()
        for node in {*nodes, *self.gone} & self._answered.keys():
            if _listens(self._places[node]):
                self._answered[node] = now
            # A busy node may miss one probe.
            elif now - self._answered[node] > durations.RAY_NODE_TOLERANCE:
                gone.add(node)
        self.gone = frozenset(gone)


def _listens(place: tuple[str, int]) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(place, durations.RAY_PROBE).close()
        return True
    return False


def secure_token() -> None:
    """Make the file of Ray's token readable by its owner only.

    Ray leaves it readable by all, and the token permits running code in clusters that use it.
    """
    has_tokens = importlib.util.find_spec("ray._private.authentication") is not None
    is_elsewhere = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    is_off = os.environ.get("RAY_AUTH_MODE", "token") != "token"
    if not has_tokens or is_elsewhere or is_off:
        return
    path = Path.home() / ".ray" / "auth_token"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if write_secret(path, secrets.token_hex(32)):
            return
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            path.chmod(mode & 0o700)
            _logger.warning(
                "others could read Ray's token %s (mode %04o), and do not any more; remove the "
                "file for a new one if they may have",
                *(path, mode),
            )
    except OSError as error:
        raise ConfigError(
            f"cannot keep Ray's token to yourself in {str(path)!r}: {error.strerror or error}; set "
            "RAY_AUTH_TOKEN_PATH to a file of your account"
        ) from error


def _children(pids: Iterable[int]) -> set[int]:
    """Child processes of these processes; none without ``/proc``."""
    parents, found = set(pids), set()
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with contextlib.suppress(OSError, ValueError, IndexError):
            facts = Path(f"/proc/{int(entry)}/stat").read_text().rpartition(")")[2].split()
            if int(facts[1]) in parents:
                found.add(int(entry))
    return found


def _with_descendants(pids: set[int]) -> set[int]:
    found, new = set(pids), set(pids)
    while new := _children(new) - found:
        found |= new
    return found


def _check_reachable(address: str) -> None:
    """Reject an address that no process listens on; Ray itself takes more than a minute to fail."""
    host, _, port = address.removeprefix(_CLIENT).partition("?")[0].rpartition(":")
    if not (host and port.isdecimal()):
        return  # for example 'auto'
    try:
        socket.create_connection((host, int(port)), durations.RAY_PROBE).close()
    except OSError as error:
        raise ConfigError(
            f"system_config.engine: no Ray cluster at {address!r}: {error.strerror or error}"
        ) from error


def _runtime_env(cfg: Mapping[str, Any], elsewhere: bool) -> dict[str, Any] | None:
    """Requirements of workers beyond their nodes' packages; nodes may be `elsewhere`."""
    env = dict(cfg["runtime_env"] or {})
    paths = {_path_of(name) for name in cfg["modules"] if elsewhere} - {None}
    if paths:
        env["py_modules"] = [*env.get("py_modules", []), *sorted(map(str, paths))]
    return env or None


def _uploaded(env: dict[str, Any] | None) -> dict[str, Any] | None:
    """A runtime environment with its folders uploaded to the cluster, as actors require."""
    if env is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        return upload_py_modules_if_needed(env, include_gitignore=True, scratch_dir=scratch)


def _path_of(module: str) -> str | None:
    """The file or folder of a module to upload; ``None`` for installed modules."""
    top = module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise ConfigError(f"import_names: there is no module {module!r} on this host")
    places = list(spec.submodule_search_locations or [])
    path = places[0] if places else spec.origin
    # Built into the interpreter, and so available on every node.
    if path is None or not os.path.exists(path):
        return None
    path = os.path.realpath(path)
    homes = {os.path.realpath(sysconfig.get_path(k)) for k in ("purelib", "platlib", "stdlib")}
    return None if any(os.path.commonpath([path, home]) == home for home in homes) else path
