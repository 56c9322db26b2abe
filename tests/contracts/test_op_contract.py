"""What every function of tensors promises whose arguments have annotated shapes: a wrong shape is an error."""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from typing import Any

import pytest
import torch
from checked_types import begin
from torch import Tensor

import lengthwise.ops
from lengthwise.layers.tree_layers import BareLayer
from lengthwise.ops.answer_likelihood import answer_log_probabilities
from lengthwise.ops.block_recurrence import recurrence
from lengthwise.ops.causal_convolution import causal_convolution
from lengthwise.ops.column_norm import rescaled_blocks
from lengthwise.ops.cut_tree import cut_prefix_states
from lengthwise.ops.delta_rule import delta_rule
from lengthwise.ops.dilated_attention import dilated_attention
from lengthwise.ops.grid import last_row
from lengthwise.ops.in_range import states_in_range
from lengthwise.ops.integer_answers import integer_loss
from lengthwise.ops.matrix_powers import powers_times
from lengthwise.ops.merge import merge
from lengthwise.ops.mlstm import mlstm
from lengthwise.ops.outer_products import decay_products, outer_products
from lengthwise.ops.scan import scan
from lengthwise.ops.selective_scan import selective_scan
from lengthwise.ops.sinusoids import distance_sinusoids, position_angles, position_sinusoids, timestep_sinusoids
from lengthwise.ops.slstm import slstm
from lengthwise.ops.sparse_recurrence import sparse_recurrence
from lengthwise.ops.symbol_recurrence import symbol_recurrence
from lengthwise.ops.tree import Tree
from lengthwise.ops.tree_attention import prefix_states

B, T, H, J, K, M, E, P = 2, 3, 2, 2, 5, 4, 6, 7


def ones(*shape: int) -> Tensor:
    return torch.ones(shape)


TREE = Tree(ones(K, E), [BareLayer(d_model=E, num_heads=H, chunk_size=2)], chunk_size=2)
IDS = torch.zeros(B, T, dtype=torch.int64)

OPS: dict[Callable[..., Any], Mapping[str, Any]] = {
    delta_rule: {
        "queries": ones(B, T, H, K),
        "keys": ones(B, T, J, H, K),
        "values": ones(B, T, J, H, M),
        "strengths": ones(B, T, J, H),
        "log_decays": -ones(B, T, H),
        "initial": ones(B, H, K, M),
    },
    dilated_attention: {
        "query": ones(B, H, T, E),
        "key": ones(B, H, T, E),
        "value": ones(B, H, T, E),
        "bias": ones(H, 2),
        "stride": 1,
    },
    cut_prefix_states: {"ids": IDS, "tree": TREE},
    integer_loss: {"numbers": ones(T), "targets": ones(T), "sharpness": 4.0},
    mlstm: {
        "i": ones(B, T, H),
        "f": ones(B, T, H),
        "keys": ones(B, T, H, K),
        "values": ones(B, T, H, M),
        "queries": ones(B, T, H, K),
        "sums": ones(B, H, K, M + 1),
        "stabilizer": ones(B, H),
    },
    outer_products: {
        "decays": ones(B, T, H),
        "keys": ones(B, T, H, K),
        "values": ones(B, T, H, M),
        "queries": ones(B, T, H, K),
        "initial": ones(B, H, K, M),
    },
    prefix_states: {"ids": IDS, "tree": TREE},
    powers_times: {"matrices": ones(2, P, P), "vectors": ones(2, P), "count": 3},
    selective_scan: {
        "steps": ones(B, T, E),
        "rates": -ones(P, E),
        "values": ones(B, T, E),
        "b": ones(B, T, P),
        "c": ones(B, T, P),
        "initial": ones(B, P, E),
    },
    slstm: {
        "gates": ones(B, T, 4, H, E),
        "feedback": ones(4, H, E, E),
        "h": ones(B, H, E),
        "average": ones(B, H, E),
        "log_norm": ones(B, H, E),
    },
}
FREE = {
    (dilated_attention, "bias", 1),
    (slstm, "gates", 1),
    *((function, "ids", axis) for function in (cut_prefix_states, prefix_states) for axis in (0, 1)),
}
"""Axes whose size no other argument has."""

