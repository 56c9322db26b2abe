"""What every registered task promises, whatever its name."""

from functools import cache

import numpy as np
import pytest
import torch
from checked_types import begin
from pydantic import ValidationError

from lengthwise.conventions import IGNORE, NUM_SPECIAL, PAD
from lengthwise.tasks import TASKS, Batch, OracleTask, RegularTask, SymbolTask, Task, VectorTask, make_task
from lengthwise.tasks.algorithmic.two_strings import GridTask
from lengthwise.tasks.regular.parity import Parity

LENGTHS = range(1, 13)
MEMBERS = [make_task(name) for name in TASKS]


def every_member(kind: type[Task]) -> pytest.MarkDecorator:
    members = [task for task in MEMBERS if isinstance(task, kind)]
    return pytest.mark.parametrize("task", members, ids=lambda task: task.name)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def legal_lengths(task: Task) -> list[int]:
    return [length for length in LENGTHS if task.is_legal_length(length)]


def final_answers(targets: torch.Tensor) -> torch.Tensor:
    """The last supervised answer of each row."""
    supervised = targets != IGNORE
    assert supervised.any(dim=1).all()
    last = targets.shape[1] - 1 - supervised.flip(1).to(torch.int64).argmax(dim=1)
    return targets.gather(1, last[:, None])[:, 0]


def frequencies(task: SymbolTask, answers: torch.Tensor) -> np.ndarray:
    return torch.bincount(answers, minlength=len(task.classes)).numpy() / len(answers)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_made_by_its_name(name: str) -> None:
    assert isinstance(make_task(name), TASKS[name])


@every_member(Task)
def test_tasks_are_frozen_hashable_values(task: Task) -> None:
    again = make_task(task.name)
    assert task == again
    assert hash(task) == hash(again)
    for field in type(task).model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(task, field, getattr(task, field))


@every_member(Task)
def test_an_unknown_field_is_refused_with_the_nearest_name(task: Task) -> None:
    with pytest.raises(ValueError, match=r"task\.surely_not_a_field: no such setting"):
        make_task(task.name, surely_not_a_field=1)
    for field in type(task).model_fields:
        with pytest.raises(ValueError, match=f"task.{field}{field[-1]}: no such setting; did you mean {field!r}"):
            make_task(task.name, **{field + field[-1]: 1})


@every_member(Task)
def test_illegal_lengths_are_refused_by_the_nearest_legal_ones(task: Task) -> None:
    assert legal_lengths(task)
    for length in (-1, 0, *LENGTHS):
        if length >= 1 and task.is_legal_length(length):
            task.check_length(length)
            continue
        assert not task.is_legal_length(length)
        for refused in (lambda n: task.sample(2, n, seeded(0)), task.baseline):
            with pytest.raises(ValueError, match=rf"length: {task.name} has no strings of length {length}; legal"):
                refused(length)


@every_member(Task)
def test_balanced_lengths_are_legal_and_exist(task: Task) -> None:
    assert any(task.is_balanced_length(length) for length in LENGTHS)
    for length in (-1, 0, *LENGTHS):
        assert task.is_legal_length(length) or not task.is_balanced_length(length)


@every_member(Task)
def test_samples_are_decided_by_the_generator(task: Task) -> None:
    for length in {legal_lengths(task)[-1], max(n for n in range(1, 102) if task.is_legal_length(n))}:
        first, again, other = (task.sample(64, length, seeded(seed)) for seed in (7, 7, 8))
        for one, two in zip(first, again, strict=True):
            torch.testing.assert_close(one, two, rtol=0, atol=0, equal_nan=True)
        assert not torch.equal(first.inputs, other.inputs)


@every_member(Task)
def test_samples_leave_the_global_generator_alone(task: Task) -> None:
    before = torch.get_rng_state()
    task.sample(8, legal_lengths(task)[-1], seeded(0))
    assert torch.equal(torch.get_rng_state(), before)


