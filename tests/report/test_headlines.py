"""What pages of single studies say first is what their tables say."""

import re
from collections import Counter
from pathlib import Path

import pytest

from lengthwise.experiment import EXPERIMENTS
from lengthwise.report.pages.results import file_stem

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def text_of(name: str) -> str:
    return (RESULTS / f"{file_stem(name, 'small')}.md").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")


def headline(name: str) -> str:
    stated = EXPERIMENTS[name]("small").headline
    first = text_of(name).split("\n\n")[1]
    assert first.startswith(stated), "the page has it in its first lines"
    return stated


def table(name: str, column: str) -> list[dict[str, str]]:
    """The lines of the first table of the page that has this column, by column."""
    for block in text_of(name).split("\n\n"):
        header, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
        if column in header:
            return [dict(zip(header, row, strict=True)) for row in rows[1:]]
    raise LookupError(f"{name}: no table has a column {column!r}")


TASKS = ("Parity", "Cycle Navigation")


def test_states_and_gradients_inside_a_net() -> None:
    of_net = {(row["task"], row["layer"]): row for row in table("regular-gpt/inside", "symbols with 99 % of gradient")}
    levels, symbols = (
        [of_net[task, layer][column] for layer in ("the code's", "GPT-2's") for task in TASKS]
        for column in ("levels whose clusters are elements", "symbols with 99 % of gradient")
    )
    stated = headline("regular-gpt/inside")
    assert levels[0] == levels[1]
    assert f"at {levels[0]} levels, and 99 % of the gradient lie in {symbols[0]} and {symbols[1]} of 500" in stated
    assert f"at {levels[2]} levels on parity ({symbols[2]} symbols) and at {levels[3]} on cycle navigation" in stated
    assert f"navigation ({symbols[3]}). None of these four nets is without an error beyond 40 symbols" in stated
    solved = [
        row["solved"] for row in table("regular-gpt/inside", "solved") if row["column"] in ("the code's", "GPT-2's")
    ]
    assert solved == ["0 of 1"] * 4
    assert of_net["Parity", "GPT-2's"]["right at 500"] != "100 %"


def test_a_scratchpad_with_a_recency_bias() -> None:
    stated, right = headline("regular-gpt/scratchpad"), "100 % / 100 %"
    of_net = {(row["task"], row["net"]): row for row in table("regular-gpt/scratchpad", "net")}
    for task in TASKS:
        assert {of_net[task, "scratchpad, window"][length] for length in ("60", "100", "200", "500")} == {right}
        assert {of_net[task, "scratchpad, ALiBi"][length] for length in ("60", "100")} == {right}
    scores = [
        float(row["mean"].removesuffix(" %"))
        for row in table("regular-gpt/scratchpad", "mean")
        if row["row"] == "Parity" and row["column"] in ("ALiBi", "window")
    ]
    assert f"(means of {max(scores):.2f} % at most on parity)" in stated


def test_the_sizes_that_pilots_choose() -> None:
    text, stated = text_of("regular-gpt/chunks"), headline("regular-gpt/chunks")
    chosen, two, three, four = re.findall(r"([\d.]+ %) with", text.split("the mean accuracy is ")[-1])
    pilots, nets = re.search(r"Pilots add (\d+) CPU seconds to the (\d+)", text).groups()
    assert chosen == three
    assert f"is {chosen} with the size that they choose and with C=3, {four} with C=4 and {two} with C=2" in stated
    assert f"take {pilots} CPU seconds, next to {nets}" in stated


def test_larger_chunks() -> None:
    stated = headline("regular-gpt/chunk-sizes")
    of_cell = {(row["row"], row["column"]): row for row in table("regular-gpt/chunk-sizes", "solved")}
    erring = of_cell.pop(("Cycle Navigation", "C=4"))
    assert {row["solved"] for row in of_cell.values()} == {"5 of 5"}
    assert erring["solved"] == "4 of 5"
    assert f"({erring['lowest']} at the lowest up to 500)" in stated


@pytest.mark.parametrize(("name", "count"), [("linear-rnn/ours", 15), ("linear-rnn/random-languages", 50)])
def test_nets_that_are_all_proved(name: str, count: int) -> None:
    stated, text = headline(name), text_of(name)
    levels = re.search(r"\| row \| proved \| independently checked \|\n.*\n((?:\| .* \|\n)+)", text)[1]
    assert sum(map(int, re.findall(r"^\| [^|]+ \| (\d+) \|", levels, re.MULTILINE))) == count
    assert {row["mean"] for row in table(name, "mean")} == {"100 %"}
    assert {15: "all fifteen nets", 50: "all 50 nets proved"}[count] in stated
    assert count == 15 or "50 of 50 (92.86 % to 100 %)" in text


