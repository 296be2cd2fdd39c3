"""The status of a run, running or ended: ``ding status``. Coordinators report on parallel runs."""

import contextlib
import os
import shlex
from collections.abc import Mapping
from typing import Any

import requests

from ding.board.run_list import Run
from ding.interaction.base.network import HttpEngine, is_loopback
from ding.utils import durations, strict_json
from ding.utils.console import printable, table
from ding.utils.errors import ConfigError, DataError, RunError
from ding.utils.file_helper import read_facts
from ding.utils.processes import still_runs
from ding.utils.run_claims import read_run_key
from ding.utils.run_files import RECORD_FILE, RunRecord, read_record, why_no_run

#: A coordinator's report, or the content of its file.
Status = Mapping[str, Any]
COORDINATOR_FILE = "coordinator.json"
_WORKER_COLUMNS = ("worker", "state", "task", "since", "waits for", "rate", "address")


def coordinator_address(exp_name: str) -> Status | None:
    """``host``, ``port`` and ``pid`` of a run's coordinator.

    ``None`` if there is none: the file may be left over from a killed coordinator.
    """
    found = read_facts(os.path.join(exp_name, COORDINATOR_FILE))
    process = found.get("process")
    host, port = found.get("host"), found.get("port")
    if not isinstance(host, str) or type(port) is not int or not 0 < port < 65536:
        return None
    return None if isinstance(process, dict) and still_runs(process) is False else found


def report(exp_name: str, as_json: bool = False) -> str:
    """The facts of a run as lines, or all of them as JSON.

    Raises:
        RunError: The run does not exist, or does not answer.
    """
    address, where = coordinator_address(exp_name), printable(os.path.abspath(exp_name))
    problem = ""
    if address is not None:
        try:
            status = ask_status(address, exp_name)
            if as_json:
                return strict_json.dumps(status, indent=2)
            return "\n".join(map(printable, _running(status)))
        except (AttributeError, TypeError, ValueError, KeyError) as error:
            problem = f"what answers is not a coordinator of this version: {error!r}"
        except RunError as error:
            problem = str(error)
    try:
        record = read_record(exp_name)
    except FileNotFoundError as error:
        problem = problem or why_no_run(exp_name, RECORD_FILE)
        raise RunError(problem) from error
    except DataError as error:
        raise RunError(problem or f"{where}: {error}") from error
    if record.status == "running":
        if record.facts.get("mode") in (None, "parallel") or problem:
            raise RunError(problem or f"{where} is being started, or was killed: no coordinator")
        if not record.may_live:
            command = f"ding resume {shlex.quote(exp_name)}"
            raise RunError(f"{where} was killed; continue it with  {command}")
    return strict_json.dumps(record.facts, indent=2) if as_json else _ended(exp_name, record)


def _ended(exp_name: str, record: RunRecord) -> str:
    process = f"process {record.pid} on {record.host}, mode {record.facts.get('mode')}"
    reason = process if record.status == "running" else record.reason
    lines = [f"{exp_name}: {record.status}: {reason}"]
    shown = Run(exp_name, exp_name).summary()
    last = "last mean return" if record.status == "converged" else "mean of last five"
    for key, label in (
        ("last_return", last),
        ("best_return", "best mean return"),
        ("envstep", "environment steps"),
        ("train_iter", "updates"),
        ("seconds", "seconds"),
    ):
        if shown.get(key) is not None:
            lines.append(f"  {label:<18}{_number(shown[key])}")
    return "\n".join(map(printable, lines))


