"""Tasks whose answer is a string: against a slow rule for each, and how symbols of the answer are queried."""

from collections.abc import Callable, Sequence

import pytest
import torch
from task_strings import all_strings, seeded

from lengthwise import certify, length_curve, make_model
from lengthwise.conventions import IGNORE
from lengthwise.runs.predict import predict_text
from lengthwise.tasks import make_task
from lengthwise.tasks.algorithmic.string_answer import DONE, NUM_CONTROLS, QUERY, StringAnswerTask


def stack_after(text: Sequence[str]) -> list[str] | None:
    letters = "".join(text)
    on_stack = letters.rstrip("-AB")
    if set(on_stack) & set("-AB"):
        return None
    stack = list(on_stack)
    for action in letters[len(on_stack) :]:
        if action != "-":
            stack.append(action.lower())
        elif stack:
            stack.pop()
    return [*reversed(stack), "end"]


def digits_of_sum(text: Sequence[str]) -> list[str] | None:
    numbers = "".join(text).split("+")
    if len(numbers) != 2 or not all(numbers):
        return None
    total = sum(int(number[::-1], 2) for number in numbers)
    return [*(f"{total:b}"[::-1] if total else ""), "end"]


RULES: dict[str, Callable[[Sequence[str]], list[str] | None]] = {
    "reverse-string": lambda text: list(reversed(text)),
    "duplicate-string": lambda text: [*text, *text],
    "bucket-sort": sorted,
    "stack-manipulation": stack_after,
    "binary-addition": digits_of_sum,
}


@pytest.fixture(params=RULES)
def task(request) -> StringAnswerTask:
    return make_task(request.param)


def answers_to(task: StringAnswerTask, strings: torch.Tensor, width: int) -> list[list[str]]:
    """The answers to as many queries after each string."""
    queries = torch.full((len(strings), width), QUERY)
    targets = task.solve(torch.cat([strings + NUM_CONTROLS, queries], 1))
    assert (targets[:, : strings.shape[1]] == IGNORE).all()
    rows = targets[:, strings.shape[1] :].tolist()
    return [[task.classes[answer] for answer in row if answer != IGNORE] for row in rows]


def expected(task: StringAnswerTask, strings: torch.Tensor) -> list[list[str]]:
    return [RULES[task.name]([task.letters[letter] for letter in row]) or [] for row in strings.tolist()]


def test_every_short_string_is_answered_by_the_rule(task: StringAnswerTask) -> None:
    for length in range(1, 6):
        strings = all_strings(len(task.letters), length)
        assert answers_to(task, strings, 2 * length + 2) == expected(task, strings)


@pytest.mark.parametrize("length", [40, 63, 500])
def test_long_samples_are_answered_by_the_rule(task: StringAnswerTask, length: int) -> None:
    strings = task.draw_strings(50, length, seeded(length))
    rows = expected(task, strings)
    assert all(rows), "every string that is drawn has an answer"
    assert answers_to(task, strings, 2 * length) == rows


def test_fields_say_how_many_letters_there_are() -> None:
    assert make_task("bucket-sort", num_digits=9).letters == tuple("123456789")
    assert make_task("reverse-string", num_letters=26).classes[-1] == "z"
    for name, field, value in (("bucket-sort", "num_digits", 10), ("duplicate-string", "num_letters", 1)):
        with pytest.raises(ValueError, match=rf"^task\.{field}: expected a number .* got {value}$"):
            make_task(name, **{field: value})


def test_the_last_query_of_a_sample_is_of_any_symbol_of_its_answer(task: StringAnswerTask) -> None:
    length = 6
    inputs, targets = task.sample(20_000, length, seeded(0))
    strings, queries = inputs[:, :length] - NUM_CONTROLS, inputs[:, length:]
    assert ((queries[:, 1:] == DONE) | (queries[:, :-1] == QUERY)).all(), "first queries, then nothing more"
    num_queried = (queries == QUERY).sum(1)
    num_symbols = torch.tensor([len(row) for row in expected(task, strings)])
    assert torch.equal((targets != IGNORE).sum(1), num_queried)
    assert (num_queried >= 1).all()
    assert (num_queried <= num_symbols).all()
    assert queries.shape[1] >= int(num_symbols.max())
    for size in num_symbols.unique().tolist():
        counts = num_queried[num_symbols == size].bincount(minlength=size + 1)[1:].double()
        tolerance = 4 * (counts.sum() * (1 - 1 / size) / size).sqrt()
        assert ((counts - counts.mean()).abs() <= tolerance).all(), size