OWN_CHECKS: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "answer_log_probabilities": (
        answer_log_probabilities,
        {
            "transitions": ones(K, P, P),
            "emissions": ones(M, P),
            "tokens": IDS,
            "targets": IDS,
            "initial": ones(B, P) / P,
        },
    ),
    "causal_convolution": (causal_convolution, {"inputs": ones(B, T, E), "kernels": ones(E, T)}),
    "decay_products": (decay_products, {"decays": ones(B, T)}),
    "grid": (
        last_row,
        {
            "cell": lambda above, left, first, second: (above, left),
            "top": ones(E),
            "left": ones(E),
            "first": IDS,
            "second": IDS,
            "heights": IDS[:, 0],
        },
    ),
    "merge": (
        merge,
        {
            "weights": [ones(E), ones(E, E), ones(2 * E, E), ones(E, E), ones(H, 2)],
            "states": ones(T, E),
            "windows": IDS,
        },
    ),
    "recurrence": (
        recurrence,
        {"transitions": ones(B, T, E, E), "inputs": ones(B, T, E), "initial": ones(B, E)},
    ),
    "rescaled_blocks": (rescaled_blocks, {"matrices": ones(B, E, E)}),
    "scan": (scan, {"operator": lambda one, other: (one[0] + other[0],), "elements": (ones(B, T),)}),
    "sparse_recurrence": (
        sparse_recurrence,
        {
            "mixtures": ones(K, M),
            "dictionary": ones(M, P, P),
            "factors": ones(K, P, 2),
            "values": ones(K, P, 2),
            "rows": IDS,
            "initial": ones(B, P, 2),
        },
    ),
    "states_in_range": (
        states_in_range,
        {
            "steps": lambda start, stop, state: state[:, None].expand(-1, stop - start, -1),
            "length": T,
            "initial": ones(B, E),
            "driven": False,
        },
    ),
    "symbol_recurrence": (
        symbol_recurrence,
        {"transitions": ones(K, H, P, P), "values": ones(K, H, P), "tokens": IDS, "initial": ones(B, H, P)},
    ),
}
"""Functions that check their arguments by themselves, by the name of the definition, with fitting arguments."""


@pytest.mark.parametrize("function", OPS, ids=lambda function: function.__name__)
class TestShapes:
    def test_a_longer_or_missing_axis_is_an_error(self, function: Callable[..., Any]) -> None:
        for wrong in changed(function, OPS[function]):
            for positional, named in ((wrong, {}), ((), dict(zip(OPS[function], wrong, strict=True)))):
                if not fits(function, positional):
                    continue
                with pytest.raises(
                    ValueError, match=r"^\w+: expected shape .*, got \[.*\]; give tensors whose"
                ) as raised:
                    function(*positional, **named)
                assert str(raised.value).partition(":")[0] in OPS[function]

    def test_numbers_that_are_no_tensor_are_an_error(self, function: Callable[..., Any]) -> None:
        for name, value in OPS[function].items():
            if isinstance(value, Tensor):
                with pytest.raises(
                    ValueError, match=rf"^{name}: expected a tensor of shape \[.*\], got a list; make a tensor"
                ):
                    function(**{**OPS[function], name: value.tolist()})

    def test_fitting_shapes_are_read(self, function: Callable[..., Any]) -> None:
        function(**OPS[function])


def fits(function: Callable[..., Any], positional: tuple[Any, ...]) -> bool:
    """Return whether a function accepts this number of arguments without their names."""
    kinds = [parameter.kind for parameter in signature(function).parameters.values()]
    return len(positional) <= sum(kind is not Parameter.KEYWORD_ONLY for kind in kinds)


