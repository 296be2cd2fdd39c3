"""The bodies of requests between masters and slaves: writes and parses them.

::

    POST   /connect               {"master": {"address": "http://host:port"}, "data": {}}
    DELETE /disconnect            {"data": {}}
    POST   /task/new              {"task": {"id": "<uuid>"}, "data": {...}}
    PUT    /slave/task/complete   {"task": {"id": "<uuid>"}, "result": ...}
    PUT    /slave/task/fail       {"task": {"id": "<uuid>"}, "result": ..., "message": "..."}

The parser also accepts addresses without ``http://``, and fields inside ``master`` or ``task``
instead of next to them. ``message`` and the ``data`` of the first two requests are optional.
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
    """Base of bodies; subclasses are dataclasses of the fields."""

    #: Name of the inner object, which may also contain the other fields.
    _inner: ClassVar[str] = ""

    @classmethod
    def parse(cls: type[_Read], content: bytes) -> _Read:
        """Parse a body.

        Raises:
            BadMessageError: The body is not a message of this type.
        """
        body = json_object(parsed_json(content or b"{}"))
        return from_json(cls, {**body, **json_object(body.get(cls._inner) or {})})


@dataclass(frozen=True)
class ConnectMessage(Message):
    """A master connects to a slave, which sends its answers to the master's address."""

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
    """A master sends a task to a slave."""

    _inner = "task"
    id: UUID
    data: Mapping[str, object] = field(default_factory=dict)

    def body(self) -> dict[str, object]:
        return {"task": {"id": str(self.id)}, "data": self.data}


@dataclass(frozen=True)
class AnswerMessage(Message):
    """A slave reports the end of a task: its result (JSON), and a message if it has failed."""

    _inner = "task"
    id: UUID
    result: object = None
    message: str | None = None

    def body(self) -> dict[str, object]:
        body = {"task": {"id": str(self.id)}, "result": self.result}
        return body if self.message is None else {**body, "message": self.message}