@every_member(SymbolTask)
def test_samples_are_symbols_and_classes(task: SymbolTask) -> None:
    for length in legal_lengths(task):
        for batch_size in (1, 2, 33):
            inputs, targets = task.sample(batch_size, length, seeded(length))
            assert inputs.dtype == targets.dtype == torch.int64
            assert inputs.shape[0] == batch_size
            assert inputs.shape == targets.shape
            assert inputs.is_contiguous()
            assert targets.is_contiguous()
            assert inputs.min() >= PAD
            assert inputs.max() < len(task.symbols)
            padded = inputs == PAD  # only at the end, which is unsupervised, and as little as possible
            assert (padded[:, 1:] | ~padded[:, :-1]).all()
            assert not padded.all(dim=0).any()
            assert (targets[padded] == IGNORE).all()
            assert ((targets == IGNORE) | ((targets >= 0) & (targets < len(task.classes)))).all()
            assert (targets != IGNORE).any(dim=1).all()


@every_member(SymbolTask)
def test_names_of_symbols_and_classes_are_distinct(task: SymbolTask) -> None:
    assert len(set(task.symbols)) == len(task.symbols)
    assert len(set(task.classes)) == len(task.classes)
    if task.separator:
        assert all(symbol.split(task.separator) == symbol.split() == [symbol] for symbol in task.symbols)
    else:
        assert all(len(symbol) == 1 for symbol in task.symbols)


@cache
def drawn_answers(task: SymbolTask, length: int) -> torch.Tensor:
    """Return the final answers to 4,000 samples."""
    return final_answers(task.sample(4_000, length, seeded(length)).targets)


@every_member(SymbolTask)
def test_every_class_is_the_final_answer_exactly_at_balanced_lengths(task: SymbolTask) -> None:
    """Every class of a finite machine; of answers that may grow with the length, two."""
    minimum = len(task.classes) if isinstance(task, RegularTask) else 2
    for length in legal_lengths(task):
        answers = drawn_answers(task, length)
        assert (len(answers.unique()) >= minimum) == task.is_balanced_length(length)


@every_member(SymbolTask)
def test_baseline_is_the_share_of_the_likeliest_final_answer(task: SymbolTask) -> None:
    for length in legal_lengths(task):
        answers = drawn_answers(task, length)
        assert frequencies(task, answers).max() == pytest.approx(task.baseline(length), abs=0.03)


@every_member(SymbolTask)
def test_encode_and_decode_are_inverse(task: SymbolTask) -> None:
    ids = task.sample(1, legal_lengths(task)[-1], seeded(0)).inputs[0]
    assert torch.equal(task.encode(task.decode(ids)), ids)
    every = task.separator.join(task.symbols)
    assert torch.equal(task.encode(every), torch.arange(len(task.symbols)))
    assert torch.equal(task.encode(task.symbols), torch.arange(len(task.symbols)))
    assert task.decode(task.encode(every)) == every
    assert task.decode(torch.tensor([0, PAD, PAD])) == task.symbols[0]
    if " " not in task.symbols:
        assert torch.equal(task.encode(" ".join(task.symbols)), torch.arange(len(task.symbols)))


@every_member(SymbolTask)
def test_encode_says_what_is_wrong_and_where(task: SymbolTask) -> None:
    with pytest.raises(ValueError, match=f"text: expected at least one symbol of {task.name}, got"):
        task.encode("")
    foreign = next(symbol for symbol in "?#~\N{SNOWMAN}" if symbol not in task.symbols)
    with pytest.raises(ValueError, match=rf"text: '\{foreign}' at position 3 is not a symbol of {task.name}"):
        task.encode(task.separator.join([task.symbols[0], task.symbols[0], foreign, task.symbols[0]]))
    if not task.separator and " " not in task.symbols:
        with pytest.raises(ValueError, match=rf"text: '\{foreign}' at position 3 is not a symbol of {task.name}"):
            task.encode(f"{task.symbols[0]} {foreign}")


