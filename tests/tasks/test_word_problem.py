"""Word problems, against composition symbol by symbol."""

import itertools

import numpy as np
import pytest
import torch
from task_strings import all_strings, check_against_transducer, seeded

from lengthwise.tasks import make_task
from lengthwise.tasks.regular.word_problem import WordProblem
from lengthwise.training.batches import training_lengths
from lengthwise.training.recipe import Recipe

TRANSPOSITIONS = [[1, 0, 2, 3], [0, 2, 1, 3], [0, 1, 3, 2]]
TASKS = [
    *(make_task("word-problem", group=name) for name in ("S3", "S4", "A5", "Z2", "Z7")),
    make_task("word-problem", generators=TRANSPOSITIONS),
    make_task("word-problem", generators=[[1, 2, 0, 3, 4]]),
]
every_task = pytest.mark.parametrize("task", TASKS, ids=repr)


def products(task: WordProblem, word: list[int]) -> list[tuple[int, ...]]:
    """The product so far after every symbol, by composing generators one at a time."""
    generators = [tuple(permutation) for permutation in task.action.generators]
    actual = [tuple(range(task.action.degree))]
    for symbol in word:
        actual.append(tuple(generators[symbol][image] for image in actual[-1]))
    return actual[1:]


@every_task
@pytest.mark.parametrize("length", [1, 2, 3, 40, 63, 64, 501])
def test_answers_are_products_from_left_to_right(task: WordProblem, length: int) -> None:
    inputs = torch.randint(len(task.symbols), (5, length), generator=seeded(length))
    for word, answers in zip(inputs.tolist(), task.solve(inputs).numpy(), strict=True):
        assert [tuple(images) for images in task.action.elements[answers].tolist()] == products(task, word)


@every_task
def test_formula_and_machine_agree(task: WordProblem) -> None:
    check_against_transducer(task)


@every_task
def test_a_length_is_balanced_when_its_strings_reach_every_element(task: WordProblem) -> None:
    for length in range(1, 9):
        reached = {products(task, word)[-1] for word in itertools.product(range(len(task.symbols)), repeat=length)}
        assert task.is_balanced_length(length) == (len(reached) == len(task.classes))


@every_task
def test_the_baseline_is_that_of_the_markov_chain(task: WordProblem) -> None:
    machine = task.transducer.semiautomaton
    chain = machine.transition_matrix(np.full(machine.num_symbols, 1 / machine.num_symbols))
    for length in (1, 2, 3, 7, 40, 63, 500):
        share = np.linalg.matrix_power(chain, length)[task.transducer.start].max()
        assert task.baseline(length) == pytest.approx(share, rel=1e-9)


def test_all_words_of_a_length_are_drawn_alike() -> None:
    task = make_task("word-problem", group="A5")
    drawn, counts = task.sample(32_000, 5, seeded(0)).inputs.unique(dim=0, return_counts=True)
    assert torch.equal(drawn, all_strings(2, 5))
    assert ((counts - 1_000.0) ** 2 / 1_000).sum() < 2 * len(counts)


@pytest.mark.parametrize(
    "name", [*(f"S{n}" for n in range(2, 7)), *(f"A{n}" for n in range(3, 7)), *(f"Z{n}" for n in range(2, 101))]
)
def test_named_groups_are_balanced_from_some_length_on(name: str) -> None:
    task = make_task("word-problem", group=name)
    balanced = [task.is_balanced_length(length) for length in range(1, 120)]
    assert balanced == sorted(balanced)
    assert balanced[-1]


def test_odd_generators_are_balanced_at_no_length() -> None:
    task = make_task("word-problem", group="S4", generators=TRANSPOSITIONS)
    assert not any(task.is_balanced_length(length) for length in range(1, 100))
    with pytest.raises(ValueError, match="length"):
        training_lengths(task, Recipe())
    assert training_lengths(task, Recipe(lengths="legal")) == (list(range(1, 41)), [])
    assert task.baseline(100) == pytest.approx(1 / 12)


def test_generators_name_their_group_or_need_no_name() -> None:
    rotations = [[1, 2, 0], [2, 0, 1]]
    unnamed = make_task("word-problem", generators=rotations)
    assert unnamed.classes == make_task("word-problem", group="A3").classes
    assert unnamed.group == ""
    assert make_task("word-problem", **unnamed.model_dump(mode="json")) == unnamed
    assert make_task("word-problem", group="Z3", generators=rotations).symbols == ("a", "b")
    assert make_task("word-problem").group == "S3"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"group": "Q10"}, r"^task\.group: expected one of S2 to S6, .*, got 'Q10'; use generators for other groups$"),
        ({"group": "S7"}, r"^task\.group: expected one of S2 to S6, .*, got 'S7'; "),
        ({"group": ""}, r"^task\.group: expected one of .*, got ''; "),
        ({"generators": [[0, 0]]}, r"^task\.generators: expected each of 0\.\.1 once, got \[0, 0\] as generator 0; "),
        (
            {"generators": [[1, 0], [1, 2, 0]]},
            r"^task\.generators: expected permutations of the same number of points, got",
        ),
        ({"generators": [["x"]]}, r"^task\.generators\.0\.0: expected a valid integer.*, got 'x'; give such a value$"),
        (
            {"generators": [[]]},
            r"^task\.generators: expected more than the identity, got the identity alone; add a permutation",
        ),
        ({"generators": [[0, 1, 2]]}, r"^task\.generators: expected more than the identity, got the identity alone; "),
        (
            {"generators": [[1, 0, *range(2, 8)], [*range(1, 8), 0]]},
            r"^task\.generators: expected permutations whose group has at most 1,000 elements, got more elements; take",
        ),
        (
            {"group": "S3", "generators": [[1, 2, 0]]},
            r"^task\.generators: expected generators of S3, got generators of another group \(3 elements\); leave out",
        ),
    ],
)
def test_bad_fields_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_task("word-problem", **fields)


@pytest.mark.parametrize("group", ["S3", "A5"])
def test_every_element_is_a_symbol(group: str) -> None:
    task = WordProblem(group=group, alphabet="elements")
    assert list(task.action.meanings.values()) == list(task.classes)
    inputs = torch.arange(len(task.symbols))[:, None]
    assert torch.equal(task.solve(inputs), inputs)
    assert task.is_balanced_length(1)
    batch = task.sample(4, 63, torch.Generator().manual_seed(0))
    assert torch.equal(torch.from_numpy(task.transducer.run(batch.inputs.numpy())), batch.targets)


def test_the_default_alphabet_is_not_part_of_a_description() -> None:
    assert "alphabet" not in WordProblem(group="S3").model_dump()
    assert WordProblem(group="S3", alphabet="elements").model_dump()["alphabet"] == "elements"
