"""The default engine: HTTP between processes, and folders that they share."""

from collections.abc import Mapping
from typing import Any, TypeVar

from ding.utils import ENGINE_REGISTRY
from ding.utils.errors import ConfigError, DingError
from ding.utils.run_claims import RunMark
from ding.utils.shared_folder import SharedFolder
from ding.worker.engines.http_control import HttpControl
from ding.worker.engines.shared_folder import (
    FolderArtifacts,
    SharedFolderSamples,
    SharedFolderWeights,
)

Folder = TypeVar("Folder", bound=SharedFolder)


@ENGINE_REGISTRY.register("flask_fs")
class FlaskFsEngine:
    """Processes of a supervisor, or started by hand, that join at the coordinator's HTTP server.

    This is the coordinator's side; a worker reads its folders and addresses from its own config.

    Args:
        system: The compiled config's ``system``.
        exp_name: The run's folder.

    Attributes:
        samples: ``None`` if the config names no folder that the coordinator can see.
        weights: Likewise.
        marks: Of the folders of ``buffers`` and ``weights``, for what is to be removed if this
            process dies.

    Raises:
        ConfigError: A folder cannot be used, or a table of workers has an entry that is none.
    """

    def __init__(self, system: Mapping[str, Any], exp_name: str) -> None:
        self.control = HttpControl(system["coordinator"])
        self.samples = _folder(system, "path_data", SharedFolderSamples)
        self.weights = _folder(system, "path_policy", SharedFolderWeights)
        self.artifacts = FolderArtifacts(exp_name)
        folders = {"buffers": self.samples, "weights": self.weights}
        self.marks = {
            kind: RunMark(folder.path, exp_name)
            for kind, folder in folders.items()
            if folder is not None
        }


def _folder(system: Mapping[str, Any], key: str, kind: type[Folder]) -> Folder | None:
    """The folder that the workers share, if the config names one.

    Raises:
        ConfigError: It is no path, or cannot be used.
    """
    sections = [system["coordinator"], system, *system.values()]
    named = [part[key] for part in sections if isinstance(part, Mapping) and part.get(key)]
    if not named:
        return None
    try:
        return kind(named[0])
    except (DingError, TypeError) as err:
        raise ConfigError(f"system.{key} is {named[0]!r}, expected a folder: {err}") from err