@every_member(VectorTask)
def test_samples_are_vectors_and_numbers(task: VectorTask) -> None:
    for length in legal_lengths(task):
        for batch_size in (1, 2, 33):
            inputs, targets = task.sample(batch_size, length, seeded(length))
            assert inputs.dtype == targets.dtype == torch.float32
            assert inputs.shape == (batch_size, targets.shape[1], task.input_dim)
            assert targets.shape[0] == batch_size
            assert inputs.is_contiguous()
            assert targets.is_contiguous()
            assert inputs.isfinite().all()
            assert not targets.isinf().any()
            assert (~targets.isnan()).any(dim=1).all()


@every_member(VectorTask)
def test_baseline_is_the_error_of_the_best_constant(task: VectorTask) -> None:
    for length in legal_lengths(task):
        targets = task.sample(10_000, length, seeded(length)).targets
        last_supervised = targets.shape[1] - 1 - (~targets.isnan()).flip(1).int().argmax(dim=1)
        last = targets.gather(1, last_supervised[:, None])
        assert last.var().item() == pytest.approx(task.baseline(length), rel=0.05)


@every_member(OracleTask)
def test_the_oracle_answers_the_samples(task: OracleTask) -> None:
    for length in legal_lengths(task):
        inputs, targets = task.sample(64, length, seeded(length))
        assert torch.equal(task.solve(inputs), targets)


@every_member(OracleTask)
def test_the_answer_to_a_prefix_ignores_what_follows(task: OracleTask) -> None:
    inputs = torch.randint(len(task.symbols), (64, 12), generator=seeded(0))
    answers = task.solve(inputs)
    for length in LENGTHS:
        assert torch.equal(task.solve(inputs[:, :length]), answers[:, :length])


@every_member(RegularTask)
def test_formula_and_transducer_agree_on_any_string(task: RegularTask) -> None:
    assert task.transducer.symbols == task.symbols
    for length in range(1, 8):
        inputs = torch.randint(len(task.symbols), (500, length), generator=seeded(length))
        np.testing.assert_array_equal(task.solve(inputs).numpy(), task.transducer.run(inputs.numpy()))


@every_member(RegularTask)
def test_formula_and_transducer_agree_on_long_samples(task: RegularTask) -> None:
    length = 500 if task.is_legal_length(500) else 499
    inputs, targets = task.sample(64, length, seeded(0))
    np.testing.assert_array_equal(targets.numpy(), task.transducer.run(inputs.numpy()))


EXCHANGEABLE = [task for task in MEMBERS if isinstance(task, RegularTask) and task.prefix_exchangeable]


@pytest.mark.parametrize("task", EXCHANGEABLE, ids=lambda task: task.name)
def test_prefixes_are_distributed_as_samples_where_that_is_claimed(task: RegularTask) -> None:
    rows = 20_000
    *shorter, longest = legal_lengths(task)
    whole = task.sample(rows, longest, seeded(0))
    for length in shorter:
        own = task.sample(rows, length, seeded(length))
        symbols = [
            torch.bincount(inputs[:, length - 1], minlength=len(task.symbols)) / rows
            for inputs in (whole.inputs, own.inputs)
        ]
        torch.testing.assert_close(symbols[0], symbols[1], rtol=0, atol=0.02)
        expected = frequencies(task, final_answers(own.targets))
        np.testing.assert_allclose(frequencies(task, final_answers(whole.targets[:, :length])), expected, atol=0.02)


@every_member(GridTask)
def test_the_rule_and_the_oracle_agree(task: GridTask) -> None:
    """Of all pairs of strings of two letters, and of random ones."""
    rule = task.reference
    assert rule.symbols == task.symbols[NUM_SPECIAL:]
    letters = torch.cartesian_prod(*[torch.arange(2)] * 8)
    pairs = [(letters[:, :height], letters[:, height:]) for height in range(1, 8)]
    pairs += [torch.randint(len(rule.symbols), (2, 64, 25), generator=seeded(0)).unbind(0)]
    for first, second in pairs:
        assert torch.equal(torch.from_numpy(rule.run(first.numpy(), second.numpy())), task.compare(first, second))


