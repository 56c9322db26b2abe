"""Routings, run on intervals and on strings, against recursive definitions."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.studies.chi2023.cost import (
    attention_break_even,
    attention_pairs,
    layer_break_even,
    multiplications,
    published_break_even,
)
from lengthwise.studies.chi2023.routing import (
    Merge,
    blelloch_scan,
    hillis_steele_scan,
    path_to,
    sliding_routing,
    tree_routing,
)
from lengthwise.studies.chi2023.routing_chart import routing_chart

lengths, chunks = st.integers(1, 130), st.integers(2, 6)


def carried_out(merges: list[Merge], string: str) -> list[str]:
    """What every place ends with, where the product is concatenation."""
    held = list(string)
    for step in sorted({merge.step for merge in merges}):
        before = list(held)
        for merge in merges:
            if merge.step == step:
                held[merge.position] = "".join(before[part] if part >= 0 else "" for part in merge.parts)
    return held


def string_of(length: int) -> str:
    return "".join(chr(97 + position) for position in range(length))


def prefixes(string: str) -> list[str]:
    return [string[: end + 1] for end in range(len(string))]


@given(lengths, chunks)
def test_sliding_merges_are_the_recursive_windows(length: int, chunk_size: int) -> None:
    """Window(l, m) is what Window(l-1, m - j C^(l-1)) make together, j from C-1 to 0."""
    string = string_of(length)

    @cache
    def window(level: int, position: int) -> str:
        if position < 0:
            return ""
        if level == 0:
            return string[position]
        stride = chunk_size ** (level - 1)
        return "".join(window(level - 1, position - j * stride) for j in reversed(range(chunk_size)))

    merges = sliding_routing(length, chunk_size)
    for level in range(1, max(merge.step for merge in merges) + 1):
        held = carried_out([merge for merge in merges if merge.step <= level], string)
        assert held == [window(level, position) for position in range(length)]
    assert held == prefixes(string)


@given(lengths, chunks)
def test_the_tree_is_what_the_last_answer_needs(length: int, chunk_size: int) -> None:
    tree = tree_routing(length, chunk_size)
    assert carried_out(tree, string_of(length))[-1] == string_of(length)
    assert tree == path_to(sliding_routing(length, chunk_size), length - 1)


@given(lengths)
def test_scans_give_every_prefix(length: int) -> None:
    for merges in (hillis_steele_scan(length), blelloch_scan(length)):
        assert carried_out(merges, string_of(length)) == prefixes(string_of(length))
        assert len({(merge.step, merge.position) for merge in merges}) == len(merges)


@pytest.mark.parametrize("levels", range(1, 8))
def test_at_powers_of_two_all_need_the_same_merges_for_the_last(levels: int) -> None:
    length = 2**levels
    tree = tree_routing(length)
    assert path_to(hillis_steele_scan(length), length - 1) == path_to(blelloch_scan(length), length - 1) == tree
    assert len(tree) == length - 1


@given(st.integers(1, 300))
def test_scans_cost_what_is_known(length: int) -> None:
    depth = (length - 1).bit_length()
    fast, frugal = hillis_steele_scan(length), blelloch_scan(length)
    assert max((merge.step for merge in fast), default=0) == depth
    assert len(fast) == sum(length - 2**level for level in range(depth))
    assert max((merge.step for merge in frugal), default=0) <= max(0, 2 * depth - 1)
    assert len(frugal) < 2 * length


@given(st.integers(1, 80), chunks)
def test_attention_pairs_are_the_entries_of_the_masks(length: int, chunk_size: int) -> None:
    """Eq. (1): m - n is a multiple j C^l with j in [C]; pads, at negative places, do not count."""
    merges = sliding_routing(length, chunk_size)
    assert attention_pairs(length, chunk_size) == sum(part >= 0 for merge in merges for part in merge.parts)


def test_one_window_of_all_is_a_causal_transformer() -> None:
    assert attention_pairs(512, 512) == 512 * 513 // 2
    assert attention_break_even(512, 512) == layer_break_even(512, 512, 64) == 1.0


def test_the_published_claim_is_about_attention_alone() -> None:
    """3.11 at T=512, C=128 in the text; with two whole levels and all multiplications of a layer, about a half."""
    assert published_break_even(512, 128) == pytest.approx(3.11, abs=0.005)
    assert attention_break_even(512, 128) == pytest.approx((512 * 513 / 2) / (57_408 + 1_280))
    linear, pairs = 12 * 768**2 * 512, 2 * 768
    assert multiplications(512, 512, 768) == linear + pairs * 512 * 513 // 2
    assert multiplications(512, 128, 768) == 2 * linear + pairs * (57_408 + 1_280)
    assert 0.5 < layer_break_even(512, 128, 768) < 0.55


def test_lines_of_a_routing_join_what_is_merged() -> None:
    scan = hillis_steele_scan(6)
    chart = routing_chart({"scan": scan, "tree": sliding_routing(6)}, 6).to_dict()
    assert [panel["title"] for panel in chart["concat"]] == ["scan", "tree"]
    drawn = routing_chart({"scan": scan}, 6).to_dict()["datasets"]
    lines = [value for values in drawn.values() for value in values]
    ends = {
        (line["from_position"], line["from_step"], line["position"], line["step"])
        for line in lines
        if "from_position" in line
    }
    for merge in scan:
        for part in merge.parts:
            assert (part + 1, merge.step - 1, merge.position + 1, merge.step) in ends
    assert (2, 1, 2, 2) in ends, "the second symbol's value waits a step until the sixth takes it"
    assert all(0 <= start < end <= 3 for _, start, _, end in ends)
