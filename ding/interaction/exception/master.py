"""Error codes of a master's answers, and their exceptions."""

from enum import IntEnum, unique
from typing import ClassVar

from requests.exceptions import HTTPError

from .base import ResponseException, error_code


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


class MasterSuccess(MasterResponseException, code=MasterErrorCode.SUCCESS):
    """The code says success, the HTTP status failure."""


class MasterSystemShuttingDown(MasterResponseException, code=MasterErrorCode.SYSTEM_SHUTTING_DOWN):
    """It ends."""


class MasterChannelNotGiven(MasterResponseException, code=MasterErrorCode.CHANNEL_NOT_GIVEN):
    """The header ``Channel`` is missing."""


class MasterChannelInvalid(MasterResponseException, code=MasterErrorCode.CHANNEL_INVALID):
    """The channel is another."""


class MasterMasterTokenNotGiven(
    MasterResponseException, code=MasterErrorCode.MASTER_TOKEN_NOT_GIVEN
):
    """The master's token is missing."""


class MasterMasterTokenInvalid(MasterResponseException, code=MasterErrorCode.MASTER_TOKEN_INVALID):
    """The master's token or the run key is wrong."""


class MasterSelfTokenNotGiven(MasterResponseException, code=MasterErrorCode.SELF_TOKEN_NOT_GIVEN):
    """Its own token is missing."""


class MasterSelfTokenInvalid(MasterResponseException, code=MasterErrorCode.SELF_TOKEN_INVALID):
    """Its own token is wrong."""


class MasterSlaveTokenNotGiven(MasterResponseException, code=MasterErrorCode.SLAVE_TOKEN_NOT_GIVEN):
    """The slave's token or the run key is missing."""


class MasterSlaveTokenInvalid(MasterResponseException, code=MasterErrorCode.SLAVE_TOKEN_INVALID):
    """The slave's token or the run key is wrong."""


class MasterTaskDataInvalid(MasterResponseException, code=MasterErrorCode.TASK_DATA_INVALID):
    """The answer is malformed, or nobody waits for it."""


def get_master_exception_class_by_error_code(
    error_code: MasterErrorCode,
) -> type[MasterResponseException]:
    """The class of a code; `MasterResponseException` for codes that a master does not have."""
    return MasterResponseException.by_code.get(error_code, MasterResponseException)


def get_master_exception_by_error(error: HTTPError) -> MasterResponseException:
    """The exception that says what a master's error answer means."""
    return get_master_exception_class_by_error_code(error_code(error))(error)  # type: ignore[arg-type]
