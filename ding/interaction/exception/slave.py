"""Error codes of a slave's answers, and their exceptions."""

from enum import IntEnum, unique

from requests.exceptions import HTTPError

from .base import ResponseException, error_code


@unique
class SlaveErrorCode(IntEnum):
    SUCCESS = 0
    SYSTEM_SHUTTING_DOWN = 101
    CHANNEL_NOT_FOUND = 201
    CHANNEL_INVALID = 202
    MASTER_TOKEN_NOT_FOUND = 301
    MASTER_TOKEN_INVALID = 302
    SELF_TOKEN_NOT_FOUND = 401
    SELF_TOKEN_INVALID = 402
    SLAVE_ALREADY_CONNECTED = 501
    SLAVE_NOT_CONNECTED = 502
    SLAVE_CONNECTION_REFUSED = 503
    SLAVE_DISCONNECTION_REFUSED = 504
    TASK_ALREADY_EXIST = 601
    TASK_REFUSED = 602


class SlaveResponseException(ResponseException):
    """An error answer of a slave."""


class SlaveSuccess(SlaveResponseException):
    """The code says success, the HTTP status failure."""


class SlaveSystemShuttingDown(SlaveResponseException):
    """It ends."""


class SlaveChannelNotFound(SlaveResponseException):
    """The header ``Channel`` is missing."""


class SlaveChannelInvalid(SlaveResponseException):
    """The channel is another."""


class SlaveMasterTokenNotFound(SlaveResponseException):
    """The master's token or the run key is missing."""


class SlaveMasterTokenInvalid(SlaveResponseException):
    """The master's token or the run key is wrong."""


class SlaveSelfTokenNotFound(SlaveResponseException):
    """Its own token is missing."""


class SlaveSelfTokenInvalid(SlaveResponseException):
    """Its own token is wrong."""


class SlaveSlaveAlreadyConnected(SlaveResponseException):
    """It works for a master."""


class SlaveSlaveNotConnected(SlaveResponseException):
    """It works for no master."""


class SlaveSlaveConnectionRefused(SlaveResponseException):
    """It does not want this master."""


class SlaveSlaveDisconnectionRefused(SlaveResponseException):
    """It wants to stay connected."""


class SlaveTaskAlreadyExist(SlaveResponseException):
    """It works on another task."""


class SlaveTaskRefused(SlaveResponseException):
    """It does not take this task."""


_CLASSES: dict[SlaveErrorCode, type[SlaveResponseException]] = {
    SlaveErrorCode.SUCCESS: SlaveSuccess,
    SlaveErrorCode.SYSTEM_SHUTTING_DOWN: SlaveSystemShuttingDown,
    SlaveErrorCode.CHANNEL_NOT_FOUND: SlaveChannelNotFound,
    SlaveErrorCode.CHANNEL_INVALID: SlaveChannelInvalid,
    SlaveErrorCode.MASTER_TOKEN_NOT_FOUND: SlaveMasterTokenNotFound,
    SlaveErrorCode.MASTER_TOKEN_INVALID: SlaveMasterTokenInvalid,
    SlaveErrorCode.SELF_TOKEN_NOT_FOUND: SlaveSelfTokenNotFound,
    SlaveErrorCode.SELF_TOKEN_INVALID: SlaveSelfTokenInvalid,
    SlaveErrorCode.SLAVE_ALREADY_CONNECTED: SlaveSlaveAlreadyConnected,
    SlaveErrorCode.SLAVE_NOT_CONNECTED: SlaveSlaveNotConnected,
    SlaveErrorCode.SLAVE_CONNECTION_REFUSED: SlaveSlaveConnectionRefused,
    SlaveErrorCode.SLAVE_DISCONNECTION_REFUSED: SlaveSlaveDisconnectionRefused,
    SlaveErrorCode.TASK_ALREADY_EXIST: SlaveTaskAlreadyExist,
    SlaveErrorCode.TASK_REFUSED: SlaveTaskRefused,
}


def get_slave_exception_class_by_error_code(
    error_code: SlaveErrorCode,
) -> type[SlaveResponseException]:
    """The class of a code; `SlaveResponseException` for codes that a slave does not have."""
    return _CLASSES.get(error_code, SlaveResponseException)


def get_slave_exception_by_error(error: HTTPError) -> SlaveResponseException:
    """The exception that says what a slave's error answer means."""
    return get_slave_exception_class_by_error_code(error_code(error))(error)  # type: ignore[arg-type]
