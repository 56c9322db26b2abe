"""What the pages on language say first is what their tables say."""

from pathlib import Path

import pytest

from lengthwise.studies.claims.claim import TableNumber
from lengthwise.studies.claims.numbers import number_in

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def headline(page: str) -> str:
    return (RESULTS / page).read_text(encoding="utf-8").split("\n\n")[1]


def cell(page: str, net: str, length: str) -> float:
    """A perplexity."""
    text = (RESULTS / page).read_text(encoding="utf-8")
    return float(number_in(text, TableNumber(page, length, ("trained at 128", net), text.splitlines()[0][2:])))


def tokens(net: str, length: str, column: str) -> int:
    """How many of the newest tokens have a share of the gradient."""
    page = "regular-gpt-receptive-field.md"
    number = number_in((RESULTS / page).read_text(encoding="utf-8"), TableNumber(page, column, (net, length)))
    return int(number.partition(" ")[0].replace(",", ""))


AS_PUBLISHED = "depth of the input"
AT_TWO_LEVELS = ("16/3, at most 2 levels", "32/6, held at 2 levels")

TABLE_3, LOOPED, LINEAR = "regular-gpt-table-3.md", "looped-table-3.md", "linear-rnn-language.md"

RATIOS = [
    (
        TABLE_3,
        ("ALiBi", "2,048"),
        ("ALiBi", "128"),
        "ALiBi is as perplexed at 16 times the training length as at it (0.997",
    ),
    (TABLE_3, ("T5", "2,048"), ("T5", "128"), "T5 more so (1.52 times)"),
    (TABLE_3, ("16/3", "512"), ("16/3", "256"), "by 5 % with C=16"),
    (TABLE_3, ("32/3", "2,048"), ("32/3", "1,024"), "2 % with C=32"),
    (TABLE_3, ("32/6", "2,048"), ("32/6", "1,024"), "2 % with C=32"),
    (TABLE_3, (f"16/3, {AS_PUBLISHED}", "512"), (f"16/3, {AS_PUBLISHED}", "256"), "by 7 % and"),
    (TABLE_3, (f"32/3, {AS_PUBLISHED}", "2,048"), (f"32/3, {AS_PUBLISHED}", "1,024"), "8 % with the paper's depth"),
    (TABLE_3, ("KERPLE", "2,048"), ("KERPLE", "128"), "KERPLE gets worse (1.12 times)"),
    (TABLE_3, ("64/3", "256"), ("64/3", "128"), "(0.8 %;"),
    (LOOPED, ("6 loops, timestep", "128"), ("6 loops, plain", "128"), "6 loops (0.80 times)"),
    (LOOPED, ("3 loops, timestep", "128"), ("3 loops, plain", "128"), "(1.19 and"),
    (LOOPED, ("1 loop, timestep", "128"), ("1 loop, plain", "128"), "and 1.56 times)"),
    (LINEAR, ("block-diagonal, b=8", "128"), ("diagonal", "128"), "b=8: 0.80 times"),
    (LINEAR, ("block-diagonal, b=2", "128"), ("diagonal", "128"), "b=2: 0.88 times"),
    (LINEAR, ("block-diagonal, b=8", "128"), ("LSTM", "128"), "is decided (1.04 times"),
    (LINEAR, ("block-diagonal, b=8", "128"), ("transformer", "128"), "transformer (b=8: 1.17 times)"),
]


@pytest.mark.parametrize(("page", "first", "second", "stated"), RATIOS)
def test_ratios_of_perplexities_are_those_of_the_table(
    page: str, first: tuple[str, str], second: tuple[str, str], stated: str
) -> None:
    ratio = cell(page, *first) / cell(page, *second)
    forms = {f"{ratio:.3f}", f"{ratio:.2f}", f"{100 * (ratio - 1):.0f} %", f"{100 * (ratio - 1):.1f} %"}
    assert stated in headline(page)
    assert any(form in stated for form in forms), ratio


def test_what_is_said_to_stay_or_not_to_help_does_not_change() -> None:
    at_two_levels = [cell(TABLE_3, "16/3, at most 2 levels", length) for length in ("256", "2,048")]
    assert at_two_levels[1] == pytest.approx(at_two_levels[0], rel=1e-3)
    assert cell(TABLE_3, "32/6", "128") > cell(TABLE_3, "32/3", "128")
    assert cell(LOOPED, "1 loop, plain", "128") <= min(cell(LOOPED, f"{n} loops, plain", "128") for n in (3, 6))
    for net in ("block-diagonal, b=8", "block-diagonal, b=2", "diagonal", "LSTM"):
        assert cell(LINEAR, net, "2,048") == pytest.approx(cell(LINEAR, net, "128"), abs=0.02)


def test_windows_are_those_of_the_table() -> None:
    stated = headline("regular-gpt-receptive-field.md")
    lengths = ("128", "512", "2,048")
    halves = [tokens(net, length, "with 50 %") for net in (*AT_TWO_LEVELS, "32/6", "ALiBi") for length in lengths]
    assert f"newest {min(halves)} to {max(halves)} tokens" in stated
    at = {net: [f"{tokens(net, length, 'with 99 %'):,}" for length in lengths] for net in ("32/6", "ALiBi")}
    assert "in {} of 128, {} of 512 and {} of 2,048 tokens with 32/6".format(*at["32/6"]) in stated
    assert "in {}, {} and {} with ALiBi".format(*at["ALiBi"]) in stated
    held, ended = (f"{tokens(net, '2,048', 'with 99 %'):,}" for net in reversed(AT_TWO_LEVELS))
    assert f"({held} without the third level" in stated
    assert f"99 % lie in {ended}." in stated
    assert abs(tokens(AT_TWO_LEVELS[0], "512", "with 99 %") - int(ended)) <= 1
