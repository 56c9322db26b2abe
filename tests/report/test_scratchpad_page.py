"""The page about scratchpads, from made-up measurements."""

from lengthwise.studies.chi2023.experiments.scratchpad import Cost, Measured, Remedies, Size, Windows
from lengthwise.studies.chi2023.pages.scratchpad import scratchpad_page

SIZE = Size(lengths=(2, 4), num_strings=8, max_read_again=2)


def net(column: str, own: dict[int, float], told: dict[int, float], error: str | None = None) -> Measured:
    windows = Windows(3, 14, 0.25, error) if column.endswith("window") else None
    return Measured("Parity", column, own, told, windows)


STUDY = Remedies(
    SIZE,
    (
        net("window", {2: 1.0, 4: 0.5}, {}, error="baaa"),
        net("window", {2: 1.0, 4: 0.25}, {}, error="aaab"),
        net("scratchpad, ALiBi", {2: 0.75}, {2: 1.0, 4: 0.5}),
        net("scratchpad, window", {2: 1.0, 4: 1.0}, {2: 1.0, 4: 1.0}),
    ),
    {"Parity": {2: 0.5, 4: 0.5}},
    (Cost(2, 0.001, 0.002, 0.0005, 1), Cost(4, 0.0021, None, 0.0007, 2)),
)


def sections() -> list[str]:
    return [text.replace("\N{NO-BREAK SPACE}", " ") for text in scratchpad_page(STUDY, "page").sections]


def test_own_answers_have_mean_and_lowest_and_nothing_where_nothing_was_measured() -> None:
    own, told = (text for text in sections() if text.startswith("| task | net | 2 | 4 |"))
    assert "| Parity | window | 100 % / 100 % | 37.50 % / 25.00 % |" in own
    assert "| Parity | scratchpad, ALiBi | 75.00 % / 75.00 % | - |" in own
    assert "| Parity | chance | 50.00 % | 50.00 % |" in own
    assert "| Parity | scratchpad, ALiBi | 100 % / 100 % | 50.00 % / 50.00 % |" in told
    assert "| Parity | window |" not in told


def test_windows_say_which_nets_are_right_at_every_length_and_what_refutes_the_others() -> None:
    (table,) = (text for text in sections() if "shortest strings" in text)
    assert "| Parity | window | 14 | 0 of 2 | baaa, aaab | 0.25 |" in table
    assert "| Parity | scratchpad, window | 14 | 1 of 1 | - | 0.25 |" in table
    assert any("see the last L (w - 1) + 1 = 3 symbols" in text for text in sections())


def test_costs_and_a_picture() -> None:
    (costs,) = (text for text in sections() if "everything" in text and text.startswith("|"))
    assert "| 2 | 0.001 | 0.002 | 0.001 | 2 | 1 |" in costs or "| 2 | 0.001 | 0.002 | 0.000 | 2 | 1 |" in costs
    assert "| 4 | 0.002 | - | 0.001 | 4 | 2 |" in costs
    page = scratchpad_page(STUDY, "page")
    assert list(page.pictures) == ["page.svg"]
    assert "](page.svg)" in "".join(page.sections)