@every_member(Task)
def test_wrong_requests_for_samples_are_errors_before_anything_is_drawn(task: Task) -> None:
    begin(is_checked=False)  # annotations reject the wrong types before the task can
    length = legal_lengths(task)[-1]
    before = torch.get_rng_state()
    for sample in (task.sample, task.sample_all_answers):
        for batch_size in (-1, 0, 2.5, True, "2"):
            with pytest.raises(
                ValueError, match=r"batch_size: expected a whole number of at least 1, got .*; give 1 or more"
            ):
                sample(batch_size, length, seeded(0))
        for wrong in (2.5, True, "3"):
            with pytest.raises(ValueError, match=r"length: expected a whole number, got .*; give an int such as 40"):
                sample(2, wrong, seeded(0))
        with pytest.raises(ValueError, match=r"batch_size: expected at most 4,294,967,296 symbols .*; draw"):
            sample(10**12, length, seeded(0))
        for generator in (None, 0, np.random.default_rng(0)):
            with pytest.raises(ValueError, match=r"generator: expected a torch\.Generator, got .*; give one"):
                sample(2, length, generator)
    for is_of_kind in (task.is_legal_length, task.is_balanced_length):
        for wrong in ("a", 1.5, True, None):
            with pytest.raises(ValueError, match=r"length: expected a whole number, got .*; give an int such as 40"):
                is_of_kind(wrong)
    assert torch.equal(torch.get_rng_state(), before)


@every_member(OracleTask)
def test_ids_of_no_symbol_are_errors(task: OracleTask) -> None:
    size = len(task.symbols)
    for wrong in (-7, size, 10**9):
        expected = (
            rf"inputs: expected ids in 0\.\.{size - 1} for {task.name}, got {wrong}; make strings with task.encode"
        )
        with pytest.raises(ValueError, match=expected):
            task.solve(torch.tensor([[0, wrong]]))
    for wrong in (torch.zeros(1, 2), torch.zeros(1, 2, dtype=torch.int32), torch.zeros(2).long(), [[0, 0]]):
        with pytest.raises(
            ValueError, match=r"inputs: expected ids of torch\.int64 \[B, T\], got .*; make each string"
        ):
            task.solve(wrong)


@every_member(OracleTask)
def test_prefixes_that_contain_a_pad_have_no_answer(task: OracleTask) -> None:
    """The prefixes before it have the answers that they have without it."""
    inputs = torch.randint(len(task.symbols), (64, 12), generator=seeded(0))
    padded = inputs.clone()
    padded[:, 7], padded[::2, 9:] = PAD, PAD
    answers = task.solve(padded)
    assert torch.equal(answers[:, :7], task.solve(inputs)[:, :7])
    assert (answers[:, 7:] == IGNORE).all()


def test_methods_of_a_task_of_yours_are_checked_like_those_of_the_package() -> None:
    class Ends(Parity):
        """Is the last symbol `b`?"""

        def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
            inputs = super().sample(batch_size, length, generator).inputs
            return Batch(inputs, self.solve(inputs))

        def solve(self, inputs: torch.Tensor) -> torch.Tensor:
            assert (inputs >= 0).all()
            return inputs.clone()

    task = Ends()
    assert torch.equal(*task.sample(3, 4, seeded(0)))
    assert task.solve(torch.tensor([[1, 0, PAD]])).tolist() == [[1, 0, IGNORE]]
    with pytest.raises(
        ValueError, match=r"inputs: expected ids in 0\.\.1 for parity, got 5; make strings with task.encode"
    ):
        task.solve(torch.tensor([[0, 5]]))
    with pytest.raises(ValueError, match=r"generator: expected a torch\.Generator, got None; give one"):
        task.sample(2, 3, None)
