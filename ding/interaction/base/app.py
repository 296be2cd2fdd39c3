"""The format of all answers, ``{success, code, message, data}``, and errors that become answers."""

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum, unique
from functools import wraps
from typing import Any

import flask
import requests

from ding.utils import strict_json
from ding.utils.json_fields import parsed_json

_RESPONSE_VALUE_TYPE = tuple[int, bool, int | None, str | None, Any]


@unique
class CommonErrorCode(IntEnum):
    SUCCESS = 0
    COMMON_FAILURE = 1


def flask_response(
    success: bool,
    data: Mapping[str, object] | None = None,
    message: str | None = None,
    code: int | None = None,
) -> flask.Response:
    """Create an answer; by default, `code` is 0 for success and 1 for failure.

    Needs no application context. The HTTP status is 200; for another one, return ``(response,
    status)`` from a view or set ``response.status_code``.
    """
    if code is None:
        code = CommonErrorCode.SUCCESS if success else CommonErrorCode.COMMON_FAILURE
    body = {"success": success, "code": int(code), "message": message or "", "data": data}
    return flask.Response(strict_json.dumps(body), mimetype="application/json")


def success_response(
    data: Mapping[str, object] | None = None, message: str | None = None
) -> flask.Response:
    return flask_response(True, data, message)


def failure_response(
    code: int | None = None,
    message: str | None = None,
    data: Mapping[str, object] | None = None,
) -> flask.Response:
    return flask_response(False, data, message, code)


def get_values_from_response(
    response: requests.Response | flask.Response,
) -> _RESPONSE_VALUE_TYPE:
    """``(HTTP status, success, code, message, data)`` of an answer.

    Raises:
        ValueError: The body is not a JSON object.
    """
    raw = response.content if isinstance(response, requests.Response) else response.get_data()
    body = parsed_json(raw)
    if not isinstance(body, dict):
        raise ValueError(f"the answer is JSON of type {type(body).__name__}, expected an object")
    return (
        response.status_code,
        bool(body.get("success", False)),
        body.get("code"),
        body.get("message"),
        body.get("data"),
    )


class ResponsibleException(Exception):
    """An error that a view raises to answer with these fields and this HTTP status."""

    def __init__(
        self,
        code: int = CommonErrorCode.COMMON_FAILURE,
        message: str | None = None,
        data: Mapping[str, object] | None = None,
        status_code: int = 400,
    ) -> None:
        super().__init__(message or "")
        self.code, self.message, self.data, self.status_code = code, message, data, status_code

    def get_response(self) -> flask.Response:
        response = failure_response(self.code, self.message, self.data)
        response.status_code = self.status_code
        return response


def responsible(
    classes: Iterable[type[ResponsibleException]] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator for views: exceptions of these classes (by default all) become answers."""
    caught = (ResponsibleException,) if classes is None else tuple(classes)

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(view)
        def answering(*args: Any, **kwargs: Any) -> Any:
            try:
                return view(*args, **kwargs)
            except caught as err:
                return err.get_response()

        return answering

    return decorate
