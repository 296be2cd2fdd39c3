"""The default engine: HTTP between processes, and folders that they share."""

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ding.utils import ENGINE_REGISTRY
from ding.utils.errors import ConfigError, DingError
from ding.utils.run_claims import RunMark
from ding.utils.shared_folder import SharedFolder
from ding.worker.engines.carrier import Starter, WorkerSpec
from ding.worker.engines.control import RunControl
from ding.worker.engines.http_door import HttpWorkers
from ding.worker.engines.shared_folder import (
    FolderArtifacts,
    SharedFolderSamples,
    SharedFolderWeights,
)
from ding.worker.messages import Kind
from ding.worker.seams import Engine

Folder = TypeVar("Folder", bound=SharedFolder)


@ENGINE_REGISTRY.register("flask_fs")
def flask_fs_engine(
    system: Mapping[str, Any],
    exp_name: str,
    seed: int = 0,
    starter: Starter | None = None,
    specs: Sequence[WorkerSpec] = (),
) -> Engine:
    """Processes of a supervisor, or started by hand, that join at the coordinator's HTTP server.

    This is the coordinator's side; a worker reads its folders and addresses from its own config.

    Args:
        system: The compiled config's ``system``.
        exp_name: The run's folder.
        seed: The run's.
        starter: Starts the workers, if this run does.
        specs: Specifications of the started workers; the config's tables list further workers.

    Raises:
        ConfigError: A folder cannot be used, or a table of workers has an entry that is none.
    """
    samples = _folder(system, "path_data", SharedFolderSamples)
    weights = _folder(system, "path_policy", SharedFolderWeights)
    folders = {"buffers": samples, "weights": weights}
    workers = HttpWorkers(system["coordinator"], partial(_config_of, system, seed))
    known = {spec.name for spec in specs}
    specs = [*specs, *(spec for spec in workers.specs if spec.name not in known)]
    control = RunControl(workers, specs, system.get("max_restart", 0), starter)
    return Engine(
        control,
        samples,
        weights,
        FolderArtifacts(exp_name),
        {kind: RunMark(folder.path, exp_name) for kind, folder in folders.items() if folder},
    )


def _config_of(system: Mapping[str, Any], seed: int, kind: Kind, name: str) -> Mapping[str, object]:
    """The config of a worker that joins without one, as that of the first of its kind."""
    first = system.get(f"{kind}0")
    if first is None or not re.fullmatch(rf"{kind}\d+", name):
        raise ConfigError(f"expected a worker's name, such as {kind}7, got {name!r}")
    if first.get("multi_gpu"):
        raise ConfigError(f"a {kind} of this run consists of several processes: {name} cannot join")
    entry = {**first, "name": name, "host": None, "port": "auto", "run_key": None}
    for path in ("exp_name", "path_data", "path_policy"):
        entry[path] = os.path.abspath(entry[path])
    main = {"exp_name": entry["exp_name"], "seed": seed}
    return {"main": main, "system": {"logs": system.get("logs", {}), name: entry}}


def _folder(system: Mapping[str, Any], key: str, kind: type[Folder]) -> Folder | None:
    """The folder that the workers share, if the config names one."""
    sections = [system["coordinator"], system, *system.values()]
    named = [part[key] for part in sections if isinstance(part, Mapping) and part.get(key)]
    if not named:
        return None
    try:
        return kind(named[0])
    except (DingError, TypeError) as err:
        raise ConfigError(f"system.{key} is {named[0]!r}, expected a folder: {err}") from err
