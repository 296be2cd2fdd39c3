"""The bodies that masters and slaves exchange: one place that writes them and one that reads them.

::

    POST /connect               {"master": {"address": "host:port"}}
    POST /task/new              {"task": {"id": "<uuid>", "data": {...}}}
    PUT  /slave/task/complete   {"task": {"id": "<uuid>", "result": ...}}
    PUT  /slave/task/fail       {"task": {"id": "<uuid>", "result": ..., "message": "..."}}

Fields of a task are also accepted beside ``task`` instead of in it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from .network import split_http_address


class BadMessageError(ValueError):
    """A body is not what its sender should have sent."""


@dataclass(frozen=True)
class ConnectMessage:
    """A master asks a slave to work for it.

    Attributes:
        address: Where the master gets answers.
        raw: The whole body.
    """

    address: str
    raw: Mapping[str, Any]

    @staticmethod
    def body(address: str) -> dict[str, Any]:
        return {"master": {"address": address}}

    @classmethod
    def parse(cls, content: bytes) -> "ConnectMessage":
        body = _json_object(content)
        address = _field(_inner(body, "master"), "address", str)
        try:
            split_http_address(address)
        except ValueError as err:
            raise BadMessageError(f"field 'address': {err}") from err
        return cls(address, body)


@dataclass(frozen=True)
class TaskMessage:
    """A master gives a task."""

    id: UUID
    data: Mapping[str, Any]

    @staticmethod
    def body(task_id: UUID, data: Mapping[str, Any]) -> dict[str, Any]:
        return {"task": {"id": str(task_id), "data": data}}

    @classmethod
    def parse(cls, content: bytes) -> "TaskMessage":
        fields = _inner(_json_object(content), "task")
        return cls(_task_id(fields), _field(fields, "data", dict, {}))


@dataclass(frozen=True)
class AnswerMessage:
    """A slave tells how its task ended.

    Attributes:
        result: Any JSON.
        message: Why it failed.
    """

    id: UUID
    result: Any
    message: str | None = None

    def body(self) -> dict[str, Any]:
        task = {"id": str(self.id), "result": self.result}
        return {"task": task if self.message is None else {**task, "message": self.message}}

    @classmethod
    def parse(cls, content: bytes) -> "AnswerMessage":
        fields = _inner(_json_object(content), "task")
        return cls(_task_id(fields), fields.get("result"), _field(fields, "message", str, None))


_REQUIRED = object()


def _json_object(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as err:
        raise BadMessageError(f"the body is not JSON: {err}") from err
    if not isinstance(body, dict):
        raise BadMessageError(f"the body is JSON of type {type(body).__name__}, expected an object")
    return body


def _inner(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {**body, **_field(body, name, dict, {})}


def _field(fields: Mapping[str, Any], name: str, kind: type, default: Any = _REQUIRED) -> Any:
    value = fields.get(name)
    if value is None and default is not _REQUIRED:
        return default
    if not isinstance(value, kind):
        raise BadMessageError(
            f"field {name!r} is {'missing' if value is None else type(value).__name__}, "
            f"expected {kind.__name__}"
        )
    return value


def _task_id(fields: Mapping[str, Any]) -> UUID:
    text = _field(fields, "id", str)
    try:
        return UUID(text)
    except ValueError:
        raise BadMessageError(f"field 'id' is {text[:80]!r}, expected a UUID") from None
