import pytest
import torch

from lengthwise import make_model, make_task
from lengthwise.conventions import NUM_SPECIAL, PAD
from lengthwise.models.grid_recurrence import GridRecurrence
from lengthwise.ops.grid import grid_by_definition

TASK = make_task("levenshtein-distance", alphabet=3, max_length=30)
KINDS = ("categorical", "rule", "free")


def net(kind: str, seed: int = 0) -> GridRecurrence:
    settings = {"messages": "free", "d_model": 4, "hidden": 8} if kind == "free" else {"num_messages": 4}
    model = make_model("grid-recurrence", TASK, seed=seed, **settings)
    if kind == "rule":
        model.set_progress(1.0)
        with torch.no_grad():
            model.cell.per_class.mul_(8)
    return model.double()


def by_definition(model: GridRecurrence, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """The number for two strings, from all messages, cell by cell."""
    cell = model.cell
    down, _ = grid_by_definition(cell.rule(), *cell.borders(), first, second)
    rows, columns = (torch.full((len(first), 1), string.shape[1]) for string in (first, second))
    return cell.numbers(down[:, -1], rows, columns)[:, 0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 6), (7, 1), (3, 5), (6, 6)])
def test_numbers_are_those_of_the_definition_and_so_are_gradients(kind: str, height: int, width: int) -> None:
    model = net(kind)
    first, second = (
        torch.randint(3, (5, size), generator=torch.Generator().manual_seed(size)) for size in (height, width)
    )
    bar, sep = torch.ones(5, 1, dtype=torch.int64), torch.zeros(5, 1, dtype=torch.int64)
    problems = torch.cat([first + NUM_SPECIAL, bar, second + NUM_SPECIAL, sep], 1)
    numbers = [model.last_state(problems)[:, 0], by_definition(model, first, second)]
    torch.testing.assert_close(*numbers)
    factors = torch.linspace(-1, 1, 5, dtype=torch.float64)
    parameters = list(model.parameters())
    gradients = [
        torch.autograd.grad((values * factors).sum(), parameters, materialize_grads=True) for values in numbers
    ]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("kind", KINDS)
def test_strings_of_different_sizes_go_together_and_pads_are_no_letters(kind: str) -> None:
    model, problems = net(kind), ["a b | b <sep>", "c | a b c a <sep>", "a b c | a a <sep>", "a | a <sep>"]
    rows = [TASK.encode(problem) for problem in problems]
    width = max(map(len, rows))
    together = torch.stack([torch.nn.functional.pad(row, (0, width - len(row)), value=PAD) for row in rows])
    alone = torch.cat([model.last_state(row[None]) for row in rows])
    torch.testing.assert_close(model.last_state(together), alone)


@pytest.mark.parametrize("kind", KINDS)
def test_a_prefix_is_answered_from_its_own_rows_and_columns(kind: str) -> None:
    model, problem = net(kind), TASK.encode("a b c | b c a <sep>")
    numbers = model.numbers(problem[None])[0]
    per_row = model.cell.integers()[1] if kind == "rule" else model.cell.per_row
    torch.testing.assert_close(numbers[:4], (per_row * torch.tensor([1, 2, 3, 3])).double())
    for columns in (1, 2, 3):
        part = problem[: 4 + columns] - NUM_SPECIAL
        torch.testing.assert_close(numbers[3 + columns], by_definition(model, part[None, :3], part[None, 4:])[0])


def test_the_nearest_integer_is_the_answer_and_none_below_0_is_right_by_chance() -> None:
    model = net("rule")
    numbers = torch.tensor([[0.2], [2.0], [7.4], [-3.0]], dtype=torch.float64)
    assert model.readout(numbers).argmax(-1).tolist() == [0, 2, 7, 0]
    assert model.readout(numbers).shape[-1] == len(TASK.classes)


def test_training_ends_in_classes_and_integers() -> None:
    model = net("categorical").float()
    for fraction, is_rule in ((0.0, False), (0.7, False), (0.89, False), (0.9, True), (1.0, True)):
        model.set_progress(fraction)
        assert model.cell.is_rule is is_rule
        messages = model.cell.borders()[0]
        assert messages.is_floating_point() is not is_rule
    numbers = model.numbers(TASK.encode("a b | b a <sep>")[None])
    assert torch.equal(numbers, numbers.round())


def test_a_rule_and_its_one_hot_distributions_answer_alike() -> None:
    """Looked up as classes, and mixed by distributions that have one class each."""
    rule, soft = net("rule"), net("rule")
    soft.cell.rounding.fill_(1.0 - 1e-12)  # the same numbers to within that, by the form that mixes
    inputs = TASK.sample(20, 12, torch.Generator().manual_seed(0)).inputs
    torch.testing.assert_close(soft.numbers(inputs), rule.numbers(inputs), rtol=0, atol=1e-9)


def test_sums_of_a_rule_are_exact_where_float32_is_not() -> None:
    model = net("rule").float()
    with torch.no_grad():
        model.cell.per_class.fill_(2.0**24 - 1)
        model.cell.per_row.fill_(1 - 2.0**24)
    problem = TASK.encode("a b c a | b c a <sep>")
    assert model.last_state(problem[None]).item() == 1 - 2**24  # 3 columns, 4 rows
    longer = TASK.encode("a b c a a b c a | b c a a b c a a b <sep>")
    assert model.last_state(longer[None]).item() == 2**24 - 1
