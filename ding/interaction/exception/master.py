"""Error codes of a master's answers, and their exceptions."""

from enum import IntEnum, unique
from functools import partial
from typing import ClassVar

from .base import ResponseException, exception_of


@unique
class MasterErrorCode(IntEnum):
    SUCCESS = 0
    SYSTEM_SHUTTING_DOWN = 101
    CHANNEL_NOT_GIVEN = 201
    CHANNEL_INVALID = 202
    MASTER_TOKEN_NOT_GIVEN = 301
    MASTER_TOKEN_INVALID = 302
    SELF_TOKEN_NOT_GIVEN = 401
    SELF_TOKEN_INVALID = 402
    SLAVE_TOKEN_NOT_GIVEN = 501
    SLAVE_TOKEN_INVALID = 502
    TASK_DATA_INVALID = 601


class MasterResponseException(ResponseException):
    """An error answer of a master."""

    by_code: ClassVar[dict[int, type["MasterResponseException"]]] = {}


_Code = MasterErrorCode
_of = partial(exception_of, MasterResponseException)

MasterSuccess = _of(_Code.SUCCESS)
MasterSystemShuttingDown = _of(_Code.SYSTEM_SHUTTING_DOWN)
MasterChannelNotGiven = _of(_Code.CHANNEL_NOT_GIVEN)
MasterChannelInvalid = _of(_Code.CHANNEL_INVALID)
MasterMasterTokenNotGiven = _of(_Code.MASTER_TOKEN_NOT_GIVEN)
MasterMasterTokenInvalid = _of(_Code.MASTER_TOKEN_INVALID)
MasterSelfTokenNotGiven = _of(_Code.SELF_TOKEN_NOT_GIVEN)
MasterSelfTokenInvalid = _of(_Code.SELF_TOKEN_INVALID)
MasterSlaveTokenNotGiven = _of(_Code.SLAVE_TOKEN_NOT_GIVEN)
MasterSlaveTokenInvalid = _of(_Code.SLAVE_TOKEN_INVALID)
MasterTaskDataInvalid = _of(_Code.TASK_DATA_INVALID)

get_master_exception_class_by_error_code = MasterResponseException.of_code
get_master_exception_by_error = MasterResponseException.of_error
