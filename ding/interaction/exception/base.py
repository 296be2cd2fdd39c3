"""What every error answer of a peer is raised as."""

from collections.abc import Mapping
from typing import Any

from requests.exceptions import HTTPError

from ding.interaction.base.app import CommonErrorCode, get_values_from_response


class ResponseException(Exception):
    """A peer's answer says that a request failed.

    An answer that is not of the usual shape (from a proxy in between, say) has the code
    `CommonErrorCode.COMMON_FAILURE` and its HTTP status as message.
    """

    def __init__(self, error: HTTPError) -> None:
        self._error = error
        response = error.response
        try:
            values = get_values_from_response(response)
        except ValueError:
            status = response.status_code
            values = (status, False, CommonErrorCode.COMMON_FAILURE, f"HTTP status {status}", {})
        self._status_code, self._success, self._code, self._message, self._data = values
        super().__init__(f"{self._message} (code {self._code}, HTTP status {self._status_code})")

    @property
    def status_code(self) -> int:
        """HTTP status."""
        return self._status_code

    @property
    def success(self) -> bool:
        return self._success

    @property
    def code(self) -> int:
        """Error code in the body."""
        return self._code  # type: ignore[return-value]

    @property
    def message(self) -> str:
        return self._message or ""

    @property
    def data(self) -> Mapping[str, Any]:
        return self._data or {}


def error_code(error: HTTPError) -> int | None:
    """The error code in the body of an answer, if it has one."""
    try:
        code = get_values_from_response(error.response)[2]
    except ValueError:
        return None
    return code if isinstance(code, int) else None
