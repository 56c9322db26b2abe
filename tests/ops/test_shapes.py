"""Shapes that fit by broadcasting, and texts that take one line."""

import re
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.ops.shapes import check_broadcast
from lengthwise.validation import truncate

SHAPES = ((), (1,), (2,), (3,), (2, 3), (1, 3), (2, 1), (4, 2, 3), (0,), (1, 0), (2, 0), (5, 1, 1))


@pytest.mark.parametrize(("first", "second"), list(product(SHAPES, SHAPES)))
def test_shapes_fit_as_torch_broadcasts_them(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    try:
        torch.broadcast_shapes(first, second)
    except RuntimeError:
        with pytest.raises(ValueError, match=r"^x: expected a shape that fits .*, the shape of y, got .*; make"):
            check_broadcast("x", torch.zeros(first), "y", torch.zeros(second))
    else:
        check_broadcast("x", torch.zeros(first), "y", torch.zeros(second))


@given(st.text(alphabet="ab \n\r\t", max_size=30))
def test_line_breaks_and_the_blanks_around_them_become_one_blank(text: str) -> None:
    assert truncate(text) == re.sub(r"\s*\n\s*", " ", text)


def test_a_long_row_of_blanks_is_truncated_at_once() -> None:
    """The regular expression of the test above would take minutes for it."""
    assert truncate(" " * 1_000_000 + "\n") == " "
    assert truncate(" " * 1_000_000) == " " * 117 + "..."
