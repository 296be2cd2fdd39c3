"""Error codes of a master's answers, and their exceptions."""

from enum import IntEnum, unique
from typing import ClassVar

from requests.exceptions import HTTPError

from .base import ResponseException, error_code, exception_of


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


def _of(code: MasterErrorCode, meaning: str) -> type[MasterResponseException]:
    return exception_of(MasterResponseException, code, meaning)


MasterSuccess = _of(_Code.SUCCESS, "The code says success, the HTTP status failure.")
MasterSystemShuttingDown = _of(_Code.SYSTEM_SHUTTING_DOWN, "It ends.")
MasterChannelNotGiven = _of(_Code.CHANNEL_NOT_GIVEN, "The header ``Channel`` is missing.")
MasterChannelInvalid = _of(_Code.CHANNEL_INVALID, "The channel is another.")
MasterMasterTokenNotGiven = _of(_Code.MASTER_TOKEN_NOT_GIVEN, "The master's token is missing.")
MasterMasterTokenInvalid = _of(
    _Code.MASTER_TOKEN_INVALID, "The master's token or the run key is wrong."
)
MasterSelfTokenNotGiven = _of(_Code.SELF_TOKEN_NOT_GIVEN, "Its own token is missing.")
MasterSelfTokenInvalid = _of(_Code.SELF_TOKEN_INVALID, "Its own token is wrong.")
MasterSlaveTokenNotGiven = _of(
    _Code.SLAVE_TOKEN_NOT_GIVEN, "The slave's token or the run key is missing."
)
MasterSlaveTokenInvalid = _of(
    _Code.SLAVE_TOKEN_INVALID, "The slave's token or the run key is wrong."
)
MasterTaskDataInvalid = _of(
    _Code.TASK_DATA_INVALID, "The answer is malformed, or nobody waits for it."
)


def get_master_exception_class_by_error_code(
    error_code: MasterErrorCode,
) -> type[MasterResponseException]:
    """The class of a code; `MasterResponseException` for codes that a master does not have."""
    return MasterResponseException.by_code.get(error_code, MasterResponseException)


def get_master_exception_by_error(error: HTTPError) -> MasterResponseException:
    """The exception that says what a master's error answer means."""
    return get_master_exception_class_by_error_code(error_code(error))(error)  # type: ignore[arg-type]
