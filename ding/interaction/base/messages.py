"""The bodies that masters and slaves exchange: one place that writes them and one that reads them.

::

    POST   /connect               {"master": {"address": "http://host:port"}, "data": {}}
    DELETE /disconnect            {"data": {}}
    POST   /task/new              {"task": {"id": "<uuid>"}, "data": {...}}
    PUT    /slave/task/complete   {"task": {"id": "<uuid>"}, "result": ...}
    PUT    /slave/task/fail       {"task": {"id": "<uuid>"}, "result": ..., "message": "..."}

Read are also addresses without ``http://``, and fields that stand in ``master`` or ``task`` instead
of beside it. ``message`` and the data of connecting and disconnecting may be missing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from .network import split_http_address, with_scheme


class BadMessageError(ValueError):
    """A body is not what its sender should have sent."""


@dataclass(frozen=True)
class ConnectMessage:
    """A master asks a slave to work for it.

    Attributes:
        address: Where the master gets answers.
        data: What the master tells of itself.
    """

    address: str
    data: Mapping[str, Any]

    @staticmethod
    def body(address: str) -> dict[str, Any]:
        return {"master": {"address": with_scheme(address)}, "data": {}}

    @classmethod
    def parse(cls, content: bytes) -> "ConnectMessage":
        fields = _inner(_json_object(content), "master")
        address = _field(fields, "address", str)
        try:
            split_http_address(address)
        except ValueError as err:
            raise BadMessageError(f"field 'address': {err}") from err
        return cls(address, _field(fields, "data", dict, {}))


@dataclass(frozen=True)
class DisconnectMessage:
    """A master lets a slave go; the body may be empty."""

    data: Mapping[str, Any]

    @staticmethod
    def body() -> dict[str, Any]:
        return {"data": {}}

    @classmethod
    def parse(cls, content: bytes) -> "DisconnectMessage":
        body = _json_object(content) if content else {}
        return cls(_field(body, "data", dict, {}))


@dataclass(frozen=True)
class TaskMessage:
    """A master gives a task."""

    id: UUID
    data: Mapping[str, Any]

    @staticmethod
    def body(task_id: UUID, data: Mapping[str, Any]) -> dict[str, Any]:
        return {"task": {"id": str(task_id)}, "data": data}

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
        body = {"task": {"id": str(self.id)}, "result": self.result}
        return body if self.message is None else {**body, "message": self.message}

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