def _running(status: Status) -> list[str]:
    get = status.get
    head = f"{get('exp_name')}: {get('state')} for {_number(get('seconds'))} s"
    if get("reason"):
        head += f": {get('reason')}"
    rate = get("data_rate") or {}
    facts = [
        f"step {_number(get('envstep'))}",
        f"iter {_number(get('train_iter'))}",
        f"best return {_number(get('best_return'))} of {_number(get('stop_value'))}",
        f"{_number(rate.get('samples_per_s'))} samples/s",
        f"{_number((rate.get('bytes_per_s') or 0) / 1e6)} MB/s",
    ]
    lines = [head, "  " + ", ".join(facts)]
    for name, buffer in (get("buffers") or {}).items():
        lines.append(
            f"  buffer {name}: {_number(buffer.get('count'))} of "
            f"{_number(buffer.get('capacity'))} samples, {_number(buffer.get('files'))} files, "
            f"{_number((buffer.get('bytes') or 0) / 1e6)} of "
            f"{_number((buffer.get('max_bytes') or 0) / 1e6)} MB"
        )
    for name, policy in (get("policy") or {}).items():
        iters, age, lag = (_number(policy.get(key)) for key in ("iter", "age_s", "lag_iters"))
        lines.append(f"  policy {name}: iter {iters}, {age} s old, collectors lag {lag} iters")
    tasks = ", ".join(f"{count} {state}" for state, count in (get("tasks") or {}).items() if count)
    lines += [f"  {name}: {trouble}" for name, trouble in (get("troubles") or {}).items()]
    lines += [f"  tasks: {tasks or 'none'}", f"  waits: {get('waits') or 'none'}", ""]
    rows = [_WORKER_COLUMNS, *map(_worker_row, (get("workers") or {}).items())]
    lines += [f"  {line}" for line in table(rows)]
    failures = get("failures") or []
    if failures:
        lines += ["", "last failures:"]
        lines += [f"  {f.get('worker')}, task {f.get('task')}: {f.get('cause')}" for f in failures]
    return lines


def _worker_row(item: tuple[str, Status]) -> tuple[str, ...]:
    name, worker = item
    rates = [f"{_number(worker[key])} {unit}" for key, unit in _RATES if worker.get(key)]
    # What the worker waits for, with the fractions of its time.
    shares = sorted((worker.get("wait_shares") or {}).items(), key=lambda item: -item[1])
    waits = [f"{what} {share:.0%}" for what, share in shares if share >= 0.01]
    return (
        *(name, str(worker.get("state")), worker.get("task_id") or "-"),
        *(
            f"{_number(worker.get('since_s'))} s",
            ", ".join(waits) or worker.get("waits_for") or "-",
        ),
        *(", ".join(rates) or "-", str(worker.get("address"))),
    )


_RATES = (("samples_per_s", "samples/s"), ("iters_per_s", "iters/s"))


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def is_answering(address: Status, exp_name: str) -> bool:
    """Whether a `coordinator_address` still belongs to the run's coordinator."""
    process = address.get("process")
    if isinstance(process, dict) and still_runs(process):
        return True
    try:
        answering = ask_status(address, exp_name).get("exp_name")
    except RunError:
        return False
    # Not whole paths: the coordinator may have another working directory or host.
    return _folder_name(answering) == _folder_name(exp_name)


def ask_status(address: Status, exp_name: str | None = None) -> Status:
    """The status from the coordinator at a `coordinator_address`.

    On this host plain HTTP suffices; a coordinator elsewhere requires the key of the run's folder.

    Raises:
        RunError: There is no answer, or it is not a coordinator's.
    """
    where = f"{address.get('host')}:{address.get('port')}"
    try:
        host = str(address["host"])
        key = None if exp_name is None or is_loopback(host) else read_run_key(exp_name)
        engine = HttpEngine(host, int(address["port"]), key=key, role="master")
        engine.timeout = durations.STATUS_TIMEOUT
        with contextlib.closing(engine):
            answer = engine.request("GET", "status", retries=0, raise_for_status=False)
        return dict(strict_json.loads(answer.content)["data"])
    except ConfigError as error:
        raise RunError(f"the coordinator at {where} cannot be asked: {error}") from error
    except (requests.RequestException, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"the coordinator at {where} (process {address.get('pid')}) does not answer: "
            f"{type(error).__name__}"
        ) from error


def live_status(exp_name: str) -> Status | None:
    """The status from a run's coordinator; ``None`` if no coordinator answers."""
    address = coordinator_address(exp_name)
    with contextlib.suppress(RunError):
        return None if address is None else ask_status(address, exp_name)
    return None


def _folder_name(exp_name: object) -> str:
    return os.path.basename(os.path.normpath(str(exp_name)))
