"""Error codes of a slave's answers, and their exceptions."""

from enum import IntEnum, unique
from functools import partial
from typing import ClassVar

from .base import ResponseException, exception_of


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


_Code = SlaveErrorCode
_of = partial(exception_of, SlaveResponseException)

SlaveSuccess = _of(_Code.SUCCESS)
SlaveSystemShuttingDown = _of(_Code.SYSTEM_SHUTTING_DOWN)
SlaveChannelNotFound = _of(_Code.CHANNEL_NOT_FOUND)
SlaveChannelInvalid = _of(_Code.CHANNEL_INVALID)
SlaveMasterTokenNotFound = _of(_Code.MASTER_TOKEN_NOT_FOUND)
SlaveMasterTokenInvalid = _of(_Code.MASTER_TOKEN_INVALID)
SlaveSelfTokenNotFound = _of(_Code.SELF_TOKEN_NOT_FOUND)
SlaveSelfTokenInvalid = _of(_Code.SELF_TOKEN_INVALID)
SlaveSlaveAlreadyConnected = _of(_Code.SLAVE_ALREADY_CONNECTED)
SlaveSlaveNotConnected = _of(_Code.SLAVE_NOT_CONNECTED)
SlaveSlaveConnectionRefused = _of(_Code.SLAVE_CONNECTION_REFUSED)
SlaveSlaveDisconnectionRefused = _of(_Code.SLAVE_DISCONNECTION_REFUSED)
SlaveTaskAlreadyExist = _of(_Code.TASK_ALREADY_EXIST)
SlaveTaskRefused = _of(_Code.TASK_REFUSED)

get_slave_exception_class_by_error_code = SlaveResponseException.of_code
get_slave_exception_by_error = SlaveResponseException.of_error
