"""Nets without a certificate of a high level: the reason is named, and models that cannot be certified are refused."""

import pytest
import torch
from last_symbol import LastSymbol, last_symbol_net
from slow_nets import slow_net
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

import lengthwise.certification.methods.enclosures.prover as enclosures_module
import lengthwise.certification.methods.intervals.prover as intervals_module
import lengthwise.extraction.tree as tree_module
from lengthwise.certification.certify import certify
from lengthwise.certification.methods.enclosures.prover import invariant_enclosures
from lengthwise.certification.subject import check_model
from lengthwise.constructions import construct
from lengthwise.extraction.prototypes import NotFinite
from lengthwise.extraction.readers.recurrent import extract_recurrent
from lengthwise.extraction.tree import extract_tree
from lengthwise.models import make_model
from lengthwise.models.base import RecurrentModel
from lengthwise.report.tables.certificate import certificate_lines
from lengthwise.tasks import make_task


@pytest.mark.parametrize(
    "settings",
    [{"thickness": 2}, {"variant": "code"}, {"variant": "paper"}, {"chunk_size": 4}, {"lower_chunk_sizes": (3, 5)}],
)
def test_untrained_models_are_refuted_whatever_they_are(settings: dict) -> None:
    task = make_task("cycle-navigation")
    certificate = certify(make_model("regular-gpt", task, d_model=16, num_heads=2, **settings), task)
    assert certificate.level == "refuted"
    assert len(certificate.counterexample.string) <= 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_that_are_no_numbers_or_denormal_are_named(dtype: torch.dtype) -> None:
    """What is denormal is 0 on some processors, and then the net is another one."""
    tiny = torch.finfo(dtype).tiny
    for value, sentence in (
        (float("nan"), "got NaN in layers.0.gain"),
        (tiny / 4, "got denormal numbers in layers"),
    ):
        model = last_symbol_net().to(dtype)
        with torch.no_grad():
            model.layers[0].gain[1] = value
        for flushes in (False, True):
            torch.set_flush_denormal(flushes)
            try:
                with pytest.raises(ValueError, match=sentence):
                    certify(model, LastSymbol())
            finally:
                torch.set_flush_denormal(False)
    model = last_symbol_net().to(dtype)
    with torch.no_grad():
        model.layers[0].gain[:] = torch.tensor([0.0, -0.0, tiny, -tiny] * 2)
    check_model(model, LastSymbol())


def test_perturbed_states_are_never_bounded() -> None:
    model = last_symbol_net()
    extraction = extract_tree(model, ("a", "b"), radius=1.0)
    with pytest.raises(ValueError, match="expected no perturbation of states, got a perturbation; set model"):
        invariant_enclosures(model.perturbed(lambda states: -states), extraction)


def test_a_global_hook_is_never_bounded() -> None:
    model = last_symbol_net()
    extraction = extract_tree(model, ("a", "b"), radius=1.0)
    for register in (register_module_forward_hook, register_module_forward_pre_hook):
        handle = register(lambda *given: None)
        try:
            with pytest.raises(ValueError, match="got a global hook; remove the hook"):
                invariant_enclosures(model, extraction)
        finally:
            handle.remove()
    assert invariant_enclosures(model, extraction).evidence is not None


def test_a_class_with_an_infinite_logit_is_no_class() -> None:
    """Grading counts such an answer as wrong, whatever the largest logit is."""
    model = last_symbol_net()
    with torch.no_grad():
        model.readout[1].bias[1] = float("inf")
    with pytest.raises(NotFinite, match="a logit of a state is not finite"):
        extract_tree(model, ("a", "b"), radius=1.0)
    with pytest.raises(NotFinite, match="a logit of a state is not finite"):
        extract_recurrent(construct_with_infinite_logit(), ("a", "b"), radius=1.0)


def construct_with_infinite_logit() -> RecurrentModel:
    model = construct("rnn", make_task("parity")).model
    with torch.no_grad():
        model.readout.bias[0] = float("inf")
    assert isinstance(model, RecurrentModel)
    return model


