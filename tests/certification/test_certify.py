"""What certify says of models whose machine is known, of others, and of what is no model for its task."""

import pytest
import torch
from last_symbol import LastSymbol, last_symbol_net
from table_model import right_machine, table_model

import lengthwise.certification.traces as traces_module
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.builder import _map
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.methods.enclosures.prover import invariant_enclosures
from lengthwise.certification.traces import SUBSAMPLE_SIZE, TracedStrings
from lengthwise.certification.verify import check
from lengthwise.constructions import construct
from lengthwise.extraction.base import reader_of
from lengthwise.extraction.readers import tree as tree_reader
from lengthwise.extraction.tree import extract_tree
from lengthwise.extraction.tree_traces import build_trees, compare_traces
from lengthwise.models import make_model
from lengthwise.models.machine import TransducerModel
from lengthwise.models.regular_gpt import RegularGPT, RegularGPTConfig
from lengthwise.report.tables.certificate import certificate_lines
from lengthwise.tasks import make_task


@pytest.fixture(scope="module")
def proved() -> Certificate:
    return certify(last_symbol_net(), LastSymbol())


def test_a_net_that_draws_its_states_to_fixed_points_is_proved(proved: Certificate) -> None:
    assert proved.level == "proved"
    assert proved.reason == ""
    assert [agreement.length for agreement in proved.trace_agreement] == [40, 500, 10_000]
    assert all(part.num_strings == 1_000 for part in (*proved.tested, *proved.trace_agreement))
    assert proved.evidence.logit_margin > 0
    assert len(check(proved).verified) == 1
    assert proved.closure.gap > proved.closure.radius


