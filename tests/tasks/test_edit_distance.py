from functools import cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from task_strings import seeded

from lengthwise.conventions import PAD
from lengthwise.tasks import make_task
from lengthwise.tasks.algorithmic import string_pairs
from lengthwise.tasks.algorithmic.edit_distance import edit_distance, edit_distance_by_definition
from lengthwise.tasks.algorithmic.string_pairs import (
    Edits,
    draw_pairs,
    edited,
    edited_by_definition,
    sizes_while_edited,
)
from lengthwise.tasks.algorithmic.two_strings import read

strings = st.lists(st.integers(0, 3), min_size=1, max_size=7)


@cache
def cheapest(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """By what happens to the last letters, without a table."""
    if not first or not second:
        return 2 * len(first + second)
    return min(
        cheapest(first[:-1], second) + 2,
        cheapest(first, second[:-1]) + 2,
        cheapest(first[:-1], second[:-1]) + 3 * (first[-1] != second[-1]),
    )


@given(strings, strings)
def test_the_distance_is_the_cheapest_of_all_ways(first: list[int], second: list[int]) -> None:
    given = torch.tensor([first]), torch.tensor([second])
    assert edit_distance(*given).tolist() == [cheapest(tuple(first), tuple(second))]


@pytest.mark.parametrize("border", ["true", "published"])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 9), (9, 1), (12, 15), (20, 17)])
def test_antidiagonals_are_the_table_of_the_definition(sizes: tuple[int, int], border: str) -> None:
    both = [torch.randint(3, (50, size), generator=seeded(size)) for size in sizes]
    for string in both:
        size = torch.randint(1, string.shape[1] + 1, (50, 1), generator=seeded(0))
        string[torch.arange(string.shape[1]) >= size] = PAD
    distances = edit_distance(*both, border)
    assert torch.equal(distances, edit_distance_by_definition(*both, border))
    assert torch.equal(distances, edit_distance(*both[::-1], border))


def test_many_pairs_are_measured_part_by_part() -> None:
    first, second = (torch.randint(4, (3_000, 5), generator=seeded(seed)) for seed in (0, 1))
    assert torch.equal(edit_distance(first, second), edit_distance_by_definition(first, second))


def test_published_borders_give_the_published_labels() -> None:
    given = torch.tensor([[0, PAD]]), torch.tensor([[1, 0]])
    assert [edit_distance(*given, border).item() for border in ("true", "published")] == [2, 1]


def test_the_papers_example() -> None:
    text = (
        "k y s i s x x x y s s l o o o k o s k o o s l y x k x s y s y x s o s l y k o o l s k x x y l y i y o s y "
        "o y x i i k s | k l l l o y l y s l k l x i i o k k y o i x s y o s i k x l l x i y k o l y o o y x o l s "
        "x x l i y l i o s i i i l l y <sep>"
    )
    pair = read(make_task("edit-distance").encode(text)[None])
    assert [edit_distance(*pair, border).item() for border in ("true", "published")] == [105, 105]


@given(st.integers(2, 9), st.integers(1, 12), st.integers(0, 10_000))
def test_tracing_positions_back_is_editing(length: int, num_edits: int, seed: int) -> None:
    generator = seeded(seed)
    edits = Edits(
        torch.randint(4, (num_edits, 20), generator=generator),
        torch.rand(num_edits, 20, generator=generator, dtype=torch.float64),
        torch.randint(5, (num_edits, 20), generator=generator),
    )
    given = torch.randint(5, (20, length), generator=generator)
    for width in (length + 1, length + num_edits):
        assert torch.equal(edited(given, edits, width), edited_by_definition(given, edits, width))
    sizes = sizes_while_edited(edits.kinds, length)
    assert torch.equal(sizes[-1], (edited(given, edits, length + num_edits) != PAD).sum(1))
    assert sizes.min() >= 2


@pytest.mark.parametrize("length", [4, 12, 60])
def test_pairs_are_as_algorithm_1_says(length: int) -> None:
    first, second = draw_pairs(5_000, length, 26, seeded(0))
    sizes = (second != PAD).sum(1)
    assert sizes.unique().tolist() == list(range(length - 3, length + 3))
    assert first.unique().tolist() == list(range(26))
    assert not ((second[:, :length] == first).all(1) & (sizes == length)).any()
    used = torch.tensor([len({*a, *b} - {PAD}) for a, b in zip(first.tolist(), second.tolist(), strict=True)])
    assert used.max() <= 26
    if length == 60:  # the pools' sizes are uniform in 3 ... 26, and strings use nearly all of their letters
        assert used.min() == 3
        assert used.double().mean().item() == pytest.approx(14.2, abs=0.5)


def test_the_mixture_is_56_to_44_at_60_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that do not fit are not taken; measured for the published generator on 400 pairs, here to 2 points."""
    copies = 0

    def counted(strings, *rest):
        nonlocal copies
        copies += len(strings)
        return edited(strings, *rest)

    monkeypatch.setattr(string_pairs, "edited", counted)
    draw_pairs(10_000, 60, 26, seeded(0))
    assert copies / 10_000 == pytest.approx(0.44, abs=0.02)


def test_samples_have_the_shorter_string_first_and_its_distance() -> None:
    task = make_task("edit-distance")
    inputs, targets = task.sample(500, 20, seeded(0))
    shorter, longer = read(inputs)
    assert ((shorter != PAD).sum(1) <= (longer != PAD).sum(1)).all()
    assert torch.equal(targets[inputs == 0], edit_distance(shorter, longer))
    assert (inputs == PAD).any()
    published = make_task("edit-distance", border="published").sample(500, 20, seeded(0))
    assert torch.equal(published.inputs, inputs)
    assert torch.equal(published.targets[inputs == 0], edit_distance(shorter, longer, "published"))


def test_two_published_labels_of_three_are_not_the_distance() -> None:
    """66 % of 400 pairs, whose standard error is 2.4 points."""
    first, second = draw_pairs(4_000, 60, 26, seeded(0))
    differ = edit_distance(first, second) != edit_distance(first, second, "published")
    assert differ.double().mean().item() == pytest.approx(0.66, abs=0.03)


def test_the_likeliest_answer_is_rarer_than_a_small_sample_says() -> None:
    """3.5 % is the largest share among 400 pairs; of all pairs it is 1.7 %."""
    answers = make_task("edit-distance").draw(20_000, 60, seeded(0))[1]
    shares = torch.stack([part.bincount().max() for part in answers.view(-1, 400)]) / 400
    assert shares.min() < 0.035 <= shares.max()
    share = answers.bincount().max().item() / len(answers)
    assert share == pytest.approx(make_task("edit-distance").baseline(60), abs=0.003)
    assert share < 0.02


def test_strings_of_fewer_than_4_letters_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no strings of length 3; legal lengths near it: \[4, 5, 6\]"):
        make_task("edit-distance").sample(1, 3, seeded(0))


def test_empty_strings_are_refused() -> None:
    letters, empty = torch.zeros(1, 3, dtype=torch.int64), torch.full((1, 2), PAD)
    with pytest.raises(
        ValueError, match=r"^first: expected at least 1 letter in every string, got no letter in row 0; leave out this"
    ):
        edit_distance(empty, letters)
