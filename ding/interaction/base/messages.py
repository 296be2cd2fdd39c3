"""The bodies that masters and slaves exchange: one place that writes them and one that reads them.

::

    POST   /connect               {"master": {"address": "http://host:port"}, "data": {}}
    DELETE /disconnect            {"data": {}}
    POST   /task/new              {"task": {"id": "<uuid>"}, "data": {...}}
    PUT    /slave/task/complete   {"task": {"id": "<uuid>"}, "result": ...}
    PUT    /slave/task/fail       {"task": {"id": "<uuid>"}, "result": ..., "message": "..."}

Read are also addresses without ``http://``, and fields that are in ``master`` or ``task`` instead
of next to it. ``message`` and the data of connecting and disconnecting may be missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, TypeVar
from uuid import UUID

from ding.utils.json_fields import Rule, from_json, json_object, parsed_json

from .network import split_http_address, with_scheme

_Read = TypeVar("_Read", bound="Message")


def _is_address(text: str) -> bool:
    try:
        return bool(split_http_address(text))
    except ValueError:
        return False


class Message:
    """A body; subclasses are dataclasses of its fields."""

    #: The object next to which further fields may be.
    _inner: ClassVar[str] = ""

    @classmethod
    def parse(cls: type[_Read], content: bytes) -> _Read:
        """Read a body.

        Raises:
            BadMessageError: The body is not a message of this kind.
        """
        body = json_object(parsed_json(content or b"{}"))
        return from_json(cls, {**body, **json_object(body.get(cls._inner) or {})})


@dataclass(frozen=True)
class ConnectMessage(Message):
    """A master asks a slave to work for it, and to send its answers to an address."""

    _inner = "master"
    address: Annotated[str, Rule(_is_address, "[http[s]://]host[:port][/path]")]
    data: Mapping[str, object] = field(default_factory=dict)

    def body(self) -> dict[str, object]:
        return {"master": {"address": with_scheme(self.address)}, "data": self.data}


@dataclass(frozen=True)
class DisconnectMessage(Message):
    """A master disconnects; the body may be empty."""

    data: Mapping[str, object] = field(default_factory=dict)

    def body(self) -> dict[str, object]:
        return {"data": self.data}


@dataclass(frozen=True)
class TaskMessage(Message):
    """A master gives a task."""

    _inner = "task"
    id: UUID
    data: Mapping[str, object] = field(default_factory=dict)

    def body(self) -> dict[str, object]:
        return {"task": {"id": str(self.id)}, "data": self.data}


@dataclass(frozen=True)
class AnswerMessage(Message):
    """How a slave's task ended: its result (JSON), and a message if it has failed."""

    _inner = "task"
    id: UUID
    result: object = None
    message: str | None = None

    def body(self) -> dict[str, object]:
        body = {"task": {"id": str(self.id)}, "result": self.result}
        return body if self.message is None else {**body, "message": self.message}
