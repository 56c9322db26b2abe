"""JSON that says everything once and in finite numbers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.files import strict_json_loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_other_values_are_read_as_json_reads_them(value: object) -> None:
    assert strict_json_loads(json.dumps(value)) == value
    assert strict_json_loads(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "b": 2, "a": 1}', r"^expected each key of an object once, got 'a' twice; keep one entry$"),
        ('[{"x": {"q0": 1, "q\\u0030": 2}}]', r"^expected each key of an object once, got 'q0' twice; keep one entry$"),
        ('{"a": NaN}', r"^expected finite numbers, got NaN; write null or a text instead$"),
        ("[-Infinity]", r"^expected finite numbers, got -Infinity; write"),
        ("[1e999]", r"^expected finite numbers, got 1e999; write"),
        ("1" * 5_000, r"^expected numbers that Python can read, got a number with 5,000 digits; round it$"),
        ("[" * 100_000, r"^expected JSON with fewer nested levels, got too many; reduce the nesting$"),
        ("{'a': 1}", r"^expected JSON, got something else \("),
        (b"\xff\xff", r"^expected JSON in UTF-8, got other bytes; convert the text to UTF-8$"),
    ],
)
def test_other_texts_are_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        strict_json_loads(text)


def test_objects_with_many_keys_are_checked_in_one_pass() -> None:
    text = json.dumps({str(key): 0 for key in range(100_000)})[:-1] + ', "99999": 1}'
    with pytest.raises(ValueError, match="got '99999' twice"):
        strict_json_loads(text)
