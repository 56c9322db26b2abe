"""Fields of tasks have bounds and choices, and a wrong value is named with them."""

import re

import pytest

from lengthwise.tasks import make_task

POSITIVE = "a number greater than or equal to 1"
SAMPLINGS = "'near-miss' or 'chi2023'"


@pytest.mark.parametrize(
    ("name", "field", "value", "expected"),
    [
        ("bounded-dyck", "depth", 0, POSITIVE),
        ("bounded-dyck", "sampling", "x", SAMPLINGS),
        ("cycle-navigation", "size", 0, POSITIVE),
        ("cycle-navigation", "size", 2.5, "a valid integer"),
        ("decision-tree", "active_dims", 0, POSITIVE),
        ("decision-tree", "depth", 0, POSITIVE),
        ("decision-tree", "depth", 13, "a number less than or equal to 12"),
        ("decision-tree", "dims", 0, POSITIVE),
        ("decision-tree", "max_points", -1, POSITIVE),
        ("edit-distance", "alphabet", 2, "a number greater than or equal to 3"),
        ("edit-distance", "alphabet", 27, "a number less than or equal to 26"),
        ("edit-distance", "border", "wrong", "'true' or 'published'"),
        ("equal-ends", "num_digits", 1, "a number greater than or equal to 2"),
        ("equal-ends", "num_digits", 11, "a number less than or equal to 10"),
        ("knapsack", "max_capacity", 0, POSITIVE),
        ("knapsack", "max_value", 0, POSITIVE),
        ("knapsack", "max_weight", -1, POSITIVE),
        ("longest-common-subsequence", "alphabet", 27, "a number less than or equal to 26"),
        ("longest-common-subsequence", "pool_size", 0, POSITIVE),
        ("modular-arithmetic", "modulus", 0, POSITIVE),
        ("modular-arithmetic", "modulus", 11, "a number less than or equal to 10"),
        ("parity", "p", 0, "a number greater than 0"),
        ("parity", "p", 1, "a number less than 1"),
        ("parity", "p", "often", "a valid number"),
        ("random-language", "num_states", 1, "a number greater than or equal to 2"),
        ("random-language", "num_symbols", 27, "a number less than or equal to 26"),
        ("random-language", "seed", -1, "a number greater than or equal to 0"),
        ("subset-sum", "max_length", 0, POSITIVE),
        ("subset-sum", "max_value", -5, POSITIVE),
        ("subset-sum", "sampling", "easy", "'published' or 'hard'"),
        ("sum", "modulus", 0, POSITIVE),
        ("sum", "modulus", 11, "a number less than or equal to 10"),
        ("tomita", "index", 0, POSITIVE),
        ("tomita", "index", 8, "a number less than or equal to 7"),
        ("tomita", "sampling", "x", SAMPLINGS),
    ],
)
def test_a_value_out_of_bounds_is_named_with_the_bound(name: str, field: str, value: object, expected: str) -> None:
    message = f"task.{field}: expected {expected}, got {value!r}; give such a value"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make_task(name, **{field: value})


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("decision-tree", {"active_dims": 21}, "active_dims: expected at most dims=20, got 21; lower active_dims"),
        ("subset-sum", {"sampling": "hard", "max_value": 63}, "max_value: expected at least 64 for .* got 63; raise"),
        ("tomita", {"index": 2, "sampling": "chi2023"}, "sampling: expected 'near-miss' for index 2, got"),
    ],
)
def test_fields_that_do_not_fit_one_another_are_named(name: str, fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^task\.{message}"):
        make_task(name, **fields)
