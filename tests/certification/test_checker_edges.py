"""The separate checker decides rightly at the edges of its bounds: ties, boundaries and the largest sizes."""

import contextlib
import itertools
import math

import numpy as np
import pytest
from forging import Forged
from mutated_proofs import is_true
from proved_nets import NETS, Proof, prove

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification import checker
from lengthwise.certification.checker import Form, Net, Rejected, Task, between

U = 2.0**-24
"""Half of the distance of 1 to the next float32: the largest relative error of one operation."""


def exactly(numbers: list[float]) -> Form:
    return between(np.array([numbers]))


def test_units_cover_sums_of_all_sizes_that_have_bounds() -> None:
    """The factor (1 + u)^n - 1 grows faster than n u, so the largest sum has the least slack."""
    size, terms = np.ones(1), 4 * checker.MAX_TERMS
    assert exactly([1.0]).rounded(size, terms).rest[0, 0] >= math.expm1(terms * math.log1p(U))
    with pytest.raises(Rejected, match="terms of a sum"):
        exactly([1.0]).rounded(size, terms + 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_exp_of_what_counts_as_zero_is_zero(dtype: str) -> None:
    """An exp of half of the type's smallest number is rounded to zero; a factor of 2 is left for errors of exp."""
    assert checker.LOG_OF_ZERO[dtype] < math.log(float(np.finfo(dtype).smallest_subnormal)) - 2 * math.log(2)


@pytest.mark.parametrize("share", [1 - 1e-9, 1.0])
@pytest.mark.parametrize("part", ["center", "rest"])
def test_an_image_that_touches_the_boundary_is_not_inside(
    part: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The axes of a set may be off by 1e-12 and float64 rounds, so that a distance of 1e-9 counts as outside."""
    image = Form(np.zeros((1, 2)), np.zeros((4, 1, 2)), np.zeros((1, 2)))
    image = image._replace(**{part: np.full((1, 2), share)})
    monkeypatch.setattr(checker, "merged", lambda *_: image)
    sets = {
        "center": np.zeros((2, 2)),
        "axes": np.stack([np.eye(2)] * 2),
        "radius": np.array([[0.0, 0.0], [1.0, 1.0]]),
        "table": np.array([[-1, -1], [-1, 1]]),
    }
    net = Net("regular-gpt", {"d_model": 2, "chunk_size": 2, "num_heads": 1}, {}, 2, 2)
    with pytest.raises(Rejected, match="outside the set"):
        checker.demand_windows_inside(net, sets)


def test_tied_logits_are_no_answer() -> None:
    """Two equal logits that are known exactly: torch takes the first, other libraries another."""
    for logits, is_answer in (([2.0, 1.0], True), ([1.0, 1.0], False), ([1.0, 2.0], False)):
        with contextlib.nullcontext() if is_answer else pytest.raises(Rejected, match="states with several answers"):
            checker.demand_ahead(exactly(logits), np.array([0]))


@pytest.mark.parametrize("temperature", [0.0, 1e-3])
def test_tied_columns_are_no_one_hot_vectors(temperature: float) -> None:
    weights = {"layers.0.temperature": np.float32(temperature), "x": np.zeros(1, np.float32)}
    net = Net("block-linear-rnn", {}, {name: np.asarray(value) for name, value in weights.items()}, 2, 2)
    assert checker.one_hot_positions(net, exactly([0.0, 1.0])).tolist() == [1]
    with pytest.raises(Rejected, match="rounding may decide where a one-hot vector has its 1"):
        checker.one_hot_positions(net, exactly([1.0, 1.0]))


def test_every_entry_of_a_tied_column_is_checked() -> None:
    """A column of zeros may lead anywhere; it is not a step that leads nowhere."""
    proof = prove(*NETS["choices"])
    dictionary = proof.arrays["weights.layers.0.dictionary"]
    for state in range(dictionary.shape[-1]):
        tied = dictionary.copy()
        tied[..., state] = 0
        with pytest.raises(Rejected):
            proof.verdict(proof.arrays | {"weights.layers.0.dictionary": tied})


def bumps(x: checker.Array) -> checker.Array:
    """A function with |f''| = 1 that is 0 at the 17 points of [-1, 1] and as far from 0 as possible in between."""
    step = 1 / 8
    first = np.floor(x / step)
    return np.asarray((x - first * step) * (x - (first + 1) * step) / 2 * np.where(first % 2 == 0, 1, -1))


def test_images_contain_the_worst_function_of_their_curvature() -> None:
    form = Form(np.zeros(1), np.ones((1, 1)), np.zeros(1))
    points = np.linspace(-1, 1, 4_001)
    low, high = form.smooth(bumps, 1.0).ends
    assert np.abs(bumps(np.linspace(-1, 1, 17))).max() < 1e-15
    assert low[0] <= bumps(points).min() < 0 < bumps(points).max() <= high[0]


@pytest.mark.parametrize("scale", [0.05, 1.0, 20.0])
@np.errstate(all="ignore")
def test_norms_use_a_curvature_that_is_large_enough(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second derivative of 1 / sqrt(x) by differences is at most the one that the bound assumes."""
    smooth, seen = Form.smooth, []

    def record(form: Form, f: object, curvature: checker.Array) -> Form:
        seen.append((form, curvature))
        return smooth(form, f, curvature)  # type: ignore[arg-type]

    monkeypatch.setattr(Form, "smooth", record)
    center = scale * np.array([1.0, -2.0, 0.5])
    Form(center, 0.1 * scale * np.eye(3)[:2], np.zeros(3)).normed({})
    ((form, curvature),) = seen
    low, high = (float(end[0]) for end in form.ends)
    x = np.linspace(low, high, 201)[1:-1]
    h = (high - low) / 1_000
    second = (1 / np.sqrt(x + h) - 2 / np.sqrt(x) + 1 / np.sqrt(x - h)) / h**2
    assert low > 0
    assert second.max() <= float(np.max(curvature))


def drawn_task(chance: np.random.Generator, size: int) -> Task:
    return Task(["a", "b"], int(chance.integers(size)), chance.integers(size, size=(size, 2)).tolist(), [0] * size)


@pytest.mark.sampled(3)  # each case enumerates all strings
@pytest.mark.parametrize("chunk", [2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_all_strings_end_where_the_machine_of_windows_says(chunk: int, seed: int) -> None:
    """Every string of up to 9 symbols ends in a pair of a class and a state that the checker knows."""
    chance, count = np.random.default_rng(seed), 4
    task, table = drawn_task(chance, 2), chance.integers(count, size=(count,) * chunk)
    machine = TreeMachine(("a", "b"), np.arange(3), table, np.zeros(count, np.int64))
    ends = set(checker.ends_at_roots({"table": table}, task))
    seen = set()
    for length in range(1, 10):
        for string in itertools.product(range(2), repeat=length):
            state = task.start
            for symbol in string:
                state = task.table[state][symbol]
            seen.add((int(machine.final_classes(np.array([string]))[0]), state))
    assert seen <= ends
    recurrence = {"table": chance.integers(count, size=(count, 2)), "start": np.array(1)}
    ends, seen = checker.ends_after_symbols(recurrence, task), set()
    for length in range(1, 10):
        for string in itertools.product(range(2), repeat=length):
            klass, state = 1, task.start
            for symbol in string:
                klass, state = int(recurrence["table"][klass, symbol]), task.table[state][symbol]
            seen.add((klass, state))
    assert seen <= ends


def min_radius(direction: checker.Array, num_steps: int) -> float:
    """Return the radius that rounding requires after some steps of I - 2 k k', for a first state k of norm 1.

    An entry 2 k_i k_j is off by S + 7 units, and the difference to 1 by one unit of the result. So a matrix is off by
    at most g, and a product of matrices by r = S (S + 1) units, relative to the norms of both.
    """
    size, removed = len(direction), 2 * np.outer(direction, direction)
    error = (size + 7) * np.abs(removed) + np.diag(np.abs(1 - np.diag(removed)))
    growth, rounding = U * float(np.linalg.norm(error)), U * size * (size + 1)
    moved = math.expm1(num_steps * math.log1p(growth))
    return moved + (1 + moved) * math.expm1(num_steps * math.log1p(rounding))


@pytest.mark.sampled
@pytest.mark.parametrize("direction", [(1.0, 0.0, 0.0, 0.0), (0.5, -0.5, 0.5, -0.5)])
@pytest.mark.parametrize("num_steps", [1, 1_000, 400_000])
@pytest.mark.parametrize("norm", [1.0, 4.0])
def test_balls_have_slack_for_the_worst_rounding_of_reflections(
    direction: tuple[float, ...], num_steps: int, norm: float
) -> None:
    proof, along = prove(*NETS["reflections"]), np.array(direction)
    embedding = proof.arrays["weights.embedding.weight"].copy()
    embedding[1, :4] = along
    points = proof.arrays["sets.points"]
    arrays = proof.arrays | {
        "weights.embedding.weight": embedding,
        "weights.layers.0.first_state": norm * along.astype(np.float32).reshape(1, 4),
        "sets.points": np.sign(points[:, :1]) * norm * along,
    }
    least = norm * min_radius(along, num_steps)
    with pytest.raises(Rejected, match="leave their balls"):
        proof.verdict(arrays | {"sets.radius": np.array(0.999 * least)}, max_length=num_steps)
    if num_steps <= 1_000:  # larger balls contain states of both answers
        assert proof.verdict(arrays | {"sets.radius": np.array(1.2 * least)}, max_length=num_steps)


def test_every_step_counts_for_the_radius_of_balls() -> None:
    """A third class repeats another one at a point that no step reaches."""
    proof = prove(*NETS["reflections"])
    table, outputs, points = (proof.arrays[f"sets.{name}"] for name in ("table", "outputs", "points"))
    for shift, is_accepted in ((0.0, True), (0.3, False)):
        arrays = proof.arrays | {
            "sets.table": np.concatenate([table, table[1:]]),
            "sets.outputs": np.concatenate([outputs, outputs[1:]]),
            "sets.points": np.concatenate([points, points[1:] + shift]),
        }
        with contextlib.nullcontext() if is_accepted else pytest.raises(Rejected, match="leave their balls"):
            proof.verdict(arrays)


def test_each_row_of_shares_is_a_distribution_of_its_own() -> None:
    logits = np.array([[0.0, 1.0, 5.0], [2.0, 2.0, 2.0], [-1.0, 0.0, 9.0]])
    exact = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    low, high = checker.softmax_shares(between(logits)).ends
    assert ((low <= exact) & (exact <= high) & (high - low < 1e-4)).all()


def test_every_head_has_to_look_at_one_part_alone() -> None:
    proof = prove(*NETS["compiled tree"])
    name = "weights.layers.0.bias"
    assert len(proof.arrays[name]) > 1
    for head in range(len(proof.arrays[name])):
        bias = proof.arrays[name].copy()
        bias[head] = 0
        with pytest.raises(Rejected, match="a head attends to more than one part"):
            proof.verdict(proof.arrays | {name: bias})


@pytest.mark.parametrize(("count", "spread"), [(2, 0.0), (2, 40.0), (100, 5.0)])
@np.errstate(all="ignore")
def test_mixtures_have_slack_for_the_worst_rounding(count: int, spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A share is off by its exponent's rounding, 8 units of exp, n of the sum and 1; its log by 8 units of |log p|."""
    seen: list[Form] = []
    monkeypatch.setattr(checker, "demand_ahead", lambda form, _: seen.append(form))
    logits = np.zeros((1, count))
    logits[0, 0] = spread
    checker.demand_mixture(logits, np.array([0]))
    worst = (spread + 8 + 8 + count + 1 + 8 * (spread + math.log(count))) * U
    assert (seen[0].radius >= worst).all()


def test_codes_have_slack_for_their_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    """The net computes c.y - |c|^2 / 2, and |c|^2 / 2 itself, in float32."""
    proof = prove(*NETS["codes"])
    name = "weights.codebook.codes"
    arrays = proof.arrays | {name: proof.arrays[name] / np.float32(3)}  # whose squares are rounded
    weights = arrays[name].astype(np.float64)
    point, seen = weights[:1] / 8, list[Form]()
    monkeypatch.setattr(checker, "merged", lambda net, parts: between(np.repeat(point, len(parts[0].center), 0)))
    monkeypatch.setattr(checker, "demand_ahead", lambda form, _: seen.append(form))
    proof.verdict(arrays)
    codes = weights[: int(proof.arrays["weights.codebook.count"])]
    size, squares, width = np.abs(point) @ np.abs(codes).T, (codes**2).sum(1) / 2, codes.shape[1]
    assert (seen[0].radius >= U * ((width + 1) * (size + squares) + (width + 1) * squares)).all()


def other_cells(proof: Proof, chance: np.random.Generator, count: int) -> list[Forged]:
    """Make another class the largest in some cells of a grid's rule."""
    table = proof.arrays["weights.cell.table"]
    forged: list[Forged] = []
    for _ in range(count):
        changed = table.copy()
        cell = tuple(int(chance.integers(size)) for size in table.shape[:-1])
        changed[cell] = np.roll(changed[cell], 1 + int(chance.integers(table.shape[-1] - 1)))
        forged.append((proof.arrays | {"weights.cell.table": changed}, {}))
    return forged


def test_rules_with_another_cell_are_rejected_if_they_err() -> None:
    proof = prove(*NETS["rule"])
    num_rejected = 0
    for arrays, _ in other_cells(proof, np.random.default_rng(0), 40):
        assert not isinstance(arrays, bytes)
        if not is_true(proof.certificate, arrays):
            num_rejected += 1
            with pytest.raises(Rejected):
                proof.verdict(arrays)
    assert num_rejected > 5