def test_strings_are_drawn_as_the_source_says() -> None:
    rows, length = 30_000, 7
    letters = make_task("stack-manipulation").draw_strings(rows, length, seeded(0))
    sizes = (letters < 2).sum(1)
    assert (sizes.bincount(minlength=length) / rows)[1:length].numpy() == pytest.approx([1 / 6] * 6, abs=0.01)
    actions = letters[letters >= 2]
    assert (actions.bincount()[2:] / len(actions)).numpy() == pytest.approx([1 / 3] * 3, abs=0.01)
    digits = make_task("binary-addition").draw_strings(rows, length, seeded(0))
    sizes = (digits == 2).int().argmax(1)
    assert (sizes.bincount() / rows)[1:].numpy() == pytest.approx([1 / 5] * 5, abs=0.01)
    first = (digits[sizes == 2][:, :2] * torch.tensor([1, 2])).sum(1)
    assert (first.bincount() / len(first)).numpy() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3], abs=0.02)


@pytest.mark.parametrize("length", [3, 10, 41])
def test_the_likeliest_answer_scores_what_samples_say(task: StringAnswerTask, length: int) -> None:
    _, answers = task.draw(20_000, length, seeded(1))
    share = float(answers.bincount(minlength=len(task.classes)).max()) / len(answers)
    assert share == pytest.approx(task.baseline(length), abs=0.015)


def test_half_of_the_digits_of_a_sum_are_ones() -> None:
    """Exactly, of all pairs of numbers, next to what is counted and what longer strings are taken to have."""
    for length in (3, 6, 16):
        share = 0.0
        for size in range(1, length - 1):
            first, second = 2**size - 1, 2 ** (length - 1 - size) - 1
            for total in range(2, first + second + 1):
                pairs = min(total - 1, first, second, first + second + 1 - total)
                of_ones = total.bit_count() / (total.bit_length() + 1)
                share += pairs * of_ones / (first * second) / (length - 2)
        assert make_task("binary-addition").baseline(length) == pytest.approx(share, abs=0.016)
    assert 0.5 - share < 0.005
    assert make_task("binary-addition").baseline(21) == 0.5


def test_sorting_is_mostly_known_from_the_share_that_is_queried_for() -> None:
    rates = make_task("bucket-sort").base_rates(500)
    assert rates["share of the answer"] == pytest.approx(0.93, abs=0.01), "as its page says"
    assert make_task("reverse-string").base_rates(100)["share of the answer"] < 0.55


@pytest.mark.parametrize(
    ("name", "text", "answers"),
    [
        ("reverse-string", "ab??", "ba"),
        ("reverse-string", "ab?.?", "b"),
        ("reverse-string", "ab?a?", "b"),
        ("reverse-string", "ab????", "ba"),
        ("reverse-string", "?ab??", ""),
        ("reverse-string", "ab..", ""),
        ("reverse-string", "ab", ""),
        ("stack-manipulation", "-?", ["end"]),
        ("stack-manipulation", "A?", "a"),
        ("stack-manipulation", "aAb??", ""),
        ("binary-addition", "1+1???", ["0", "1", "end"]),
        ("binary-addition", "0+0??", ["end"]),
        ("binary-addition", "1+?", ""),
        ("binary-addition", "+1?", ""),
        ("binary-addition", "1+1+1???", ""),
    ],
)
def test_only_queries_of_a_problem_are_answered(name: str, text: str, answers: Sequence[str]) -> None:
    task = make_task(name)
    targets = task.solve(task.encode(text)[None])[0]
    assert [task.classes[answer] for answer in targets[targets != IGNORE]] == list(answers)


def test_a_net_is_measured_at_the_last_query_and_has_no_certificate(task: StringAnswerTask) -> None:
    class Always(torch.nn.Module):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.one_hot(torch.zeros_like(inputs), len(task.classes)).float()

    model = make_model("gru", task)
    model.forward = Always().forward
    (point,) = length_curve(model, task, [30], num_strings=2_000).points
    batch = task.sample(20_000, 30, seeded(2))
    first = (batch.targets.gather(1, batch.last_supervised[:, None]) == 0).double().mean()
    assert point.accuracy == pytest.approx(float(first), abs=0.05)
    with pytest.raises(ValueError, match=rf"^task: .*{task.name}"):
        certify(model, task)


def test_predictions_are_all_symbols_that_are_queried() -> None:
    task = make_task("reverse-string")
    model = make_model("gru", task)
    for text, verdict in (("abb???", "wrong, it is b b a"), ("abb?..", "wrong, it is b"), ("bb??", "wrong, it is b b")):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()  # the first class, with a probability of 1/2, always
        prediction = predict_text(model, task, text)
        assert prediction.verdict == verdict
        assert prediction.probability == pytest.approx(0.5 ** text.count("?"))
        assert prediction.answer == " ".join("a" * text.count("?"))
    assert predict_text(model, task, "aa??").verdict == "right"
    assert predict_text(model, task, "ab").verdict == "the task has no answer here"