def test_proved_means_right_everywhere(proved: Certificate) -> None:
    """Longer than anything that certify tried; the margin is one of every string."""
    model, task = last_symbol_net(), LastSymbol()
    generator = torch.Generator().manual_seed(0)
    for length in (1, 2, 3, 63, 700, 20_001):
        strings = torch.randint(2, (200_000 // length, length), generator=generator)
        logits = model.last(strings).detach()
        right = task.solve(strings)[:, -1:]
        lead = logits.gather(1, right) - logits.gather(1, 1 - right)
        assert float(lead.min()) >= proved.evidence.logit_margin


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize(("name", "chunk_size"), [("parity", 3), ("cycle-navigation", 2), ("even-pairs", 2)])
def test_right_tables_are_finite(name: str, chunk_size: int) -> None:
    task = make_task(name)
    machine = right_machine(task, chunk_size)
    certificate = certify(table_model(machine, scatter=0.05, num_answers=len(task.classes)), task)
    assert certificate.level == "extracted"
    assert certificate.reason == "no method of proof is registered for a TableModel and reader 'tree'"
    again = Certificate.from_text(certificate.to_text())
    assert again == certificate
    assert TreeMachine.from_json(again.machine).difference_string(task.transducer) is None
    assert certificate.laws.pad_is_identity
    assert certificate.laws.num_violations == 0


@pytest.mark.usefixtures("fewer_strings")
def test_chunks_of_three_and_double_precision_are_certified_too() -> None:
    task = LastSymbol()
    assert certify(last_symbol_net(chunk_size=3), task).level == "proved"
    assert certify(last_symbol_net().double(), task).level == "proved"
    table = table_model(right_machine(make_task("parity"))).double()
    assert certify(table, make_task("parity")).level == "extracted"


@pytest.mark.usefixtures("fewer_strings")
def test_the_same_seed_gives_the_same_certificate() -> None:
    model = last_symbol_net()
    once = certify(model, LastSymbol())
    again = certify(model.train(), LastSymbol())
    assert model.training
    assert again.model_copy(update={"seconds": once.seconds}) == once


class Renamed(RegularGPT):
    """Its layer may compute anything, for all that is known of a subclass."""


@pytest.mark.usefixtures("fewer_strings")
def test_bounds_say_nothing_of_subclasses() -> None:
    model = Renamed(RegularGPTConfig(d_model=8, num_heads=2), vocab_size=2, num_classes=2)
    model.load_state_dict(last_symbol_net().state_dict())
    certificate = certify(model, LastSymbol())
    assert certificate.level == "extracted"
    assert "got a Renamed with a MergeLayer" in certificate.reason


def test_a_net_with_its_read_out_turned_round_is_refuted() -> None:
    model = last_symbol_net()
    with torch.no_grad():
        model.readout[1].weight.neg_()
    certificate = certify(model, LastSymbol())
    assert certificate.level == "refuted"
    assert certificate.counterexample.string == ("a",)
    assert certificate.counterexample.shortest == "of all strings"


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize("name", ["embedding.weight", "layers.0.gain", "layers.0.to_output.weight", "readout.1.bias"])
def test_infinite_weights_prove_little(name: str) -> None:
    """The tanh makes an infinite symbol or gain harmless, so that a machine may be found; but no enclosures."""
    model = last_symbol_net()
    with torch.no_grad():
        model.get_parameter(name).view(-1)[-1] = float("inf")
    certificate = certify(model, LastSymbol())
    harmless = name in ("embedding.weight", "layers.0.gain")
    assert certificate.level in (("extracted", "tested") if harmless else ("refuted",))
    check(Certificate.from_text(certificate.to_text()))


def test_a_state_that_is_no_number_is_in_no_class() -> None:
    model, task = last_symbol_net(), LastSymbol()
    extraction = extract_tree(model, task.symbols, radius=1.0)
    states = torch.full((3, 8), 1.0)
    states[0, 0], states[1, 0], states[2] = float("nan"), float("inf"), extraction.prototypes[-1]
    classes, distances = extraction.classes_of(model, states)
    assert classes.tolist() == [-1, -1, extraction.classes[-1]]
    assert distances.isfinite().tolist() == [False, False, True]


def test_a_state_whose_answer_no_prototype_gives_is_in_no_class() -> None:
    """However near it is: what it says is not what they say."""
    model, task = last_symbol_net(), LastSymbol()
    extraction = extract_tree(model, task.symbols, radius=1.0)
    in_b = extraction.prototypes[-1:]
    with torch.no_grad():
        assert int(model.readout(in_b).argmax()) == 1
    none_of_b = extraction._replace(
        prototypes=extraction.prototypes.index_fill(0, torch.tensor([len(extraction.prototypes) - 1]), 0)
    )
    classes, distances = none_of_b.classes_of(model, in_b)
    assert classes.tolist() == [-1]
    assert distances.tolist() == [float("inf")]
    seen = compare_traces(model, none_of_b, [build_trees(model, torch.tensor([[1] * 9, [0] * 9]))])
    assert seen.num_disagreements == 11


@pytest.mark.parametrize("config", [{"thickness": 2}, {"variant": "code"}, {"lower_chunk_sizes": (4,)}, {}])
def test_answers_to_many_symbols_are_the_models_own(config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read off trees where these are followed, and from the model where they are others than its own."""
    monkeypatch.setattr(traces_module, "MAX_SYMBOLS_READ", 1_000)
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=16, num_heads=4, **config).double()  # no answer hangs on a bit
    strings = task.sample(200, 37, torch.Generator().manual_seed(0)).inputs
    traced = TracedStrings(strings, reader_of(model, task.symbols).traces(strings))
    with torch.no_grad():
        parts = list(traced.graded(model, task))
        assert sum(len(part) for part, _ in parts) == len(strings)
        for part, graded in parts:
            assert torch.equal(graded.answers, model.last(part).argmax(-1))


def test_trees_are_cached_up_to_a_number_of_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = last_symbol_net(), LastSymbol()
    monkeypatch.setattr("lengthwise.extraction.tree_traces.MAX_SYMBOLS_PER_CHUNK", 400)
    reader = reader_of(model, task.symbols)
    strings = torch.randint(2, (30, 40), generator=torch.Generator().manual_seed(0))
    extraction = reader.extract(1.0)
    cached, built = reader.traces(strings), reader.traces(strings)
    counts = [cached.compare(extraction) for _ in range(2)]
    monkeypatch.setattr(tree_reader, "MAX_CACHED_ELEMENTS", 0)
    assert [built.compare(extraction) for _ in range(2)] == counts
    assert (len(list(cached.trees)), len(cached._cached), len(built._cached)) == (3, 3, 0)


class ErrsFarOut(RegularGPT):
    """Does what its trees do, but for strings of more than 1,000 symbols that begin with two b."""

    def last(self, inputs):
        logits = super().last(inputs)
        errs = inputs.shape[1] > 1_000 and inputs[:, :2].all(1)
        return torch.where(torch.as_tensor(errs)[..., None], -logits, logits)


@pytest.mark.usefixtures("fewer_long_strings")
def test_a_model_that_does_not_do_what_its_trees_do_is_refuted() -> None:
    honest = last_symbol_net()
    model = ErrsFarOut(honest.config, vocab_size=2, num_classes=2)
    model.load_state_dict(honest.state_dict())
    certificate = certify(model, LastSymbol())
    assert certificate.level == "refuted"
    assert len(certificate.counterexample.string) > 1_000


def test_a_method_of_a_models_own_is_never_bounded() -> None:
    for part in ("", "layers.0"):
        model = last_symbol_net()
        module = model.get_submodule(part)
        name = "output" if part else "last_state"
        setattr(module, name, getattr(module, name))
        with pytest.raises(ValueError, match=f"only the methods of its class, got a replaced method {name}"):
            invariant_enclosures(model, extract_tree(model, ("a", "b"), radius=1.0))


@pytest.mark.usefixtures("fewer_strings")
def test_a_state_that_overflows_answers_nothing() -> None:
    """A compiled net with one more unit, which nobody reads and which doubles with every symbol: 2^128 is too much."""
    task = make_task("parity")
    compiled = construct("rnn", task).model
    width = compiled.config.d_model
    model = make_model("rnn", task, d_model=width + 1)
    for parameter, known in zip(model.parameters(), compiled.parameters(), strict=True):
        parameter.detach().zero_()[tuple(map(slice, known.shape))] = known.detach()
    with torch.no_grad():
        model.hidden_weight[width, width], model.first_state[width] = 2.0, 1.0
    certificate = certify(model, task)
    assert certificate.level == "refuted"
    assert certificate.counterexample.got is None
    assert len(certificate.counterexample.string) == 128
    assert Certificate.from_text(certificate.to_text()) == certificate
    check(certificate)
    assert (
        "the model has a logit that is not finite; the right answer is"
        in dict(certificate_lines(certificate))["counterexample"]
    )


def test_the_subsample_is_spread_over_the_strings() -> None:
    strings = torch.arange(10 * SUBSAMPLE_SIZE)[:, None]
    assert TracedStrings(strings, None).subsample[:, 0].tolist() == list(range(0, 10 * SUBSAMPLE_SIZE, 10))
    assert len(TracedStrings(strings[:3], None).subsample) == 3


def test_the_map_is_around_the_mean_of_the_prototypes() -> None:
    extraction = extract_tree(last_symbol_net(), LastSymbol().symbols, radius=1.0)
    shifted = extraction._replace(prototypes=extraction.prototypes + 5)
    for one, other in zip(_map(extraction), _map(shifted), strict=True):
        assert one == pytest.approx(other, abs=2e-3)
    assert sum(x for x, _, _ in _map(extraction)) == pytest.approx(0, abs=1e-2)


def test_a_single_prototype_is_the_center_of_its_map() -> None:
    extraction = extract_tree(last_symbol_net(), LastSymbol().symbols, radius=1.0)
    alone = extraction._replace(prototypes=extraction.prototypes[:1], classes=extraction.classes[:1])
    assert _map(alone) == ((0.0, 0.0, int(alone.classes[0])),)


@pytest.mark.usefixtures("fewer_strings")
def test_a_state_of_one_number_is_on_the_map() -> None:
    """The sign of it says whether the last symbol is b."""
    model = make_model("rnn", LastSymbol(), d_model=1)
    with torch.no_grad():
        model.hidden_weight.zero_()
        model.input_weight.copy_(torch.tensor([[0.0, 1.0]]))
        model.readout.weight.copy_(torch.tensor([[-1.0], [1.0]]))
        model.readout.bias.copy_(torch.tensor([1.0, 0.0]))
    certificate = certify(model, LastSymbol())
    assert certificate.level == "proved"
    assert {y for _, y, _ in certificate.closure.points} == {0.0}


def test_autocast_is_refused() -> None:
    with torch.autocast("cpu"), pytest.raises(ValueError, match="expected no autocast, got autocast on the CPU"):
        certify(last_symbol_net(), LastSymbol())


@pytest.mark.usefixtures("fewer_strings")
def test_ties_are_answered_by_the_first_class() -> None:
    """All logits equal: right for a task's strings of class 0 only, which a string shows."""
    model = last_symbol_net()
    with torch.no_grad():
        model.readout[1].weight.zero_()
    certificate = certify(model, LastSymbol())
    assert certificate.level == "refuted"
    assert certificate.counterexample.string == ("b",)


@pytest.mark.usefixtures("fewer_strings")
def test_a_tie_that_is_answered_rightly_is_not_proved() -> None:
    """Of all strings outside the logits are equal, exactly: the first class is the right one."""
    model = last_symbol_net(gain=20.0)
    with torch.no_grad():
        model.readout[1].weight.copy_(torch.outer(torch.tensor([0.0, 1.0]), torch.eye(8)[0]))
        model.readout[1].bias[1] -= model.last(torch.tensor([[0]]))[0, 1]
        logits = model.last(torch.tensor([[0, 1, 0]]))[0]
    assert logits[0] == logits[1]
    certificate = certify(model, LastSymbol())
    assert certificate.level == "extracted"
    assert certificate.evidence is None


@pytest.mark.usefixtures("fewer_strings")
def test_the_reason_is_that_nothing_can_be_read_off() -> None:
    task = make_task("parity")
    certificate = certify(TransducerModel(task.transducer, task.classes), task)
    assert certificate.level == "tested"
    assert certificate.reason.startswith(
        "no reader supports models of type TransducerModel (readers: bare, codebook, grid, one-hot, "
    )
    assert all(tested.num_correct == tested.num_graded for tested in certificate.tested)


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize("num_radii", [1, 6])
def test_the_reason_names_the_first_attempt_and_the_last(num_radii: int, monkeypatch: pytest.MonkeyPatch) -> None:
    radii = [2.0**-k for k in range(num_radii)]

    def fail(self: tree_reader.TreeReader, radius: float) -> None:
        raise ValueError(f"attempt {radii.index(radius) + 1}")

    monkeypatch.setattr(tree_reader.TreeReader, "radii", lambda *given: radii)
    monkeypatch.setattr(tree_reader.TreeReader, "extract", fail)
    certificate = certify(last_symbol_net(), LastSymbol())
    assert certificate.level == "tested"
    assert certificate.reason == (
        "with radius 1: attempt 1"
        if num_radii == 1
        else "none of 6 attempts gave the model's machine; with radius 1: attempt 1; with radius 0.0312: attempt 6"
    )
