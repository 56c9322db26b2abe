"""The log-depth recurrent unit beyond the shared contract."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import truncnorm

from lengthwise.automata.monoid import transition_monoid
from lengthwise.certification.methods.base import highest_level
from lengthwise.conventions import PAD
from lengthwise.extraction.tree import extract_tree
from lengthwise.layers.log_depth import Operator
from lengthwise.models import make_model
from lengthwise.models.ldru import LDRU
from lengthwise.ops.tree_attention import prefix_states_by_definition
from lengthwise.tasks import RegularTask, make_task

OPERATORS: tuple[Operator, ...] = ("mlp", "gated-sum", "linear")


def make(**config: object) -> LDRU:
    model = make_model("ldru", make_task("tomita", index=3), **{"d_model": 6, **config}).double()
    with torch.no_grad():
        for parameter in model.parameters():  # far from the identity, where all maps of the layer matter
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)).double() * 0.5)
    return model


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(OPERATORS), st.sampled_from([1, 2, 3, 7, 63, 65]), st.booleans())
def test_fast_form_and_definition_agree_in_values_and_gradients(operator: Operator, length: int, pads: bool) -> None:
    model = make(operator=operator)
    inputs = torch.randint(PAD if pads else 0, 2, (3, length), generator=torch.Generator().manual_seed(length))
    weights = torch.randn(3, length, 2, generator=torch.Generator().manual_seed(0)).double()

    def masked(ids: torch.Tensor) -> torch.Tensor:
        return model.readout(prefix_states_by_definition(ids - PAD, model.tree))

    values, gradients = [], []
    for form in (model.forward, model.forward_by_definition, masked):
        logits = form(inputs)
        values.append(logits)
        gradients.append(
            torch.autograd.grad((logits * weights).sum(), list(model.parameters()), materialize_grads=True)
        )
    for value, gradient in zip(values[1:], gradients[1:], strict=True):
        torch.testing.assert_close(value, values[0], rtol=1e-9, atol=1e-9)
        for one, other in zip(gradient, gradients[0], strict=True):
            torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("length", [2, 8, 32])
def test_windows_are_those_of_the_source_at_powers_of_two(length: int) -> None:
    """Its loop over windows from the left end, state by state, with op, feed-forward block and norm written out."""
    model = make()
    ids = torch.randint(2, (length,), generator=torch.Generator().manual_seed(0))
    op, block, norm = model.layer.operator, model.layer.feed_forward, model.layer.norm
    normed = model.leaf_norm(model.embedding(ids))
    states = list(normed + model.leaf_feed_forward.narrow(model.leaf_feed_forward.widen(normed).relu()))
    size = 2
    while size <= length:
        for start in range(0, length, size):
            older, newer = states[start + size // 2 - 1], states[start + size - 1]
            gates = torch.cat([older, newer])
            for index, linear in enumerate(op.gates):
                gates = linear(gates) if index == 2 else linear(gates).relu()
            mixed = op.to_merged(op.from_older(gates[:6] * older) + op.from_newer(gates[6:] * newer))
            states[start + size - 1] = norm(mixed + block.narrow(block.widen(mixed).relu()))
        size *= 2
    torch.testing.assert_close(model.last(ids[None])[0], model.readout(states[-1]))


def test_nothing_before_a_string_changes_its_state() -> None:
    model = make()
    ids = torch.randint(2, (2, 5), generator=torch.Generator().manual_seed(0))
    before = torch.cat([torch.full((2, 3), PAD), ids], 1)
    torch.testing.assert_close(model.last(before), model.last(ids))
    assert not model.last_state(torch.full((1, 9), PAD)).any()


def test_noise_leaves_what_is_no_symbol_alone() -> None:
    noisy = make().perturbed(lambda states: states + torch.randn_like(states))
    ids = torch.full((1, 3000), PAD)
    assert not noisy.last_state(ids).any()
    ids[0, 7] = 0
    assert not torch.equal(noisy.last_state(ids), noisy.last_state(ids))


def test_size_is_what_the_equations_say() -> None:
    """20 D^2 of weights in the operator's gates, 3 D^2 in its maps, 8 D^2 in each block; biases, norms, the ends."""
    width, symbols, classes = 64, 2, 2
    operator = (4 + 8 + 8 + 3) * width**2 + (2 + 4 + 2 + 3) * width
    block = 8 * width**2 + 5 * width
    ends = symbols * width + classes * (width + 1)
    model = make_model("ldru", make_task("parity"))
    assert sum(p.numel() for p in model.parameters()) == operator + 2 * (block + 2 * width) + ends


