"""The public exceptions.

::

    DingError
    |-- ConfigError (ValueError)          an invalid config; the message contains the key
    |-- UnknownTypeError (KeyError)       a name that is not registered
    |-- DuplicateTypeError (AssertionError)   a name that is already registered
    |-- MissingNameError (ImportError)    a part of the API that this version does not have
    |   `-- MissingModuleError (ModuleNotFoundError)   a module in a config cannot be imported
    |-- DataError (ValueError)            NaN, wrong length, wrong shape in training data
    |   `-- ChunkError                    a data file that cannot be read; has `data_id`
    |-- InteractionError (RuntimeError)   a master or slave cannot fulfil a request
    |   |-- PortTakenError (OSError)      another program listens on the port
    |   |-- NameTakenError (KeyError)     another connection has the name
    |   |-- NotAuthenticError, AnswerTooLargeError (of `requests`)    an untrustworthy peer
    |   `-- NotJsonError (TypeError)      a message that JSON cannot represent
    |-- CheckpointError (RuntimeError)    a file that cannot be read or written
    |   |-- CheckpointNotFoundError (FileNotFoundError)
    |   `-- CheckpointWriteError (OSError)    disk full, no permission; has `errno`
    |-- CallbackError (RuntimeError)      a callback of a run raised
    |-- RunError (RuntimeError)           a run of several processes failed
    `-- EnvError (RuntimeError)           an environment failed; has `env_id`
        |-- EnvTimeoutError (TimeoutError)
        |-- EnvDiedError                  the environment's process has ended
        |-- EnvDataError (DataError)      the environment returned NaN
        `-- ActionError (ValueError)      an action outside the action space
"""

import os
import traceback
from collections.abc import Collection, Iterable, Mapping

from ding import _alone as _alone  # DI-engine may have overwritten ding/__init__.py, which has it

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class DingError(Exception):
    """Base class of all errors that this package raises on purpose.

    Attributes:
        printed: Whether a run has printed the message, so that a command does not print it again.
    """

    printed = False

    def __str__(self) -> str:
        # `KeyError` returns the repr of the message, with quotes and escaped line breaks.
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()


class ConfigError(DingError, ValueError):
    """An invalid config. The message contains the full path of the key."""


class UnknownTypeError(DingError, KeyError):
    """A name that is not registered."""


class DuplicateTypeError(DingError, AssertionError):
    """A name that is already registered for another object."""


class MissingNameError(DingError, ImportError):
    """Code uses a part of the API that this version does not have."""


class MissingModuleError(MissingNameError, ModuleNotFoundError):
    """A module that a config lists cannot be imported."""


class DataError(DingError, ValueError):
    """Invalid training data: NaN, wrong length, wrong shape."""


class ChunkError(DataError):
    """A file of training data that cannot be read.

    Attributes:
        data_id: The file's name in the shared folder.
        cause: Description of the fault, one line.
    """

    def __init__(self, data_id: str, cause: str) -> None:
        super().__init__(data_id, cause)
        self.data_id, self.cause = data_id, cause

    def __str__(self) -> str:
        return f"chunk {self.data_id}: {self.cause}"


class CheckpointError(DingError, RuntimeError):
    """A checkpoint or data file that cannot be read or written."""


def require_entries(whose: str, state: object, names: Iterable[str]) -> None:
    """Check that a state has all entries, before any of it is loaded.

    Raises:
        CheckpointError: The state is not a mapping, or lacks one of ``names``.
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
    """The file does not exist."""


class CheckpointWriteError(CheckpointError, OSError):
    """A file cannot be written; a previous file at this path is unchanged.

    Attributes:
        errno: The operating system's error number (``errno.ENOSPC``, ``errno.EACCES``, ...).
    """

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno


class CallbackError(DingError, RuntimeError):
    """A callback of a run raised; its error is the cause."""


class RunError(DingError, RuntimeError):
    """A run of several processes failed; the message is its reason."""

    def __init__(self, message: str, printed: bool = False) -> None:
        super().__init__(message)
        self.printed = printed


class EnvError(DingError, RuntimeError):
    """An environment failed.

    Attributes:
        env_id: Index of the environment in its manager, ``None`` without a manager.
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
    """An environment returned an invalid reward or observation."""


class InteractionError(DingError, RuntimeError):
    """A master or slave cannot fulfil a request."""


class PortTakenError(InteractionError, OSError):
    """Another program listens on the port."""


class NameTakenError(InteractionError, KeyError):
    """Another connection of the master has the name."""


class NotJsonError(InteractionError, TypeError):
    """A message between master and slave that JSON cannot represent."""


def check_one_of(name: str, value: object, known: Collection[object]) -> None:
    """Check that a setting is one of the known values.

    Raises:
        ConfigError: The value is not known.
    """
    if value not in known:
        raise ConfigError(f"{name} is {value!r}; expected one of {[*known]}")


def mismatch(error: BaseException) -> str:
    """Torch's error about a state that does not fit, which has many lines, as one line."""
    differences = [" ".join(line.split()).rstrip(". ") for line in str(error).splitlines()]
    kept = [line if len(line) < 200 else f"{line[:200]} ..." for line in differences if line]
    more = f" (and {len(kept) - 2} more differences)" if len(kept) > 2 else ""
    return f"{' '.join(kept[:2])}{more}"


def described(error: BaseException) -> str:
    """An error of user code in one line: type, message, and the line of code that raised it."""
    if isinstance(error, DingError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    if isinstance(error, SystemExit):
        text = f"it called sys.exit({'' if error.code is None else repr(error.code)})"
    elif isinstance(error, ValueError) and "to unpack (expected 5" in text and frames:
        # A wrapper of gymnasium unpacks the tuple that the user's environment returned.
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
