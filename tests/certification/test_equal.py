"""Two nets on all strings: equal by proof, different on a string that both read alone, or undecided; never wrong."""

import copy
import itertools
from collections.abc import Callable
from types import MethodType

import numpy as np
import pytest
import torch
from attending_net import attending_net
from proved_nets import mixture, reflections
from slow_nets import slow_net
from torch import nn

from lengthwise import SetAnswers, construct, equal, make_model, make_task, wrap_module
from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.automata.lookup import StateLookup
from lengthwise.automata.tree_machine import tree_machine
from lengthwise.certification.common_machine import common_machine
from lengthwise.certification.equality import Equality
from lengthwise.certification.twins import Agreement
from lengthwise.certification.unknown import placeholder_task
from lengthwise.conventions import IGNORE
from lengthwise.models.base import RecurrentModel, SequenceModel
from lengthwise.models.machine import Scores, TransducerModel, TreeMachineModel
from lengthwise.ops.answers import answers_of

pytestmark = pytest.mark.usefixtures("fewer_strings")

ENDS = make_task("regex", pattern="(a|b)*abb")
PARITY = make_task("parity")


def rounded(net: SequenceModel, levels: int) -> SequenceModel:
    """Return a copy whose weights have `levels` positive values, as quantization of weights gives."""
    twin = copy.deepcopy(net)
    with torch.no_grad():
        for weight in twin.parameters():
            scale = weight.abs().max() / levels
            if scale > 0:
                weight.copy_((weight / scale).round() * scale)
    return twin


def answers(net: SequenceModel, string: tuple[str, ...]) -> int:
    with torch.no_grad():
        return int(answers_of(net.last(torch.tensor([[int(symbol) for symbol in string]])))[0])


def check_difference(result: Equality, first: SequenceModel, second: SequenceModel) -> None:
    """The answers in the result are the nets' own, and differ."""
    difference = result.counterexample
    assert difference is not None
    own = tuple(str(answers(net, difference.string)) for net in (first, second))
    assert difference.answers == own
    assert own[0] != own[1]


