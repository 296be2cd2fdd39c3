"""Dataclasses to JSON and back, and what is no JSON of theirs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID, uuid4

import pytest

from ding.utils.json_fields import (
    OTHERS,
    WHOLE,
    BadMessageError,
    Count,
    Seconds,
    called,
    from_json,
    parsed_json,
    to_json,
)


@dataclass(frozen=True)
class Part:
    name: str = field(metadata=called("id"))
    facts: Mapping[str, Any] = field(default_factory=dict, metadata=WHOLE)


@dataclass(frozen=True)
class Message:
    kind: Literal["a", "b"]
    ratio: float
    source: str | None
    count: Count = 3
    wait: Seconds | None = None
    is_last: bool = False
    parts: tuple[Part, ...] = ()
    pair: tuple[str, int] = ("x", 1)
    others: Mapping[str, Any] = field(default_factory=dict, metadata=OTHERS)


FULL = Message(
    *("a", 0.5, "here", 7, 1.5, True),
    (Part("p", {"id": "p", "rows": [1, 2]}),),
    ("y", 2),
    {"node": "n"},
)


def test_what_is_written_is_read_again():
    body = json.loads(json.dumps(to_json(FULL)))
    assert body["node"] == "n"
    assert body["parts"] == [{"id": "p", "rows": [1, 2]}]
    assert from_json(Message, body) == FULL


def test_what_is_missing_has_its_default():
    assert from_json(Message, {"kind": "b", "ratio": 1}) == Message("b", 1, None)
    assert from_json(Message, {"kind": "b", "ratio": 1, "count": None}).count == 3


@dataclass(frozen=True)
class Named:
    id: UUID


def test_ids_are_read_from_text():
    some = uuid4()
    assert from_json(Named, {"id": str(some)}).id == some


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "c"}, "'kind': .*a or b"),
        ({"kind": None}, "'kind' is missing"),
        ({"ratio": "1"}, "'ratio': str '1', expected a number"),
        ({"ratio": True}, "'ratio': bool"),
        ({"ratio": float("nan")}, "'ratio': float"),
        ({"ratio": float("inf")}, "'ratio': float"),
        ({"source": 3}, "'source': int '3', expected text"),
        ({"count": -1}, "'count': .*0 or more"),
        ({"count": 1.5}, "'count': .*whole number"),
        ({"wait": -0.1}, "'wait': .*0 or more seconds"),
        ({"parts": {}}, "'parts': .*a list"),
        ({"parts": [{}]}, "'parts': 'id' is missing"),
        ({"parts": [3]}, "'parts': .*an object"),
        ({"pair": ["y"]}, "'pair': .*a list of 2"),
        ({"pair": "ab"}, "'pair': .*a list of 2"),
    ],
)
def test_an_error_names_the_field(changes, message):
    with pytest.raises(BadMessageError, match=message):
        from_json(Message, {**to_json(FULL), **changes})


@pytest.mark.parametrize("body", [None, 3, "text", [], [{}]])
def test_what_is_no_object_is_no_message(body):
    with pytest.raises(BadMessageError, match="expected an object"):
        from_json(Message, body)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b"9" * 5000])
def test_invalid_json_is_reported(content):
    with pytest.raises(BadMessageError, match="not JSON"):
        parsed_json(content)
    with pytest.raises(BadMessageError):
        from_json(Named, {"id": content.decode("latin-1")})


def test_numbers_may_be_huge():
    assert from_json(Message, {"kind": "a", "ratio": 10**400}).ratio == 10**400
