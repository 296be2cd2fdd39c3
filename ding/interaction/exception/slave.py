"""Error codes of a slave's answers, and their exceptions."""

from enum import IntEnum, unique
from typing import ClassVar

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

    by_code: ClassVar[dict[int, type["SlaveResponseException"]]] = {}


class SlaveSuccess(SlaveResponseException, code=SlaveErrorCode.SUCCESS):
    """The code says success, the HTTP status failure."""


class SlaveSystemShuttingDown(SlaveResponseException, code=SlaveErrorCode.SYSTEM_SHUTTING_DOWN):
    """It ends."""


class SlaveChannelNotFound(SlaveResponseException, code=SlaveErrorCode.CHANNEL_NOT_FOUND):
    """The header ``Channel`` is missing."""


class SlaveChannelInvalid(SlaveResponseException, code=SlaveErrorCode.CHANNEL_INVALID):
    """The channel is another."""


class SlaveMasterTokenNotFound(SlaveResponseException, code=SlaveErrorCode.MASTER_TOKEN_NOT_FOUND):
    """The master's token or the run key is missing."""


class SlaveMasterTokenInvalid(SlaveResponseException, code=SlaveErrorCode.MASTER_TOKEN_INVALID):
    """The master's token or the run key is wrong."""


class SlaveSelfTokenNotFound(SlaveResponseException, code=SlaveErrorCode.SELF_TOKEN_NOT_FOUND):
    """Its own token is missing."""


class SlaveSelfTokenInvalid(SlaveResponseException, code=SlaveErrorCode.SELF_TOKEN_INVALID):
    """Its own token is wrong."""


class SlaveSlaveAlreadyConnected(
    SlaveResponseException, code=SlaveErrorCode.SLAVE_ALREADY_CONNECTED
):
    """It works for a master."""


class SlaveSlaveNotConnected(SlaveResponseException, code=SlaveErrorCode.SLAVE_NOT_CONNECTED):
    """It works for no master."""


class SlaveSlaveConnectionRefused(
    SlaveResponseException, code=SlaveErrorCode.SLAVE_CONNECTION_REFUSED
):
    """It does not want this master."""


class SlaveSlaveDisconnectionRefused(
    SlaveResponseException, code=SlaveErrorCode.SLAVE_DISCONNECTION_REFUSED
):
    """It wants to stay connected."""


class SlaveTaskAlreadyExist(SlaveResponseException, code=SlaveErrorCode.TASK_ALREADY_EXIST):
    """It works on another task."""


class SlaveTaskRefused(SlaveResponseException, code=SlaveErrorCode.TASK_REFUSED):
    """It does not take this task."""


def get_slave_exception_class_by_error_code(
    error_code: SlaveErrorCode,
) -> type[SlaveResponseException]:
    """The class of a code; `SlaveResponseException` for codes that a slave does not have."""
    return SlaveResponseException.by_code.get(error_code, SlaveResponseException)


def get_slave_exception_by_error(error: HTTPError) -> SlaveResponseException:
    """The exception that says what a slave's error answer means."""
    return get_slave_exception_class_by_error_code(error_code(error))(error)  # type: ignore[arg-type]