def solving(task: RegularTask) -> LDRU:
    """Weights by hand: states are the monoid's elements, one-hot before the norm.

    A unit of the first layer finds that x is element e and y is f; it makes the gate that turns the number y_g,
    g = e f, to 1. Where x is zeros, the unit of f alone does, for f itself. The norm then makes the state of g again,
    whatever the errors of units were: they do not add up.
    """
    machine = task.transducer
    monoid = transition_monoid(machine.semiautomaton)
    size = monoid.size
    width = -(-(size * size + size) // 2)
    model = make_model("ldru", task, d_model=width)
    high, low = (width - 1) ** 0.5, -((width - 1) ** -0.5)
    pairs = [(e, f) for e in range(size) for f in range(size)]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        op = model.layer.operator
        for norm in (model.leaf_norm, model.layer.norm):
            norm.weight.fill_(1.0)
        for linear in (op.from_newer, op.to_merged):
            torch.nn.init.eye_(linear.weight)
        first, second, third = op.gates
        second.weight[: 2 * width] = torch.eye(2 * width)
        for unit, (e, f) in enumerate(pairs):
            first.weight[unit, [e, width + f]] = 2 / high
            first.bias[unit] = -3.0
            product = int(monoid.table[e, f])
            third.weight[width + product, unit] = 1 / (high if product == f else low)
        for f in range(size):
            unit = len(pairs) + f
            first.weight[unit, :size] = -2 / (high + (size - 1) * low)
            first.weight[unit, width + f] = 2 / high
            first.bias[unit] = -1.0
            third.weight[width + f, unit] = 1 / high
        model.embedding.weight[range(len(task.symbols)), monoid.generators.tolist()] = 1.0
        for element in range(size):
            answer = int(machine.outputs[monoid.maps[element, machine.start]])
            model.readout.weight[answer, element] = 1.0
    return model


@pytest.mark.parametrize(
    ("name", "fields"), [("parity", {}), ("word-problem", {"group": "S3"}), ("cycle-navigation", {}), ("dfa", {})]
)
def test_weights_by_hand_solve_a_regular_task_at_any_length(name: str, fields: dict[str, str]) -> None:
    """As the source claims of logarithmic depth: a monoid's product, which the operator computes exactly."""
    task = make_task(name, **fields)
    model = solving(task)
    inputs = torch.randint(len(task.symbols), (4, 10_000), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert (model.last(inputs).argmax(1) == task.solve(inputs)[:, -1]).all()
        short = inputs.reshape(-1, 50)[:100]
        assert (model(short).argmax(-1) == task.solve(short)).all()


def test_a_machine_is_read_off() -> None:
    """For all lengths: the states close into classes, whose machine is the task's."""
    task = make_task("word-problem", group="S3")
    extraction = extract_tree(solving(task), task.symbols, radius=0.1)
    assert extraction.machine.difference_string(task.transducer) is None
    assert extraction.radius < 1e-3 < 1 < extraction.gap
    assert highest_level(solving(task)) == "extracted"


def test_weights_begin_as_published() -> None:
    """Haiku's variance scaling makes up for the cut at two deviations; its default for linear maps does not."""
    model = make_model("ldru", make_task("tomita", index=3), d_model=256)
    cut = truncnorm(-2, 2).std()
    for linear in model.layer.operator.gates:
        assert linear.weight.std().item() == pytest.approx((2 / sum(linear.weight.shape)) ** 0.5, rel=0.02)
    for linear in model.layer.feed_forward.children():
        assert linear.weight.std().item() == pytest.approx((0.04 / sum(linear.weight.shape)) ** 0.5, rel=0.02)
    for linear in model.leaf_feed_forward.children():
        assert linear.weight.std().item() == pytest.approx(cut * linear.in_features**-0.5, rel=0.02)
        assert not linear.bias.any()
