"""Wrong names of options in ops and layers, and wrong ends of intervals: one sentence names the argument."""

from collections.abc import Callable

import pytest
import torch

from lengthwise.layers.transformer_layer import TransformerLayer
from lengthwise.ops.block_recurrence import recurrence
from lengthwise.ops.intervals import Intervals
from lengthwise.ops.sinusoids import timestep_sinusoids
from lengthwise.ops.sparse_recurrence import sparse_recurrence
from lengthwise.ops.symbol_recurrence import symbol_final_state, symbol_recurrence

pytestmark = pytest.mark.unchecked  # the package itself is to refuse them, without beartype

EYES = torch.eye(2).expand(1, 3, 2, 2)
TABLE = (torch.eye(2).expand(2, 1, 2, 2), torch.zeros(2, 1, 2), torch.tensor([[0, 1]]), torch.zeros(1, 1, 2))
SPARSE = (torch.eye(2), torch.eye(2).expand(2, 2, 2), None, None, torch.tensor([[1, 0]]), torch.zeros(1, 2, 1))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: timestep_sinusoids(2, 4, "fractions"), "time: expected 'index' or 'fraction', got 'fractions'; "),
        (lambda: recurrence(EYES, EYES[..., 0], overflow="zz"), "overflow: expected 'raise' or 'keep', got 'zz'; "),
        (lambda: symbol_recurrence(*TABLE, overflow="zz"), "overflow: expected 'raise' or 'keep', got 'zz'; "),
        (lambda: symbol_final_state(*TABLE, overflow="zz"), "overflow: expected 'raise' or 'keep', got 'zz'; "),
        (lambda: sparse_recurrence(*SPARSE, overflow="zz"), "overflow: expected 'raise' or 'keep', got 'zz'; "),
        (lambda: Intervals([0.0], torch.ones(1)), "low: expected a tensor, got a list; make a tensor of it with"),
        (lambda: Intervals(torch.zeros(2), torch.ones(3)), r"high: expected shape \[2\], got \[3\]; give both ends"),
        (
            lambda: Intervals.around(torch.zeros(2), -1.0),
            "radius: expected a number of at least 0, got -1.0; give half",
        ),
        (
            lambda: TransformerLayer(d_model=4, num_heads=2, kind="gpt2", activations="zz"),
            "activations: expected 'kept' or 'recomputed', got 'zz'; ",
        ),
    ],
)
def test_one_sentence_names_the_argument(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()
