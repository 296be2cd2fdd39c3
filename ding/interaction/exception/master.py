"""Error codes of a master's answers, and their exceptions."""

from enum import IntEnum, unique

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


class MasterSuccess(MasterResponseException):
    """The code says success, the HTTP status failure."""


class MasterSystemShuttingDown(MasterResponseException):
    """It ends."""


class MasterChannelNotGiven(MasterResponseException):
    """The header ``Channel`` is missing."""


class MasterChannelInvalid(MasterResponseException):
    """The channel is another."""


class MasterMasterTokenNotGiven(MasterResponseException):
    """The master's token is missing."""


class MasterMasterTokenInvalid(MasterResponseException):
    """The master's token or the run key is wrong."""


class MasterSelfTokenNotGiven(MasterResponseException):
    """Its own token is missing."""


class MasterSelfTokenInvalid(MasterResponseException):
    """Its own token is wrong."""


class MasterSlaveTokenNotGiven(MasterResponseException):
    """The slave's token or the run key is missing."""


class MasterSlaveTokenInvalid(MasterResponseException):
    """The slave's token or the run key is wrong."""


class MasterTaskDataInvalid(MasterResponseException):
    """The answer is malformed, or nobody waits for it."""


_CLASSES: dict[MasterErrorCode, type[MasterResponseException]] = {
    MasterErrorCode.SUCCESS: MasterSuccess,
    MasterErrorCode.SYSTEM_SHUTTING_DOWN: MasterSystemShuttingDown,
    MasterErrorCode.CHANNEL_NOT_GIVEN: MasterChannelNotGiven,
    MasterErrorCode.CHANNEL_INVALID: MasterChannelInvalid,
    MasterErrorCode.MASTER_TOKEN_NOT_GIVEN: MasterMasterTokenNotGiven,
    MasterErrorCode.MASTER_TOKEN_INVALID: MasterMasterTokenInvalid,
    MasterErrorCode.SELF_TOKEN_NOT_GIVEN: MasterSelfTokenNotGiven,
    MasterErrorCode.SELF_TOKEN_INVALID: MasterSelfTokenInvalid,
    MasterErrorCode.SLAVE_TOKEN_NOT_GIVEN: MasterSlaveTokenNotGiven,
    MasterErrorCode.SLAVE_TOKEN_INVALID: MasterSlaveTokenInvalid,
    MasterErrorCode.TASK_DATA_INVALID: MasterTaskDataInvalid,
}


def get_master_exception_class_by_error_code(
    error_code: MasterErrorCode,
) -> type[MasterResponseException]:
    """The class of a code; `MasterResponseException` for codes that a master does not have."""
    return _CLASSES.get(error_code, MasterResponseException)


def get_master_exception_by_error(error: HTTPError) -> MasterResponseException:
    """The exception that says what a master's error answer means."""
    return get_master_exception_class_by_error_code(error_code(error))(error)  # type: ignore[arg-type]