class Delegating(RecurrentModel):
    """The same net in a class that no prover knows; from `end` symbols on, the first answer always leads."""

    def __init__(self, inner: RecurrentModel, end: float) -> None:
        super().__init__()
        self.inner, self.end = inner, end
        self.readout = Ending(inner.readout, end)

    def reset_parameters(self, generator: torch.Generator) -> None:
        raise NotImplementedError

    def initial_state(self, batch_size: int) -> torch.Tensor:
        return torch.cat([self.inner.initial_state(batch_size), torch.zeros(batch_size, 1)], 1)

    def step(self, token: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        _, after = self.inner.step(token, state[:, :-1])
        state = torch.cat([after, state[:, -1:] + 2**-20], 1)
        return self.readout(state), state


class Ending(nn.Module):
    def __init__(self, readout: nn.Module, end: float) -> None:
        super().__init__()
        self.inner, self.end = readout, end

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        logits = self.inner(state[..., :-1])
        is_over = state[..., -1:] >= self.end * 2**-20
        return torch.where(is_over, torch.tensor([1000.0] + [0.0] * (logits.shape[-1] - 1)), logits)


@pytest.mark.parametrize("levels", [2**11, 127], ids=["float16", "int8"])
def test_a_twin_with_rounded_weights_is_proved_equal(levels: int) -> None:
    net = construct("rnn", ENDS).model
    twin = rounded(net, levels)
    twin.readout.weight.data.mul_(1.001)  # rounding alone changes no compiled weight
    result = equal(net, twin)
    assert (result.equal, result.level, result.up_to, result.num_states) == (True, "proved", None, 4)
    assert str(result).startswith(
        "equal: both nets, rounding errors included, are proved to give the same answer to every string"
    )


def test_nets_of_different_kinds_are_proved_equal_without_a_task() -> None:
    nets = [construct(name, ENDS).model for name in ("rnn", "block-linear-rnn", "regular-gpt")]
    nets.append(TransducerModel(ENDS.transducer, ENDS.classes))
    for first, second in itertools.pairwise(nets):
        result = equal(first, second, symbols="ab", classes=ENDS.classes)
        assert result.levels == ("proved", "proved"), str(result)


@pytest.mark.parametrize(("kind", "num_right"), [("rnn", 13), ("rnn", 77), ("gru", 40), ("lstm", 25)])
def test_a_weight_that_changes_one_long_string_is_noticed(kind: str, num_right: int) -> None:
    nets = [slow_net(kind, None), slow_net(kind, num_right)]
    # Both orders, because the machine is read off the first net.
    for first, second in itertools.permutations(nets) if kind == "rnn" else [nets]:
        result = equal(first, second)
        assert result.equal is False
        assert result.counterexample.string == ("0",) * (num_right + 1)
        check_difference(result, first, second)


def test_no_net_with_a_changed_weight_is_called_equal_if_a_string_differs() -> None:
    net = construct("rnn", ENDS).model
    generator = torch.Generator().manual_seed(0)
    strings = torch.randint(2, (200, 60), generator=generator)
    verdicts = set()
    for index in range(12):
        twin = copy.deepcopy(net)
        weight = list(twin.parameters())[index % len(list(twin.parameters()))]
        with torch.no_grad():
            noise = torch.randn(weight.shape, generator=generator)
            weight.add_(noise * weight.abs().max() * 2.0 ** (index % 6 - 5))
            is_same = bool((answers_of(net(strings)) == answers_of(twin(strings))).all())
        result = equal(net, twin)
        verdicts.add(result.equal)
        assert is_same or result.equal is False
        if result.equal is False:
            check_difference(result, net, twin)
    assert verdicts >= {True, False}


@pytest.mark.parametrize("end", [100, 100_000])
def test_a_net_that_changes_at_one_length_is_never_called_equal(end: int) -> None:
    """The tested strings have up to 150 symbols here, so nothing shows the difference at 100,000."""
    net = construct("rnn", ENDS).model
    result = equal(net, Delegating(net, end), seed=1)
    if end <= 150:
        assert result.equal is False
        assert len(result.counterexample.string) >= end
        check_difference(result, net, Delegating(net, end))
    else:
        assert (result.equal, result.level, result.levels) == (None, "extracted", ("proved", "extracted"))
        assert "not decided: one machine of 4 states describes both nets" in str(result)


class Lying(TransducerModel):
    """A table that answers otherwise from 500 symbols on."""

    def _final_classes(self, strings: np.ndarray) -> np.ndarray:
        classes = super()._final_classes(strings)
        return (classes + (strings.shape[1] >= 500)) % self.machine.num_states

    def _prefix_classes(self, strings: np.ndarray) -> np.ndarray:
        late = np.arange(1, strings.shape[1] + 1) >= 500
        return (super()._prefix_classes(strings) + late) % self.machine.num_states


def test_a_table_is_proved_only_if_nothing_else_changes_its_answers() -> None:
    table, lying, hooked = (
        kind(PARITY.transducer, PARITY.classes) for kind in (TransducerModel, Lying, TransducerModel)
    )
    assert equal(table, TransducerModel(PARITY.transducer, PARITY.classes)).level == "proved"
    assert equal(table, lying).equal is None
    hooked.register_forward_hook(lambda module, inputs, logits: logits.flip(-1) if logits.shape[1] > 500 else None)
    assert equal(hooked, table).equal is None


def tamper_with_machine(table: TransducerModel) -> None:
    """The table answers whether a string ends in abb, and its field names the language of bb."""
    table.machine = make_task("regex", pattern="(a|b)*bb").transducer


def tamper_with_look_up(table: TransducerModel) -> None:
    other = make_task("regex", pattern="(a|b)*bb").transducer
    table._lookup = StateLookup(other.semiautomaton, other.start)


def tamper_with_entries(table: TransducerModel) -> None:
    table._lookup._visited[table._lookup.width][:] = 0


def tamper_with_method(table: TransducerModel) -> None:
    table.readout.forward = MethodType(Scores.forward, table.readout)


def tamper_with_scores(table: TransducerModel) -> None:
    table.readout.scores += torch.tensor([0.0, 2.0])


@pytest.mark.parametrize(
    "tamper",
    [tamper_with_machine, tamper_with_look_up, tamper_with_entries, tamper_with_method, tamper_with_scores],
)
def test_a_table_with_any_attribute_of_another_is_not_proved(tamper: Callable[[TransducerModel], None]) -> None:
    net, table = construct("rnn", ENDS).model, TransducerModel(ENDS.transducer, ENDS.classes)
    with torch.no_grad():
        assert common_machine((net, table.eval()), ENDS, seed=0)[0].level == "proved"
        tamper(table)
        for other in (net, TransducerModel(table.machine, ENDS.classes).eval()):
            assert common_machine((other, table), ENDS, seed=0)[0].level == "tested"


def test_a_hook_of_all_modules_leaves_no_table_proved() -> None:
    tables = [TransducerModel(PARITY.transducer, PARITY.classes) for _ in range(2)]
    hook = torch.nn.modules.module.register_module_forward_hook(lambda part, inputs, logits: None)
    try:
        assert equal(*tables).level == "tested"
    finally:
        hook.remove()
    assert equal(*tables).level == "proved"


def test_tables_are_matched_by_the_ids_of_symbols() -> None:
    """The first table answers whether a string ends in its second symbol, which is called a in the second table."""
    last = Semiautomaton(np.array([[0, 1], [0, 1]]), ("a", "b"))
    swapped = Semiautomaton(last.table, ("b", "a"))
    first, second = (Transducer(one, 0, np.array([0, 1])) for one in (last, swapped))
    first_ends = Transducer(swapped, 0, np.array([1, 0]))
    for kind in (TransducerModel, lambda machine, classes: TreeMachineModel(tree_machine(machine), classes)):
        tables = [kind(machine, ("no", "yes")) for machine in (first, second, first_ends)]
        for symbols in (None, "xy"):
            assert equal(tables[0], tables[1], symbols=symbols).level == "proved"
            assert equal(tables[0], tables[2], symbols=symbols).counterexample is not None


def ring(size: int, num_symbols: int, accepted: int) -> TransducerModel:
    """Return a table that accepts the strings whose length is `accepted`, up to multiples of `size`."""
    table = np.stack([(np.arange(size) + 1) % size] * num_symbols, 1)
    machine = Semiautomaton(table, tuple(map(str, range(num_symbols))))
    outputs = (np.arange(size) == accepted).astype(np.int64)
    return TransducerModel(Transducer(machine, 0, outputs), ("no", "yes")).eval()


@pytest.mark.parametrize(("size", "num_symbols"), [(6_000, 2), (300, 400)])
def test_tables_are_compared_at_any_size(size: int, num_symbols: int) -> None:
    names = placeholder_task(tuple(map(str, range(num_symbols))), ("no", "yes"))
    tables = [ring(size, num_symbols, accepted) for accepted in (size - 1, size - 1, size - 2)]
    claim, error = common_machine((tables[0], tables[1]), names, seed=0)
    assert (claim.level, claim.num_states, error) == ("proved", size, None)
    claim, error = common_machine((tables[0], tables[2]), names, seed=0)
    assert (claim.level, len(error)) == ("tested", size - 2)


def test_a_table_that_is_too_large_for_a_task_gives_a_reason() -> None:
    names = placeholder_task(tuple(map(str, range(400))), ("0", "1"))
    table, net = ring(300, 400, accepted=299), make_model("gru", names, d_model=2).eval()
    with torch.no_grad():
        claim, error = common_machine((table, net), names, seed=0)
    assert (claim.level, error) == ("tested", None)
    assert "expected at most 100,000 entries" in claim.reason


def test_a_table_without_an_answer_gives_the_first_class() -> None:
    """All its logits are 0, so the first class counts."""
    outputs = np.where(ENDS.transducer.outputs == 1, 1, IGNORE)
    partial = Transducer(ENDS.transducer.semiautomaton, ENDS.transducer.start, outputs)
    result = equal(TransducerModel(partial, ENDS.classes), construct("rnn", ENDS).model)
    assert result.level == "proved", str(result)


def test_a_bounded_proof_states_its_length() -> None:
    result = equal(reflections(), mixture())
    assert (result.equal, result.level, result.levels) == (True, "bounded", ("bounded", "proved"))
    assert result.up_to is not None
    assert result.up_to > 1000
    assert f"every string of up to {result.up_to:,} symbols" in str(result)


def test_the_proved_length_of_transformers_ends_before_the_first_difference() -> None:
    """Each errs from about e^gap symbols on: 164 and 244, which is beyond the tested strings."""
    first, second = attending_net(5.1), attending_net(5.5)
    result = equal(first, second)
    assert (result.equal, result.level) == (True, "bounded"), str(result)
    strings = torch.ones(1, 300, dtype=torch.int64)
    strings[0, 0] = 0
    with torch.no_grad():
        differs = (answers_of(first(strings)) != answers_of(second(strings)))[0]
    assert 10 <= result.up_to <= int(differs.int().argmax())


def test_a_net_that_no_method_describes_stays_undecided() -> None:
    net = make_model(
        "transformer", PARITY, d_model=8, num_heads=1, num_layers=1, positions="learned", learned_positions=20
    )
    other = copy.deepcopy(net)
    next(other.parameters()).data.mul_(1 + 1e-6)
    result = equal(net, other)
    assert (result.equal, result.level, result.max_length) == (None, "tested", 20)
    assert "no reader or prover supports the first net, a Transformer" in result.reason


def test_a_logit_that_is_not_finite_is_no_answer() -> None:
    infinite = torch.tensor([0.0, torch.inf])
    rows = [[torch.tensor([0.0, 1.0]), infinite], [infinite, infinite], [infinite, torch.tensor([1.0, 0.0])]]
    logits = Agreement(2)(torch.stack([torch.cat(row) for row in rows]))
    assert answers_of(logits).tolist() == [1, 0, 1]

    def overflows(ids: torch.Tensor) -> torch.Tensor:
        ones = ids.cumsum(1)
        return torch.stack([ones % 2 == 0, ones % 2 == 1], 2).float().masked_fill(ones[..., None] > 20, torch.inf)

    def parity(ids: torch.Tensor) -> torch.Tensor:
        ones = ids.cumsum(1)
        return torch.stack([ones % 2 == 0, ones % 2 == 1], 2).float()

    result = equal(*(wrap_module(one, num_classes=2, num_symbols=2) for one in (parity, overflows)))
    assert result.counterexample is not None
    assert (len(result.counterexample.string), result.counterexample.answers) == (21, ("1", None))
    assert "the second net has a logit that is not finite" in str(result)


def test_sets_are_compared_by_name() -> None:
    task = make_task("next-symbols", base={"name": "tomita", "index": 2}, with_end=True, with_other=True)

    def scores(ids: torch.Tensor) -> torch.Tensor:
        return torch.stack([ids == 1, ids == 0, (ids == 0) | (ids.cumsum(1) > 9)], 2).float()

    nets = [wrap_module(scores, answers=SetAnswers(task, above=above), num_symbols=2) for above in (0.5, 0.4, -1.0)]
    assert equal(nets[0], nets[1]).equal is None
    result = equal(nets[0], nets[2], symbols=task.symbols)
    assert result.counterexample.answers == ("1 or end", "another set")


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            make_model("gru", make_task("regex", pattern="(a|b|c)*a"), d_model=4),
            "expected 2 symbols, as many as `net` has, got 3",
        ),
        (TransducerModel(PARITY.transducer, ("a", "b", "c")), "other: expected 2 answers, as many as `net` has, got 3"),
        (nn.Linear(1, 1), "other: expected a model of this package, got Linear"),
        (
            make_model("gru", PARITY, d_model=4).half(),
            "other: expected weights in float32 or float64",
        ),
    ],
    ids=["symbols", "answers", "module", "half"],
)
def test_nets_that_cannot_be_compared_are_rejected_in_one_sentence(other: SequenceModel, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        equal(make_model("gru", PARITY, d_model=4), other)


@pytest.mark.parametrize("symbols", ["a", "abc"])
def test_names_never_replace_the_count_of_symbols(symbols: str) -> None:
    """On strings of a alone, both nets answer no."""
    nets = [construct("rnn", make_task("regex", pattern=pattern)).model for pattern in ("(a|b)*abb", "(a|b)*bb")]
    with pytest.raises(ValueError, match=f"^symbols: expected 2 names, .* got {len(symbols)}; name all"):
        equal(*nets, symbols=symbols)
    wider = construct("rnn", make_task("regex", pattern="(a|b|c)*abb")).model
    wider.num_symbols = 2
    with pytest.raises(ValueError, match=r"^other: expected 2 symbols, as many as `net` has, got 3"):
        equal(nets[0], wider, symbols="ab")


class Raising(Delegating):
    """A net that raises errors of other kinds than ours, from symbol `first` on."""

    def __init__(self, inner: RecurrentModel, first: int) -> None:
        super().__init__(inner, torch.inf)
        self.first = first

    def last_state(self, inputs: torch.Tensor) -> torch.Tensor:
        if inputs.max() >= self.first:
            raise RuntimeError("shapes do not match")
        return super().last_state(inputs)


def test_errors_of_any_kind_reject_a_symbol() -> None:
    net = make_model("gru", PARITY, d_model=4)
    with pytest.raises(ValueError, match=r"^other: expected 2 symbols, as many as `net` has, got 1;"):
        equal(net, Raising(net, 1))
    message = r"^other: expected a net that reads symbol 0, got an error \(RuntimeError: shapes do not match\); correct"
    with pytest.raises(ValueError, match=message):
        equal(net, Raising(net, 0))


def test_a_twin_of_another_precision_is_compared() -> None:
    net = construct("rnn", ENDS).model
    result = equal(net, copy.deepcopy(net).double())
    assert result.equal is not False


def test_a_machine_of_another_net_is_not_taken_for_the_second_net() -> None:
    with torch.no_grad():
        claim, error = common_machine((slow_net("rnn", None), slow_net("rnn", 30)), ENDS, seed=0)
    assert (claim.level, error) == ("tested", ("a",) * 31)
    assert claim.reason == "the second net: it differs from a machine of 2 states on a string of 31 symbols"
