"""Base class of the exceptions that are raised for error answers of peers."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar, TypeVar

from requests.exceptions import HTTPError

from ding.interaction.base.app import CommonErrorCode, get_values_from_response

_Base = TypeVar("_Base", bound="ResponseException")


class ResponseException(Exception):
    """An error answer of a peer, with its HTTP status and the fields of its body.

    For an answer of another format (such as one of a proxy), the code is
    `CommonErrorCode.COMMON_FAILURE` and the message is the HTTP status.
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
        """The exception class of a code; this class for unknown codes."""
        return cls.by_code.get(error_code, cls)  # type: ignore[arg-type]

    @classmethod
    def of_error(cls: type[_Base], error: HTTPError) -> _Base:
        """The exception for a peer's error answer."""
        try:
            code = get_values_from_response(error.response)[2]
        except ValueError:
            code = None
        return cls.of_code(code if isinstance(code, int) else None)(error)


def exception_of(base: type[_Base], code: IntEnum) -> type[_Base]:
    """Create the exception class of a code and add it to ``base.by_code``."""
    name = base.__name__.removesuffix("ResponseException") + code.name.title().replace("_", "")
    meaning = f"The answer has the code {code.name} ({code.value})."
    made = type(name, (base,), {"__doc__": meaning, "__module__": base.__module__})
    base.by_code[code] = made
    return made