def test_other_models_and_tasks_are_refused_in_a_sentence() -> None:
    task = LastSymbol()
    for dtype in (torch.float16, torch.bfloat16):
        with pytest.raises(ValueError, match=r"expected weights in float32 or float64, got torch\.b?float16"):
            certify(last_symbol_net().to(dtype), task)
    with pytest.raises(ValueError, match=r"expected weights on the CPU, got weights on meta; certify model\.cpu\(\)"):
        certify(last_symbol_net().to("meta"), task)
    with pytest.raises(ValueError, match="expected a model that reads the 3 symbols of the task, got an error "):
        certify(last_symbol_net(), make_task("cycle-navigation"))
    with pytest.raises(ValueError, match="expected a model for the 2 answers of the task, got one for 5"):
        certify(make_model("regular-gpt", make_task("cycle-navigation"), d_model=16, num_heads=2), make_task("parity"))


class Unsteady(torch.nn.Module):
    """Functions of torch that do not know of `model.eval()`, and cores whose sums come out in another order."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        if self.kind == "dropout":
            return torch.nn.functional.dropout(states, 0.1)
        return states * (1 + 1e-6 * torch.rand_like(states))


@pytest.mark.parametrize("kind", ["dropout", "core"])
def test_models_that_answer_at_random_are_refused(kind: str) -> None:
    model = slow_net("gru", None, pace=0.3)
    model.readout = torch.nn.Sequential(Unsteady(kind), model.readout)
    with pytest.raises(
        ValueError, match=r"got different logits the second time; turn off dropout, noise and whatever else is"
    ):
        certify(model, LastSymbol())


@pytest.mark.usefixtures("fewer_strings")
def test_dropout_that_evaluation_turns_off_is_no_hindrance() -> None:
    model = construct("rnn", make_task("parity")).model
    model.readout = torch.nn.Sequential(torch.nn.Dropout(0.5), model.readout)
    assert certify(model.train(), make_task("parity")).level == "extracted"
    assert model.training


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize(
    ("kind", "module", "budget", "level", "sentence"),
    [
        ("regular-gpt", tree_module, "MAX_WINDOWS", "tested", "a level needs over 0 merges"),
        (
            "regular-gpt",
            enclosures_module,
            "MAX_BOUNDED",
            "extracted",
            "expected at most 0 merges (left of 0 for all searches), got",
        ),
        ("regular-gpt", enclosures_module, "MAX_BYTES", "extracted", "bounds take no more than 0 bytes, got"),
        ("gru", intervals_module, "MAX_NUMBERS", "extracted", "expected at most 0 intervals in a round, got"),
    ],
)
def test_budgets_of_nothing_are_reasons(kind, module, budget: str, level: str, sentence: str, monkeypatch) -> None:
    monkeypatch.setattr(module, budget, 0)
    model = last_symbol_net() if kind == "regular-gpt" else slow_net(kind, None, pace=0.3)
    certificate = certify(model, LastSymbol())
    assert certificate.level == level
    assert sentence in " ".join(value for _, value in certificate_lines(certificate))


@pytest.mark.parametrize(
    ("budget", "sentence"),
    [
        ("MAX_WINDOWS", "a level needs over 20 merges"),
        ("MAX_MERGES", "machine's table of 5 classes has 125 entries"),
    ],
)
def test_windows_of_many_parts_have_a_budget(budget: str, sentence: str, monkeypatch) -> None:
    monkeypatch.setattr(tree_module, budget, 20)
    model = last_symbol_net(chunk_size=3)
    with pytest.raises(ValueError, match=sentence):
        extract_tree(model, ("a", "b"), radius=1.0)


def test_a_task_without_a_machine_and_another_precision_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = make_task("subset-sum")
    with pytest.raises(ValueError, match="task: expected a task with a finite reference machine, got subset-sum; "):
        certify(make_model("rnn", sums), sums)
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16")
    with pytest.raises(ValueError, match="variable ONEDNN_DEFAULT_FPMATH_MODE to be unset or STRICT, got 'BF16'"):
        certify(last_symbol_net(), LastSymbol())
