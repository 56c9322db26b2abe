"""x_t = P D x_{t-1} + v with one 1 in every column of P: both ways of computing it against matrices written out."""

import pytest
import torch

from lengthwise.conventions import Diverged
from lengthwise.ops import sparse_recurrence as ops
from lengthwise.ops.block_recurrence import MIN_CHUNKED_STEPS
from lengthwise.ops.sparse_recurrence import sparse_recurrence, sparse_recurrence_by_definition

LENGTHS = [1, 2, MIN_CHUNKED_STEPS - 1, MIN_CHUNKED_STEPS, MIN_CHUNKED_STEPS + 1, 3 * MIN_CHUNKED_STEPS + 5]
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10}
NAMES = ("mixtures", "dictionary", "factors", "values", "rows", "initial")


def draw(length: int, dtype: torch.dtype, *, parts: int, diagonal: bool, driven: bool, by_position: bool) -> dict:
    """Tables of 3 symbols, or of all positions of 2 strings; factors of size 1 at most, so that no state grows."""
    generator = torch.Generator().manual_seed(length)
    num_rows = 2 * length if by_position else 3

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    factors = torch.nn.functional.normalize(normal(num_rows, 5, parts), dim=-1) if diagonal else None
    drawn = [normal(num_rows, 4), normal(4, 5, 5), factors, normal(num_rows, 5, parts) if driven else None]
    rows = torch.randint(3, (2, length), generator=generator)
    rows = torch.arange(num_rows).view(2, -1) if by_position else rows
    given = dict(zip(NAMES, [*drawn, rows, normal(2, 5, parts)], strict=True))
    return {name: x.requires_grad_() if x is not None and name != "rows" else x for name, x in given.items()}


KINDS = [
    {"parts": 2, "diagonal": True, "driven": True, "by_position": False},
    {"parts": 2, "diagonal": True, "driven": True, "by_position": True},
    {"parts": 1, "diagonal": False, "driven": False, "by_position": False},
    {"parts": 1, "diagonal": True, "driven": False, "by_position": True},
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(str(int(setting)) for setting in kind.values()))
@pytest.mark.parametrize("form", ["scatter", "gather"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_states_and_gradients_are_those_of_the_definition(
    dtype: torch.dtype, form: str, kind: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops, "MAX_ELEMENTS_PER_CHUNK", 100)  # 4 rows of tables at a time
    for length in LENGTHS:
        given = draw(length, dtype, **kind)
        leaves = [x for name, x in given.items() if x is not None and name != "rows"]
        expected = sparse_recurrence_by_definition(*given.values(), form=form)
        weight = torch.randn(expected.shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
        theirs = torch.autograd.grad((expected * weight).sum(), leaves)
        for small_step in (0, 10**6):  # step by step, and by a scan
            monkeypatch.setattr(ops, "MAX_STEP_PRODUCTS", small_step)
            states = sparse_recurrence(*given.values(), form=form)
            ours = torch.autograd.grad((states * weight).sum(), leaves)
            for one, other in zip((states, *ours), (expected, *theirs), strict=True):
                scale = max(1.0, float(other.detach().abs().max()))
                assert one.shape == other.shape
                assert float((one - other).detach().abs().max()) <= TOLERANCE[dtype] * scale


def test_gradients_without_the_choice_are_derivatives() -> None:
    """Where no column of P changes, the states are smooth in all else: numerical derivatives know no trick."""
    for form in ("scatter", "gather"):
        given = draw(5, torch.float64, parts=2, diagonal=True, driven=True, by_position=False)
        mixtures, dictionary, rows = (given[name].detach() for name in ("mixtures", "dictionary", "rows"))

        def states(factors, values, initial, form=form, tables=(mixtures, dictionary), rows=rows):
            return sparse_recurrence(*tables, factors, values, rows, initial, form=form)

        assert torch.autograd.gradcheck(states, [given[name] for name in ("factors", "values", "initial")])


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"form": "rows"}, "form: expected 'scatter' or 'gather', got 'rows'; choose one of these"),
        ({"rows": torch.zeros(2, 0, dtype=torch.int64)}, "rows: expected at least 1 step, got 0"),
        ({"initial": torch.zeros(1, 5, 1)}, r"initial: expected shape \[2, 5, 1\], got \[1, 5, 1\]"),
        ({"values": torch.zeros(3, 4, 1)}, r"values: expected shape \[3, 5, 1\], got \[3, 4, 1\]"),
        ({"initial": torch.full((2, 5, 1), torch.nan)}, "initial: expected finite numbers, got nan"),
    ],
)
def test_what_does_not_fit_is_named(change: dict, sentence: str) -> None:
    given = draw(3, torch.float32, parts=1, diagonal=False, driven=True, by_position=False) | change
    form = given.pop("form", "scatter")
    with pytest.raises(ValueError, match=sentence):
        sparse_recurrence(*given.values(), form=form)


def test_states_that_overflow_are_an_error_or_stay() -> None:
    given = draw(200, torch.float32, parts=1, diagonal=True, driven=False, by_position=False)
    given["factors"] = torch.full((3, 5, 1), 4.0)
    with pytest.raises(Diverged):
        sparse_recurrence(*given.values())
    assert not bool(sparse_recurrence(*given.values(), overflow="keep").isfinite().all())
