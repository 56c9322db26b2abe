from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from task_strings import seeded

from lengthwise.conventions import PAD
from lengthwise.tasks import make_task
from lengthwise.tasks.algorithmic.longest_common_subsequence import common_length, common_length_by_definition
from lengthwise.tasks.algorithmic.single_answer import join_parts
from lengthwise.tasks.algorithmic.two_strings import aligned_letters, common_letters, read


def subsequences(string: list[int]) -> set[tuple[int, ...]]:
    return {chosen for size in range(len(string) + 1) for chosen in combinations(string, size)}


@given(*[st.lists(st.integers(0, 3), min_size=1, max_size=8)] * 2)
def test_bits_and_table_find_the_longest_of_all_common_subsequences(first: list[int], second: list[int]) -> None:
    longest = max(map(len, subsequences(first) & subsequences(second)))
    given = torch.tensor([first]), torch.tensor([second])
    assert common_length(*given).tolist() == common_length_by_definition(*given).tolist() == [longest]


@pytest.mark.parametrize("sizes", [(1, 1), (63, 70), (64, 64), (65, 60), (100, 100), (128, 129), (200, 3)])
@pytest.mark.parametrize("num_letters", [1, 2, 20])
def test_sums_carry_from_word_to_word(sizes: tuple[int, int], num_letters: int) -> None:
    first, second = (torch.randint(num_letters, (9, size), generator=seeded(size)) for size in sizes)
    first[:, 1:][torch.rand(9, sizes[0] - 1, generator=seeded(0)).sort(dim=1).values > 0.9] = PAD
    assert torch.equal(common_length(first, second), common_length_by_definition(first, second))


def test_pads_match_nothing() -> None:
    first, second = torch.tensor([[0, PAD, PAD], [0, 1, PAD]]), torch.tensor([[1, PAD, PAD, PAD], [1, 0, 1, PAD]])
    assert common_length(first, second).tolist() == [0, 2]


def test_the_papers_example() -> None:
    text = (
        "g q p b b g q b p h b v i b q m r w c v c v b v w b v g r v q h g m b r w c r c h i h c c q p m w r w b p "
        "g h p w g p w | i i a p i i i p r i p x i c r b f p b x p i x c c p f r x y i a p c v b p r c r v v i c y "
        "p x f a c f p p b i i a r a c <sep>"
    )
    inputs = make_task("longest-common-subsequence").encode(text)[None]
    first, second = (
        [letter for letter in string.tolist() if letter != PAD] for string in (part[0] for part in read(inputs))
    )
    assert len(first) == len(second) == 60
    assert (len(set(first)), len(set(second))) == (11, 10)
    assert common_length(torch.tensor([first]), torch.tensor([second])).tolist() == [18]


def test_samples_have_pools_of_their_own() -> None:
    inputs, targets = make_task("longest-common-subsequence", pool_size=5).sample(2_000, 30, seeded(0))
    first, second = inputs[:, :30], inputs[:, 31:61]
    assert torch.equal(targets[:, -1], common_length(first - 2, second - 2))
    sizes = torch.tensor([[len(set(row)) for row in part.tolist()] for part in (first, second)])
    assert sizes.max() == 5
    assert (first.unique().tolist(), second.unique().tolist()) == ([*range(2, 28)], [*range(2, 28)])


def test_the_likeliest_answer_is_as_rare_as_computed_for_the_paper() -> None:
    """13 to 16 % at 60 letters belong to pools of 20 to 30; with 13, which the paper's example suggests, it is 10 %."""
    shares = [make_task("longest-common-subsequence", pool_size=size).baseline(60) for size in (13, 24)]
    assert shares[0] == pytest.approx(0.10, abs=0.01)
    assert 0.13 < shares[1] < 0.16


def test_no_common_subsequence_is_longer_than_the_common_letters() -> None:
    task = make_task("longest-common-subsequence")
    inputs, targets = task.sample(2_000, 20, seeded(0))
    features = task.shallow_features(inputs)
    assert (features["aligned letters"] <= targets[:, -1]).all()
    assert (targets[:, -1] <= features["common letters"]).all()


@given(*[st.lists(st.integers(0, 3), min_size=1, max_size=9)] * 2)
def test_strings_are_read_as_they_were_written(first: list[int], second: list[int]) -> None:
    padded = torch.tensor([first + [PAD] * 3, first[:1] + [PAD] * (len(first) + 2)]), torch.tensor([second, second])
    inputs = join_parts(*padded)
    assert not (inputs[0, : len(first) + len(second) + 2] == PAD).any()
    for actual, string in zip(read(inputs), padded, strict=True):
        assert torch.equal(actual[:, : string.shape[1]], string)
        assert (actual[:, string.shape[1] :] == PAD).all()


def test_letters_in_common_and_letters_aligned() -> None:
    first, second = torch.tensor([[0, 1, 1, 2, PAD]]), torch.tensor([[1, 1, 2, 2, 0]])
    assert common_letters(first, second).tolist() == [4]
    assert aligned_letters(first, second).tolist() == [3]


def test_empty_strings_are_refused() -> None:
    letters, empty = torch.zeros(2, 3, dtype=torch.int64), torch.tensor([[0, PAD], [PAD, PAD]])
    with pytest.raises(
        ValueError, match=r"^second: expected at least 1 letter in every string, got no letter in row 1; leave out this"
    ):
        common_length(letters, empty)
