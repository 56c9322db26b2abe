"""What the tasks with a single answer share: how problems are written, their base rates, and what they refuse."""

import pytest
import torch
from task_strings import seeded

from lengthwise.conventions import IGNORE, PAD, SEP
from lengthwise.tasks import make_task
from lengthwise.tasks.algorithmic.longest_common_subsequence import LongestCommonSubsequence, common_length
from lengthwise.tasks.algorithmic.single_answer import SingleAnswerTask
from lengthwise.tasks.algorithmic.two_strings import read

NAMES = ("subset-sum", "knapsack", "longest-common-subsequence", "edit-distance")


@pytest.fixture(params=NAMES)
def task(request) -> SingleAnswerTask:
    return make_task(request.param)


def test_only_the_separator_is_supervised_and_only_pads_come_after_it(task: SingleAnswerTask) -> None:
    inputs, targets = task.sample(200, 6, seeded(0))
    assert torch.equal(targets != IGNORE, inputs == SEP)
    assert ((inputs == SEP).sum(1) == 1).all()
    after = (inputs == SEP).cumsum(1).bool() & (inputs != SEP)
    assert torch.equal(after, inputs == PAD)


def test_base_rates_are_accuracies_of_which_the_baseline_is_one(task: SingleAnswerTask) -> None:
    rates = task.base_rates(6)
    assert next(iter(rates)) == "majority class"
    assert rates["majority class"] == task.baseline(6)
    assert len(rates) > 1
    assert all(task.baseline(6) - 0.02 < rate <= 1 for rate in rates.values())


class GivenAway(LongestCommonSubsequence):
    """Its features are the answer, in disguise, and noise."""

    def shallow_features(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        noise = torch.randint(4, (len(inputs),), generator=seeded(1))
        return {"answer": 5 - common_length(*read(inputs)), "noise": noise}


def test_a_feature_that_is_the_answer_predicts_it_and_noise_does_not() -> None:
    rates = GivenAway().base_rates(7)
    assert rates["answer"] > 0.999  # an answer may come in the second half alone
    assert rates["noise"] == pytest.approx(rates["majority class"], abs=0.02)


@pytest.mark.parametrize(
    ("name", "fields", "text", "answer"),
    [
        ("subset-sum", {}, "5 3 9 | 14 <sep>", "1"),
        ("subset-sum", {}, "5 3 9 | 13 <sep>", "0"),
        ("subset-sum", {}, "5 3 9 | 18 <sep>", "0"),
        ("subset-sum", {"sampling": "hard"}, "5 | 5 <sep>", "1"),
        ("knapsack", {}, "3 4 2 | 7 9 1 | 6 <sep>", "10"),
        ("longest-common-subsequence", {}, "a b c b | b d a b <sep>", "2"),
        ("edit-distance", {}, "a | b a <sep>", "2"),
        ("edit-distance", {"border": "published"}, "b a | a <sep>", "1"),
    ],
)
def test_problems_are_solved_that_are_never_drawn(name: str, fields: dict[str, str], text: str, answer: str) -> None:
    task = make_task(name, **fields)
    targets = task.solve(task.encode(text + " | 1 <sep>" if name in ("subset-sum", "knapsack") else text)[None])[0]
    supervised = (targets != IGNORE).nonzero()[:, 0].tolist()
    assert supervised == [len(task.encode(text)) - 1]
    assert task.classes[targets[supervised[0]]] == answer


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("subset-sum", "5 3 9 | 14"),
        ("subset-sum", "5 3 9 14 <sep>"),
        ("subset-sum", "5 0 9 | 14 <sep>"),
        ("subset-sum", "5 3 | 9 14 <sep>"),
        ("subset-sum", "| 14 <sep>"),
        ("knapsack", "3 4 | 7 9 <sep>"),
        ("knapsack", "3 4 | 7 9 1 | 6 <sep>"),
        ("knapsack", "3 4 | 7 9 | 6 1 <sep>"),
        ("knapsack", "3 4 | 7 9 | 0 <sep>"),
        ("longest-common-subsequence", "| <sep>"),
        ("longest-common-subsequence", "a b <sep>"),
        ("longest-common-subsequence", f"{'a ' * 61}| {'a ' * 61}<sep>"),  # 61 is no class
        ("edit-distance", "a | b | c <sep>"),
    ],
)
def test_what_is_no_problem_is_unsupervised(name: str, text: str) -> None:
    task = make_task(name)
    assert (task.solve(task.encode(text)[None]) == IGNORE).all()


@pytest.mark.parametrize(
    ("name", "fields", "minimum"), [("edit-distance", {}, 4), ("subset-sum", {"sampling": "hard"}, 6)]
)
def test_tasks_without_problems_are_refused(name: str, fields: dict[str, str], minimum: int) -> None:
    with pytest.raises(
        ValueError, match=rf"max_length: expected at least {minimum}, .* got {minimum - 1}; raise max_length"
    ):
        make_task(name, max_length=minimum - 1, **fields)
    assert make_task(name, max_length=minimum, **fields).is_legal_length(minimum)


def test_texts_read_as_they_are_printed() -> None:
    assert make_task("subset-sum").decode(make_task("subset-sum").encode("67 93 | 195 <sep>")) == "67 93 | 195 <sep>"
    assert make_task("edit-distance").encode(" a  b | c <sep>").tolist() == [2, 3, 1, 4, 0]


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        (
            "subset-sum",
            "3 | 991 <sep>",
            r"'991' at position 3 is not a symbol of subset-sum; use only <sep> \| 0 1 2 .*"
            r"\.\.\., with spaces between them$",
        ),
        ("knapsack", "3 | -1 | 2 <sep>", "'-1' at position 3 is not a symbol of knapsack"),
        ("longest-common-subsequence", "ab | b <sep>", "'ab' at position 1 is not a symbol"),
        ("edit-distance", "  ", "expected at least one symbol of edit-distance, got"),
    ],
)
def test_foreign_symbols_are_refused(name: str, text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong) as refused:
        make_task(name).encode(text)
    assert len(str(refused.value)) < 250


def test_lengths_above_the_capacity_are_refused(task: SingleAnswerTask) -> None:
    longest = task.max_length
    for length in (longest + 1, 10 * longest):
        with pytest.raises(
            ValueError, match=rf"no strings of length {length}; legal lengths near it: \[.*{longest}\]$"
        ):
            task.sample(1, length, seeded(0))
        with pytest.raises(ValueError, match=f"no strings of length {length}"):
            task.base_rates(length)


@pytest.mark.parametrize("name", NAMES)
def test_answers_beyond_the_vocabulary_are_refused(name: str) -> None:
    needed = make_task(name).largest_number + 1
    assert make_task(name, num_range=needed).numbers == make_task(name).numbers
    assert len(make_task(name, num_range=needed + 5).numbers) == needed + 5
    with pytest.raises(
        ValueError, match=rf"^task\.num_range: expected at least {needed} for problems of length \d+, got "
    ):
        make_task(name, num_range=needed - 1)
