"""JSON of unknown origin, and values that JSON lacks."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ding.utils import strict_json

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    "content",
    [
        *(b"NaN", b"[Infinity]", b'{"a": -Infinity}', b"1e999", b"1" + b"0" * 400, b"9" * 5000),
        *(
            b"[" * 33 + b"]" * 33,
            b"[" * 100_000,
            b'"\\ud800"',
            b'{"\\udfff": 1}',
            b'"\xed\xa0\x80"',
        ),
        *(b"", b"{", b"\xff\xfe1\x00", b"{'a': 1}"),
    ],
)
def test_what_is_not_json_is_refused(content):
    with pytest.raises(ValueError):
        strict_json.loads(content)


@given(ANY)
def test_all_that_is_written_is_json_and_all_that_is_read_can_be_written(value):
    text = strict_json.dumps(value)
    json.loads(text, parse_constant=lambda constant: pytest.fail(constant))
    try:
        found = strict_json.loads(json.dumps(value))
    except ValueError:
        return
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    json.dumps(found, ensure_ascii=False).encode()


def test_values_that_json_lacks_become_null_or_text():
    value = {"a": math.nan, 1: [np.float32(2), np.arange(2)], "b": (math.inf, {3})}
    assert json.loads(strict_json.dumps(value)) == {
        "a": None,
        "1": [2.0, [0, 1]],
        "b": [None, "{3}"],
    }
