"""Parallel runs in separate processes that tests watch, break and inspect afterwards."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import requests
from easydict import EasyDict

from tests.children import start_ding

CONFIG = """\
from tests.parallel.runs import parallel_config

main_config, create_config, system_config = parallel_config(**{settings!r})
"""


def parallel_config(
    exp_name: str = "run",
    stop_value: float = 9.5,
    collector_num: int = 2,
    fault: dict[str, Any] | None = None,
    system: dict[str, Any] | None = None,
    create: dict[str, Any] | None = None,
    callbacks: list[str] | None = None,
    **policy: Any,
) -> tuple[EasyDict, EasyDict, EasyDict]:
    """A run on `WalkEnv`: ten steps, of which each with action 1 gives 1.

    Args:
        fault: The environment's fault, see `tests.entry.runs.WalkEnv`.
        system: More entries of the system config.
        create: More entries of the create config.
        callbacks: Names of callbacks of the run.
        policy: More entries of the policy's config.
    """
    main = dict(
        exp_name=exp_name,
        callbacks=callbacks or [],
        env=dict(
            collector_env_num=4,
            evaluator_env_num=2,
            n_evaluator_episode=4,
            stop_value=stop_value,
            # A step takes a while, so that collectors leave the machine to others.
            **{"seconds": 0.002, **(fault or {})},
        ),
        policy=dict(
            cuda=False,
            discount_factor=0.9,
            nstep=1,
            model=dict(obs_shape=3, action_shape=2, encoder_hidden_size_list=[32, 32]),
            learn=dict(batch_size=32, learning_rate=0.003, learner=dict(learner_num=1)),
            collect=dict(
                n_sample=16, collector=dict(collector_num=collector_num, update_policy_second=0.5)
            ),
            other=dict(
                eps=dict(type="exp", start=0.95, end=0.1, decay=2000),
                replay_buffer=dict(replay_buffer_size=5000),
                commander=dict(
                    collector_task_space=collector_num, learner_task_space=1, eval_interval=2
                ),
            ),
        ),
    )
    for key, value in policy.items():
        main["policy"][key] = {**main["policy"].get(key, {}), **value}
    create_config = dict(
        env=dict(type="parallel_walk", import_names=["tests.parallel.envs"]),
        env_manager=dict(type="base"),
        policy=dict(type="dqn"),
        learner=dict(type="base"),
        collector=dict(type="zergling"),
        commander=dict(type="solo"),
        comm_learner=dict(type="flask_fs"),
        comm_collector=dict(type="flask_fs"),
    )
    create_config.update(create or {})
    system_config = {
        "coordinator": {},
        "path_data": f"{exp_name}/data",
        "path_policy": f"{exp_name}/policy",
        "communication_mode": "auto",
        "learner_gpu_num": 0,
        **(system or {}),
    }
    return EasyDict(main), EasyDict(create_config), EasyDict(system_config)


class ParallelRun:
    """``ding -m parallel`` in a separate session, so that every process that it leaves is found.

    Args:
        folder: Where it is started.
        changed: Other durations than those of `ding.utils.durations`.
        gated: Whether it can reach its goal only after `let_converge`.
        settings: See `parallel_config`.
    """

    def __init__(
        self,
        folder: Path,
        changed: dict[str, float] | None = None,
        gated: bool = False,
        **settings: Any,
    ) -> None:
        self.folder = folder
        if gated:
            settings["fault"] = {"gate": str(folder / "gate"), **settings.get("fault", {})}
        self.exp = folder / settings.get("exp_name", "run")
        (folder / "config.py").write_text(CONFIG.format(settings=settings))
        self.output_file = folder / "output.txt"
        self.process = start_ding(
            *["-m", "parallel", "-c", "config.py", "-s", "0", "--plain"],
            folder=folder,
            output=self.output_file,
            session=True,
            changed=changed,
        )

    @property
    def output(self) -> str:
        return self.output_file.read_text()

    @property
    def last_line(self) -> str:
        """The line with which the run says how it ended."""
        verdicts = [line for line in self.output.splitlines() if line and not line.startswith(" ")]
        return verdicts[-1]

    def status(self) -> dict[str, Any]:
        """The status that the coordinator reports; empty while there is no coordinator."""
        try:
            where = json.loads((self.exp / "coordinator.json").read_text())
            answer = requests.get(f"http://{where['host']}:{where['port']}/status", timeout=5)
            return answer.json()["data"]
        except (OSError, ValueError, KeyError):
            return {}

    def wait_for(
        self, what: str, condition: Callable[[dict[str, Any]], Any], timeout: float = 60
    ) -> dict[str, Any]:
        """The first status that meets a condition."""
        deadline = time.monotonic() + timeout
        status: dict[str, Any] = {}
        while time.monotonic() < deadline:
            status = self.status()
            with contextlib.suppress(KeyError, TypeError):
                if condition(status):
                    return status
            assert self.process.poll() is None, f"ended before {what}:\n{self.output[-3000:]}"
            time.sleep(0.05)
        raise AssertionError(f"no {what} in {timeout} s; {status}\n{self.output[-3000:]}")

    def wait_until_it_learns(self, iters: int = 50) -> dict[str, Any]:
        return self.wait_for(f"{iters} updates", lambda s: s["train_iter"] >= iters)

    def pid(self, name: str) -> int:
        if name == "coordinator":
            return json.loads((self.exp / "coordinator.json").read_text())["pid"]
        return self.status()["workers"][name]["pid"]

    def pid_in_team(self, name: str) -> int:
        """A process of a multi-process learner, identified by the file that it writes to."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/{pid}/fd/1")
                if f"log/{name}/output.txt" in target or f"/{name}-output-" in target:
                    return pid
        raise AssertionError(f"there is no {name}")

    def kill(self, name: str, number: int = signal.SIGKILL) -> int:
        pid = self.pid(name)
        os.kill(pid, number)
        return pid

    def end(self, timeout: float = 60) -> int:
        """Wait for the run's end; returns its exit status."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"still running after {timeout} s; {self.status()}\n{self.output[-3000:]}"
            ) from None

    def processes(self) -> list[int]:
        """The living processes of the run's session."""
        alive = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid and fields[0] != "Z":
                    alive.append(int(folder.name))
        return alive

    def wait_until_alone(self, timeout: float = 20) -> None:
        """Until no process of the run is left."""
        deadline = time.monotonic() + timeout
        while left := self.processes():
            commands = [Path(f"/proc/{pid}/cmdline") for pid in left]
            assert time.monotonic() < deadline, f"still there: {left} {commands}"
            time.sleep(0.02)

    def let_converge(self) -> None:
        """From now on a run that is `gated` can reach its goal."""
        (self.folder / "gate").touch()

    def data_files(self) -> list[str]:
        """Files of samples, weights, or unfinished ones."""
        found = [p for part in ("data", "policy") for p in (self.exp / part).rglob("*")]
        found += [p for p in self.exp.rglob(".*") if p.is_file()]
        return [str(path) for path in found if path.is_file()]

    def stop(self) -> None:
        """Kill whatever is left."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10)


@contextlib.contextmanager
def parallel_run(folder: Path, **settings: Any) -> Iterator[ParallelRun]:
    """A run that is killed when the context ends."""
    run = ParallelRun(folder, **settings)
    try:
        yield run
    finally:
        run.stop()
