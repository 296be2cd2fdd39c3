"""What every error answer of a peer is raised as."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar, TypeVar

from requests.exceptions import HTTPError

from ding.interaction.base.app import CommonErrorCode, get_values_from_response

_Base = TypeVar("_Base", bound="ResponseException")


class ResponseException(Exception):
    """A peer's answer says that a request failed: its HTTP status, and what its body says.

    An answer that is not of the usual shape (from a proxy in between, say) has the code
    `CommonErrorCode.COMMON_FAILURE` and its HTTP status as message.
    """

    by_code: ClassVar[dict[int, Any]]

    def __init__(self, error: HTTPError) -> None:
        response = error.response
        try:
            values = get_values_from_response(response)
        except ValueError:
            status = response.status_code
            values = (status, False, CommonErrorCode.COMMON_FAILURE, f"HTTP status {status}", {})
        self.status_code, self.success, self.code, message, data = values
        self.message: str = message or ""
        self.data: Mapping[str, Any] = data or {}
        super().__init__(f"{message} (code {self.code}, HTTP status {self.status_code})")

    @classmethod
    def of_code(cls: type[_Base], error_code: IntEnum | int | None) -> type[_Base]:
        """The class of a peer's code; this one for codes that the peer does not have."""
        return cls.by_code.get(error_code, cls)  # type: ignore[arg-type]

    @classmethod
    def of_error(cls: type[_Base], error: HTTPError) -> _Base:
        """The exception that says what a peer's error answer means."""
        try:
            code = get_values_from_response(error.response)[2]
        except ValueError:
            code = None
        return cls.of_code(code if isinstance(code, int) else None)(error)


def exception_of(base: type[_Base], code: IntEnum) -> type[_Base]:
    """The exception of a peer's code; it is named after both, and found by it."""
    name = base.__name__.removesuffix("ResponseException") + code.name.title().replace("_", "")
    meaning = f"The answer has the code {code.name} ({code.value})."
    made = type(name, (base,), {"__doc__": meaning, "__module__": base.__module__})
    base.by_code[code] = made
    return made
