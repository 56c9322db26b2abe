"""Tasks whose answer is a string: against a slow rule for each, and how symbols of the answer are queried."""

from collections.abc import Callable, Sequence
from statistics import fmean

import pytest
import torch
from task_strings import all_strings, seeded

from lengthwise import certify, length_curve, make_model
from lengthwise.conventions import IGNORE
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.report.tables.shallow_baselines import best_shallow_baseline
from lengthwise.runs.predict import predict_text
from lengthwise.tasks import Batch, make_task
from lengthwise.tasks.algorithmic.string_answer import DONE, NUM_CONTROLS, QUERY, StringAnswerTask
from lengthwise.training.batches import Batches
from lengthwise.training.recipe import Recipe


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


def digits_of_product(text: Sequence[str]) -> list[str] | None:
    numbers = "".join(text).split("*")
    if len(numbers) != 2 or not all(numbers):
        return None
    # The product by hand: a shifted summand for each 1.
    product = sum(int(digit) * (int(numbers[1][::-1], 2) << shift) for shift, digit in enumerate(numbers[0]))
    return [*(f"{product:b}"[::-1] if product else ""), "end"]


def digits_of_root(text: Sequence[str]) -> list[str]:
    number, root = int("".join(text), 2), 0
    width = (len(text) + 1) // 2
    for bit in reversed(range(width)):
        root += (1 << bit) * ((root + (1 << bit)) ** 2 <= number)
    return [*f"{root:b}".zfill(width)]


RULES: dict[str, Callable[[Sequence[str]], list[str] | None]] = {
    "reverse-string": lambda text: list(reversed(text)),
    "duplicate-string": lambda text: [*text, *text],
    "bucket-sort": sorted,
    "stack-manipulation": stack_after,
    "binary-addition": digits_of_sum,
    "binary-multiplication": digits_of_product,
    "odds-first": lambda text: [*text[::2], *text[1::2]],
    "compute-sqrt": digits_of_root,
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
        with pytest.raises(ValueError, match=rf"^task\.{field}: expected a number .* got {value}; give such a value$"):
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


@pytest.mark.parametrize("length", [3, 6])
def test_how_many_digits_of_a_sum_are_ones_is_counted_over_all_strings(length: int) -> None:
    task = make_task("binary-addition")
    shares: dict[int, list[float]] = {}
    for string in all_strings(3, length):
        text = "".join(task.letters[letter] for letter in string)
        answer = digits_of_sum(text)
        if answer is not None and all("1" in number for number in text.split("+")):
            shares.setdefault(text.index("+"), []).append(answer.count("1") / len(answer))
    assert task.baseline(length) == pytest.approx(fmean(map(fmean, shares.values())))


def test_where_baselines_end_being_exact_they_are_near_a_half() -> None:
    addition, stack = make_task("binary-addition"), make_task("stack-manipulation")
    assert 0.5 - 0.005 < addition.baseline(16) < addition.baseline(17) == 0.5
    assert 0.5 - 0.001 < stack.baseline(1_000) < stack.baseline(1_001) == 0.5


def test_baselines_are_those_of_the_letters_that_there_are() -> None:
    assert make_task("bucket-sort", num_digits=2).baseline(9) == 1 / 2
    assert make_task("reverse-string", num_letters=4).baseline(9) == 1 / 4
    assert make_task("bucket-sort").base_rates(9)["majority class"] == 1 / 5


def test_the_shortest_strings(task: StringAnswerTask) -> None:
    shortest = {"stack-manipulation": 2, "binary-addition": 3, "binary-multiplication": 3}.get(task.name, 1)
    assert [length for length in range(-1, 6) if task.is_legal_length(length)] == list(range(shortest, 6))
    inputs, targets = task.sample(1, shortest, seeded(0))
    assert torch.equal(task.solve(inputs), targets)


def test_of_all_answers_every_symbol_is_queried(task: StringAnswerTask) -> None:
    inputs, targets = task.sample_all_answers(200, 9, seeded(0))
    assert torch.equal(task.solve(inputs), targets)
    rows = [[task.classes[answer] for answer in row[row != IGNORE]] for row in targets]
    assert rows == expected(task, inputs[:, :9] - NUM_CONTROLS)


def test_training_by_all_prefixes_queries_every_symbol_and_by_last_answers_any(task: StringAnswerTask) -> None:
    shares = {}
    for supervision in ("last", "prefix"):
        recipe = Recipe(batch_size=2_000, supervision=supervision)
        inputs, targets = Batches(task, recipe, seed=0).draw(0, 12, seeded(0))
        longest = task.solve(inputs.where(inputs != DONE, QUERY)) != IGNORE
        shares[supervision] = float((targets != IGNORE).sum() / longest.sum())
    assert shares["prefix"] == 1
    assert shares["last"] < 0.7


def test_sorting_is_mostly_known_from_the_share_that_is_queried_for() -> None:
    rates = make_task("bucket-sort").base_rates(500)
    assert rates["share of the answer"] == pytest.approx(0.93, abs=0.01), "as its page says"
    assert rates["position in the answer"] == pytest.approx(0.93, abs=0.01)
    assert best_shallow_baseline(make_task("bucket-sort"), [500]).what == "share of the answer"
    assert best_shallow_baseline(make_task("duplicate-string"), range(41, 200)) == ("majority class", 0.5)


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


@pytest.mark.parametrize(("is_wrong_last", "accuracy"), [(False, 1.0), (True, 0.0)])
def test_a_net_is_measured_at_the_last_query_alone(
    task: StringAnswerTask, is_wrong_last: bool, accuracy: float
) -> None:
    def forward(inputs: torch.Tensor) -> torch.Tensor:
        targets = task.solve(inputs)
        is_last = torch.arange(inputs.shape[1]) == Batch(inputs, targets).last_supervised[:, None]
        answers = targets.clamp(min=0) + (is_last if is_wrong_last else ~is_last).long()
        return torch.nn.functional.one_hot(answers % len(task.classes), len(task.classes)).float()

    model = make_model("gru", task)
    model.forward = forward
    (point,) = length_curve(model, task, [30], num_strings=500).points
    assert point.accuracy == accuracy


def test_there_are_no_certificates_and_no_structured_strings(task: StringAnswerTask) -> None:
    model = make_model("gru", task)
    with pytest.raises(ValueError, match=rf"^task: .*{task.name}"):
        certify(model, task)
    with pytest.raises(ValueError, match=rf"^protocol: expected 'independent', .* {task.name} .*, got 'structured'; "):
        length_curve(model, task, [30], protocol="structured")
    plan = EvaluationPlan(dense=(9, 10), dense_strings=4, long=(), structured=((20, 4),))
    assert not dict(plan.measure(model, task))["structured"].points


@pytest.mark.parametrize(
    ("text", "answer", "verdict"),
    [
        ("abb???", "a a a", "wrong, it is b b a"),
        ("abb?..", "a", "wrong, it is b"),
        ("aa??", "a a", "right"),
        ("aa???", "a a a", "right; the task has no answer to 1 of these queries"),
        ("bb?a?", "a a", "wrong, it is b -; the task has no answer to 1 of these queries"),
        ("ab", "a", "the task has no answer here"),
    ],
)
def test_predictions_are_all_symbols_that_are_queried(text: str, answer: str, verdict: str) -> None:
    task = make_task("reverse-string")
    model = make_model("gru", task)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()  # the first class, with a probability of 1/2, always
    assert predict_text(model, task, text) == (answer, 0.5 ** max(1, text.count("?")), verdict)
