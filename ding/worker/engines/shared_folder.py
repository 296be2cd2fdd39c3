"""Samples, weights and artifacts as files in folders that all processes of a run can access."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from ding.data.chunks import SharedFolder, read_chunk, write_chunk
from ding.torch_utils.weights_file import read_weights, write_weights
from ding.utils import read_file, remove_file, save_file
from ding.utils.errors import CheckpointNotFoundError, DataError
from ding.utils.file_helper import open_to_write, write_atomically, write_pieces
from ding.utils.sent_files import FileChange
from ding.utils.types import SavedState
from ding.worker.messages import StartTask
from ding.worker.seams import Samples, Weights


class SharedFolderSamples(SharedFolder):
    """A sample store: one file per name, which learners map into memory."""

    def put(self, name: str, samples: Samples) -> int:
        return write_chunk(self, name, samples)

    def get(self, name: str) -> Samples:
        return read_chunk(self, name)


class SharedFolderWeights(SharedFolder):
    """A weight store: one file per policy, replaced by each version."""

    def publish(self, name: str, weights: Weights) -> None:
        write_weights(self, name, weights.state, weights.facts)

    def newest(self, name: str) -> Weights:
        return Weights(*read_weights(self, name))

    def version(self, name: str) -> tuple[int, ...] | None:
        try:
            # Without reading the file, since collectors check often. Each version replaces the
            # file, so its inode and time change.
            found = os.stat(self.file(name))
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def keep(self, name: str, as_name: str) -> bool:
        try:
            with open(self.file(name), "rb") as file:  # not a link: some file systems have none
                copy = partial(shutil.copyfileobj, file)
                write_atomically(self.file(as_name), copy, durable=False)
        except FileNotFoundError:
            return False
        return True


class FolderArtifacts:
    """Files in the run's folder.

    Args:
        root: The run's folder; it need not exist yet.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def save(self, path: str, state: SavedState) -> None:
        """Write a state.

        Raises:
            CheckpointWriteError: The state cannot be written; the earlier content stays.
            DataError: The path is outside the run's folder.
            TypeError: A part of the state cannot be stored safely.
        """
        save_file(file_inside(self._root, path), state)

    def load(self, path: str) -> SavedState | None:
        """Read a state; ``None`` if there is none.

        Raises:
            CheckpointError: The state is damaged.
            DataError: The path is outside the run's folder.
        """
        try:
            state: SavedState = read_file(file_inside(self._root, path))
        except CheckpointNotFoundError:
            return None
        return state


def apply_changes(root: str, changes: Iterable[FileChange]) -> None:
    """Write a worker's files to a run's folder on this host.

    Raises:
        OSError: A file cannot be written.
        DataError: A path is outside the folder.
    """
    for change in changes:
        path = file_inside(root, change.path)
        if change.content is None:
            remove_file(path)
        elif not change.appends:
            write_pieces(path, [change.content], durable=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with os.fdopen(open_to_write(path, os.O_WRONLY | os.O_APPEND), "wb") as stream:
                stream.write(change.content)


def files_of_task(root: str, request: object) -> dict[str, bytes]:
    """Files of the run's folder that a request's task names, by their paths there."""
    found: dict[str, bytes] = {}
    if isinstance(request, StartTask):
        root = os.path.realpath(root)
        for given in _texts(request.info):
            path = os.path.realpath(given)
            # Only files of the run: a task may name any path, and files sent leave this host.
            if path.startswith(root + os.sep) and os.path.isfile(path):
                with open(path, "rb") as stream:
                    found[os.path.relpath(path, root)] = stream.read()
    return found


def _texts(value: object) -> Iterator[str]:
    """Strings in a part of a task that may be paths."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str) and os.sep in value:
        yield value


def file_inside(root: str, path: str) -> str:
    """The absolute path of a file below a run's folder, links resolved.

    Raises:
        DataError: The path is outside the folder.
    """
    root = os.path.realpath(root)
    found = os.path.realpath(os.path.join(root, path))
    if found == root or os.path.commonpath([root, found]) != root:
        raise DataError(f"{path!r} does not lie in the run folder {root}")
    return found