def test_loops_beyond_the_training_length() -> None:
    stated, rows = headline("looped/lengths"), table("looped/lengths", "solved")
    assert {row["solved"] for row in rows if row["row"] == "Even Pairs" and row["column"].startswith("by length")} == {
        "3 of 3"
    }
    parity, cycle = (max(float(row["mean"].removesuffix(" %")) for row in rows if row["row"] == task) for task in TASKS)
    assert f"(means of {parity:.2f} and {cycle:.2f} % at the highest)" in stated
    assert "and none after the correction" in text_of("looped/lengths")


def test_words_that_are_learned() -> None:
    text, stated = text_of("rnn-memorization"), headline("rnn-memorization")
    below, at, above = re.search(r"W_x = 0: (\d+ of \d+) .*below d_min, (\d+ of \d+) .*, (\d+ of \d+) ", text).groups()
    assert f"{below} below it, {at} at it and {above} above" in stated
    with_less, all_below = re.search(r"W_x learned: (\d+) of (\d+) ", text).groups()
    assert f"{with_less} of {all_below} do with less" in stated
    of_short, of_long = re.search(
        r"Of ([\d,]+) nets that are right at 64 symbols, (\d+) are right at 640", text
    ).groups()
    assert f"of {of_short} nets that are right at 64 symbols, {of_long} are right at 640" in stated


def test_the_smallest_nets_with_feedback() -> None:
    stated = headline("rnn-memorization/feedback")
    words = table("rnn-memorization/feedback", "any W_h")
    dimensions = Counter(row["contracting"] for row in words)
    (longest,) = (row["word"] for row in words if row["contracting"] == "3")
    assert set(dimensions) == {"1", "2", "3"}, "search and bound meet"
    assert {row["any W_h"] for row in words} == {"1"}
    assert f"One dimension is enough for each of the {len(words)} words" in stated
    assert (
        f"{dimensions['1']} words take one dimension, {dimensions['2']} take two and one takes three, `{longest}`"
        in stated
    )


def test_table_2_of_linear_rnns_at_the_papers_size() -> None:
    name = "linear-rnn/table-2"
    text = (RESULTS / f"{file_stem(name, 'paper')}.md").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    stated = EXPERIMENTS[name]("paper").headline
    assert text.split("\n\n")[1].startswith(stated)

    def figures(column: str, model: str = "Ours") -> list[str]:
        lines = [block.splitlines() for block in text.split("\n\n") if block.startswith("| row | column |")]
        header, rows = next((lines[0], lines[2:]) for lines in lines if f"| {column} |" in lines[0])
        index = [cell.strip() for cell in header.strip("|").split("|")].index(column)
        return [row.strip("|").split("|")[index].strip() for row in rows if f"| {model} |" in row]

    assert figures("best test") == ["100 %"] * 3
    (of_sum, of_pairs, of_arithmetic) = figures("mean")
    assert (
        f"a mean of {of_sum} at 41-500, three of five nets without an error and one with {figures('500')[0]}" in stated
    )
    assert f"on EvenPair(5) {of_pairs}, three of five; on ModArith(5) the one net has {of_arithmetic}" in stated
    assert figures("solved") == ["3 of 5", "3 of 5", "0 of 1"]
    assert figures("refuted") == ["5", "5", "1"]
    long, short, arithmetic = (span.replace("-", " to ") for span in figures("length of counterexample"))
    spans = f"by strings of {long} symbols on Sum(5), of {short} on EvenPair(5) and of {arithmetic} on ModArith(5)"
    assert spans in stated
    best, mean, guesses, lowest = (
        figures(column, "Ours, eq. (5)-(6)") for column in ("best test", "mean", "guesses", "500")
    )
    assert (best[0], float(lowest[0].removesuffix(" %")) < 20) == ("100 %", True)
    assert f"with {mean[0]} at 41-500 and less than chance at 500" in stated
    assert (
        f"best tests of {best[1]}, where guesses get {guesses[1].removesuffix(' %')}, and a mean of {mean[1]}" in stated
    )