def changed(function: Callable[..., Any], given: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments with one axis of one tensor longer, and with one axis of one tensor missing."""
    for name, value in given.items():
        if isinstance(value, Tensor):
            for axis in range(value.ndim):
                if (function, name, axis) not in FREE:
                    longer = value.repeat_interleave(torch.tensor([2] + [1] * (value.shape[axis] - 1)), axis)
                    yield tuple({**given, name: longer}.values())
            yield tuple({**given, name: value[0]}.values())


def test_every_function_with_a_definition_is_here_or_checks_by_itself() -> None:
    named = set()
    for module in pkgutil.iter_modules(lengthwise.ops.__path__, "lengthwise.ops."):
        names = vars(importlib.import_module(module.name))
        named |= {match[1] for name in names if (match := re.fullmatch(r"(\w+)_by_definition", name))}
    assert named == {function.__name__ for function in OPS} | OWN_CHECKS.keys()


@pytest.mark.unchecked  # the package itself is to reject them, without beartype
@pytest.mark.parametrize("name", OWN_CHECKS)
def test_functions_with_own_checks_name_what_is_not_a_tensor(name: str) -> None:
    function, given = OWN_CHECKS[name]
    function(**given)
    for argument, value in given.items():
        for wrong in ([1.0, 2.0], 3, "x"):
            if isinstance(value, Tensor):
                sentence = rf"^{argument}: expected a tensor, got an? \w+; make a tensor of it with torch.as_tensor$"
                with pytest.raises(ValueError, match=sentence):
                    function(**{**given, argument: wrong})
    for argument in ("cell", "steps"):
        if argument in given:
            with pytest.raises(ValueError, match=f"^{argument}: expected a function, got 3; give one$"):
                function(**{**given, argument: 3})


@pytest.mark.unchecked  # the package itself is to reject them, without beartype
@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("answer_log_probabilities", {"emissions": ones(M, 2)}, "emissions: expected shape [4, 7], got [4, 2]; give"),
        ("answer_log_probabilities", {"initial": ones(P)}, "initial: expected shape [2, 7], got [7]; give one"),
        ("causal_convolution", {"inputs": ones(T, E)}, "inputs: expected shape [B, T, D] with T of at least 1, got"),
        ("grid", {"first": IDS[0]}, "first: expected shape [B, n], got [3]; reshape it to 2 axes"),
        ("grid", {"second": IDS[:1]}, "second: expected 2 strings, as in first, got 1; give as many as in first"),
        ("merge", {"weights": ones(E)}, "weights: expected a list or tuple of tensors, got one tensor; put the"),
        ("merge", {"weights": [ones(E)] * 6}, "weights: expected 5 tensors, and 6 more for each feed-forward block, "),
        ("merge", {"weights": [ones(E)] * 4 + [2]}, "weights: expected tensors, got an int at index 4; make a tensor"),
        ("scan", {"elements": ones(B, T)}, "elements: expected a list or tuple of tensors, got one tensor; put"),
        ("scan", {"elements": 3}, "elements: expected a list or tuple of tensors, got an int; put the tensors into"),
        (
            "scan",
            {"elements": (ones(T),)},
            "elements: expected tensors with an equal size of at least 1 in dimension 1",
        ),
        ("sparse_recurrence", {"mixtures": ones(K)}, "mixtures: expected shape [R, K], got [5]; reshape it to 2 axes"),
        ("sparse_recurrence", {"rows": ones(B, T)}, "rows: expected whole numbers (torch.int64), got torch.float32; "),
        ("sparse_recurrence", {"values": ones(K, P)}, "values: expected shape [5, 7, 2], got [5, 7]; give one vector"),
        ("symbol_recurrence", {"tokens": IDS[0]}, "tokens: expected shape [B, T], got [3]; reshape it to 2 axes"),
        ("symbol_recurrence", {"tokens": IDS.float()}, "tokens: expected whole numbers (torch.int64), got torch.fl"),
        ("symbol_recurrence", {"transitions": ones(K, P, P)}, "transitions: expected shape [V, N, S, S], got [5, 7, 7"),
        ("rescaled_blocks", {"p": "x"}, "p: expected a finite number of at least 1, got x; choose p >= 1"),
    ],
)
def test_functions_with_own_checks_name_wrong_shapes(name: str, wrong: Mapping[str, Any], sentence: str) -> None:
    function, given = OWN_CHECKS[name]
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        function(**{**given, **wrong})


def test_sentences_name_the_sizes_and_where_they_come_from() -> None:
    steps, rates, ones = torch.ones(1, 3, 1), torch.zeros(1, 1), torch.ones(1, 3, 1)
    with pytest.raises(
        ValueError, match=re.escape("values: expected shape [1, 3, 1] (B T E as in steps), got [1, 4, 1]")
    ):
        selective_scan(steps, rates, torch.ones(1, 4, 1), ones, ones, torch.zeros(1, 1, 1))
    expected = "c: expected shape [1, 3, 1] (B T P as in steps and rates), got [1, 9, 1]"
    with pytest.raises(ValueError, match=re.escape(expected)):
        selective_scan(steps, rates, ones, ones, torch.ones(1, 9, 1), torch.zeros(1, 1, 1))
    with pytest.raises(ValueError, match=re.escape("steps: expected shape [B, T, E], got [3]; give tensors")):
        selective_scan(torch.ones(3), rates, ones, ones, ones, torch.zeros(1, 1, 1))


def test_a_table_of_steps_has_a_row_for_each_position() -> None:
    begin(is_checked=False)  # the annotations reject this table before the function can
    table = (torch.ones(1, E), torch.zeros(B, T - 1, dtype=torch.int64))
    with pytest.raises(ValueError, match=re.escape("rows: expected shape [2, 3] (B T as in steps), got [2, 2]; give")):
        selective_scan(**OPS[selective_scan], rows=table)


@pytest.mark.parametrize(
    ("function", "name"),
    [(delta_rule, "queries"), (mlstm, "i"), (outer_products, "decays"), (selective_scan, "steps"), (slstm, "gates")],
    ids=lambda given: getattr(given, "__name__", given),
)
def test_an_empty_string_is_an_error(function: Callable[..., Any], name: str) -> None:
    empty = {
        key: value[:, :0] if value.ndim > 2 and value.shape[1] == T else value for key, value in OPS[function].items()
    }
    with pytest.raises(ValueError, match=f"^{name}: expected at least 1 position, got 0; give tensors with"):
        function(**empty)


def test_numbers_out_of_range_are_errors() -> None:
    attention = OPS[dilated_attention]
    for function, given, expected in [
        (dilated_attention, attention | {"stride": 0}, "stride: expected a whole number of at least 1, got 0"),
        (dilated_attention, attention | {"bias": torch.ones(H, 0)}, "bias: expected at least 1 column, got 0"),
        (delta_rule, no_keys(), "keys: expected at least 1 sub-step of each symbol, got 0"),
        (integer_loss, OPS[integer_loss] | {"sharpness": -1.0}, "sharpness: expected a number above 0, got -1.0"),
        (
            integer_loss,
            OPS[integer_loss] | {"sharpness": float("nan")},
            "sharpness: expected a number above 0, got nan",
        ),
        (
            integer_loss,
            {name: torch.ones(0) for name in ("numbers", "targets")} | {"sharpness": 1.0},
            "numbers: expected",
        ),
        (outer_products, OPS[outer_products] | shared(3), "keys: expected 1 head, or 2 as in decays, got 3"),
        (powers_times, OPS[powers_times] | {"count": 0}, "count: expected a whole number of at least 1, got 0"),
        (position_sinusoids, {"length": -4, "width": 4}, "length: expected at least 0, got -4"),
        (distance_sinusoids, {"length": 4, "width": 0}, "width: expected a whole number of at least 1, got 0"),
        (position_angles, {"length": -1, "width": 4}, "length: expected at least 0, got -1"),
        (timestep_sinusoids, {"num_loops": -1}, "num_loops: expected at least 0, got -1"),
    ]:
        with pytest.raises(ValueError, match=f"^{re.escape(expected)}"):
            function(**given)


def no_keys() -> dict[str, Tensor]:
    return {
        key: value[:, :, :0] if key in ("keys", "values", "strengths") else value
        for key, value in OPS[delta_rule].items()
    }


def shared(num_heads: int) -> dict[str, Tensor]:
    return {name: torch.ones(B, T, num_heads, K) for name in ("keys", "queries")}
