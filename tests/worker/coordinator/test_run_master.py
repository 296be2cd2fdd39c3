import json

import pytest

from ding.interaction.base.messages import BadMessageError
from ding.worker.coordinator.run_master import JoinMessage

GOOD = {"kind": "collector", "name": "collector0", "host": "127.0.0.1", "port": 8000, "pid": 7}


def _parsed(**changes):
    return JoinMessage.parse(json.dumps({"worker": {**GOOD, **changes}}).encode())


def test_a_worker_that_joins():
    assert _parsed() == JoinMessage(**GOOD)
    assert _parsed(name="a-b.c_9").name == "a-b.c_9"


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "coordinator"},
        *({"name": name} for name in ("", "../x", ".hidden", "a/b", "a b", "\n", "x" * 65, 7)),
        *({"host": host} for host in ("", "x" * 300, "\0", 7)),
        *({"port": port} for port in (0, -1, 65536, "8000", 1.5, True)),
        {"pid": "7"},
    ],
)
def test_a_damaged_message_is_refused_by_its_field(changes):
    with pytest.raises(BadMessageError, match=next(iter(changes))):
        _parsed(**changes)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"{}", b'{"worker": []}', b"[" * 5000])
def test_a_body_that_is_no_message_is_refused(body):
    with pytest.raises(BadMessageError):
        JoinMessage.parse(body)
