"""The exceptions that callers may rely on.

::

    DingError
    |-- ConfigError (ValueError)          a config that cannot be run; names the key
    |-- UnknownTypeError (KeyError)       a name that no registry knows
    |-- DuplicateTypeError (AssertionError)   a name that is already registered
    |-- MissingNameError (ImportError)    a part of the API that this version does not have
    |   `-- MissingModuleError (ModuleNotFoundError)   a module that a config names
    |-- DataError (ValueError)            NaN, wrong length, wrong shape in training data
    |   `-- ChunkError                    a data file that cannot be read; carries `data_id`
    |-- InteractionError (RuntimeError)   a master or slave cannot do what was asked of it
    |   |-- PortTakenError (OSError)      another program listens on the port
    |   |-- NameTakenError (KeyError)     another connection has the name
    |   |-- NotAuthenticError, AnswerTooLargeError (of `requests`)    a peer is not to be trusted
    |   `-- NotJsonError (TypeError)      a message that JSON has no words for
    |-- CheckpointError (RuntimeError)    a file that cannot be read or written; names the file
    |   |-- CheckpointNotFoundError (FileNotFoundError)
    |   `-- CheckpointWriteError (OSError)    disk full, no permission; carries `errno`
    |-- CallbackError (RuntimeError)      a callback of a run raised; names its method
    |-- RunError (RuntimeError)           a run of several processes that failed; with the cause
    `-- EnvError (RuntimeError)           an environment failed; carries `env_id`
        |-- EnvTimeoutError (TimeoutError)
        |-- EnvDiedError                  its process has ended
        |-- EnvDataError (DataError)      it gave NaN
        `-- ActionError (ValueError)      an action outside the action space
"""

import os
import traceback
from collections.abc import Collection, Iterable, Mapping

from ding import _alone as _alone  # DI-engine may have overwritten ding/__init__.py, which has it

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class DingError(Exception):
    """Base of every error that this package raises on purpose.

    Attributes:
        printed: Whether a run has printed the message, so that a command need not.
    """

    printed = False

    def __str__(self) -> str:
        # A KeyError would show the repr of the message, quotes and escaped line breaks included.
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()


class ConfigError(DingError, ValueError):
    """A config that cannot be run. The message names the full path of the key."""


class UnknownTypeError(DingError, KeyError):
    """A name that a registry does not hold."""


class DuplicateTypeError(DingError, AssertionError):
    """A name that a registry already holds for something else."""


class MissingNameError(DingError, ImportError):
    """Code asks for a part of the API that this version does not have."""


class MissingModuleError(MissingNameError, ModuleNotFoundError):
    """A config names a module that cannot be imported."""


class DataError(DingError, ValueError):
    """Training data that must not be learned from: NaN, wrong length, wrong shape."""


class ChunkError(DataError):
    """A file of training data that cannot be read.

    Attributes:
        data_id: The file's name in the shared folder.
        cause: What is wrong with it, in one line.
    """

    def __init__(self, data_id: str, cause: str) -> None:
        super().__init__(data_id, cause)
        self.data_id, self.cause = data_id, cause

    def __str__(self) -> str:
        return f"chunk {self.data_id}: {self.cause}"


class CheckpointError(DingError, RuntimeError):
    """A checkpoint or data file that cannot be read or written."""


def require_entries(whose: str, state: object, names: Iterable[str]) -> None:
    """Refuse a state that lacks entries, before any of it is loaded.

    Raises:
        CheckpointError: It is not a mapping, or lacks one of ``names``.
    """
    lacks = [name for name in names if not isinstance(state, Mapping) or name not in state]
    if lacks:
        held = f"has {sorted(map(str, state))}" if isinstance(state, Mapping) else f"is {state!r}"
        raise CheckpointError(
            f"this state cannot be loaded into {whose}: it lacks {lacks} and {held}; another "
            "program or an older version wrote it. Start without it, or load what this one's "
            "state_dict() returned"
        )


class CheckpointNotFoundError(CheckpointError, FileNotFoundError):
    """The file to be read does not exist."""


class CheckpointWriteError(CheckpointError, OSError):
    """A file could not be written; the file that stood there before is intact.

    Attributes:
        errno: The operating system's error number (``errno.ENOSPC``, ``errno.EACCES``, ...).
    """

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno


class CallbackError(DingError, RuntimeError):
    """A callback of a run raised; the cause is what it raised."""


class RunError(DingError, RuntimeError):
    """A run of several processes failed; the message is its reason."""

    def __init__(self, message: str, printed: bool = False) -> None:
        super().__init__(message)
        self.printed = printed


class EnvError(DingError, RuntimeError):
    """An environment failed.

    Attributes:
        env_id: Index of the environment in its manager, ``None`` when it is not in one.
    """

    def __init__(self, message: str, env_id: int | None = None) -> None:
        super().__init__(message)
        self.env_id = env_id


class EnvTimeoutError(EnvError, TimeoutError):
    """An environment did not answer in time."""


class EnvDiedError(EnvError):
    """The process of an environment ended without an answer."""


class ActionError(EnvError, ValueError):
    """An action that the environment's action space does not contain."""


class EnvDataError(EnvError, DataError):
    """An environment gave a reward or an observation that must not be learned from."""


class InteractionError(DingError, RuntimeError):
    """A master or slave cannot do what was asked of it."""


class PortTakenError(InteractionError, OSError):
    """Another program listens on the port; the message names host and port."""


class NameTakenError(InteractionError, KeyError):
    """Another connection of the master has the name."""


class NotJsonError(InteractionError, TypeError):
    """A message between master and slave that JSON has no words for."""


def check_one_of(name: str, value: object, known: Collection[object]) -> None:
    """Refuse a setting that is not a known one.

    Raises:
        ConfigError: Says what was set under this name, and what could be.
    """
    if value not in known:
        raise ConfigError(f"{name} is {value!r}; expected one of {[*known]}")


def mismatch(error: BaseException) -> str:
    """In one line, how a saved state differs: torch lists each parameter in a separate line."""
    differences = [" ".join(line.split()).rstrip(". ") for line in str(error).splitlines()]
    kept = [line if len(line) < 200 else f"{line[:200]} ..." for line in differences if line]
    more = f" (and {len(kept) - 2} more differences)" if len(kept) > 2 else ""
    return f"{' '.join(kept[:2])}{more}"


def described(error: BaseException) -> str:
    """A user's error in one line: its type and message, and the line of code that raised it."""
    if isinstance(error, DingError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    if isinstance(error, SystemExit):
        text = f"it called sys.exit({'' if error.code is None else repr(error.code)})"
    elif isinstance(error, ValueError) and "to unpack (expected 5" in text and frames:
        # A wrapper of gymnasium takes apart what the user's environment returned.
        if "/gymnasium/" in frames[-1].filename:
            text += "; return (obs, reward, terminated, truncated, info)"
    elif isinstance(error, NotImplementedError) and not str(error) and frames:
        return f"its class does not define {frames[-1].name}()"
    own = [
        frame
        for frame in frames
        if not frame.filename.startswith((_PACKAGE, "<")) and "/gymnasium/" not in frame.filename
    ]
    return f"{text} ({own[-1].filename}:{own[-1].lineno})" if own else text
