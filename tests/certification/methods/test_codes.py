"""Merges of codes, enumerated: against what float32 and float64 compute, and with planted faults."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from last_symbol import LastSymbol, last_symbol_net

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.methods.codes.evidence import CodeEvidence
from lengthwise.certification.methods.codes.prover import _codes_of, enumerate_merges
from lengthwise.certification.methods.enclosures.prover import invariant_enclosures
from lengthwise.certification.verify import check
from lengthwise.extraction.base import Extraction
from lengthwise.extraction.tree import extract_tree
from lengthwise.models import make_model
from lengthwise.models.codebook_gpt import CodebookGPT, CodebookGPTConfig
from lengthwise.ops.tree_attention import merge_windows
from lengthwise.report.tables.certificate import certificate_lines
from lengthwise.tasks import make_task

pytestmark = pytest.mark.unchecked

PARITY = make_task("parity")
TASK = LastSymbol()
SMALL = {"d_model": 16, "num_heads": 2}


def with_random_codes(seed: int, count: int, **config) -> CodebookGPT:
    model = make_model("codebook-gpt", PARITY, seed=seed, **SMALL | config)
    codes = torch.randn(count, 16, generator=torch.Generator().manual_seed(seed))
    model.codebook.fill(torch.nn.functional.layer_norm(codes, (16,)))
    return model


def extracted(model: CodebookGPT) -> Extraction:
    return extract_tree(model, PARITY.symbols, radius=min(model.codebook.gap / 2, 2.0))


def merges(extraction: Extraction) -> tuple[torch.Tensor, torch.Tensor]:
    """The windows of the table, and the prototypes that it says they become."""
    table = extraction.fine.table
    windows = np.argwhere(table >= 0)
    return torch.from_numpy(windows), torch.from_numpy(table[tuple(windows.T)])


@torch.no_grad()
def slack_by_definition(model: CodebookGPT, extraction: Extraction) -> float:
    """The distance of merged states, in float64, to the nearest point from which another code is as near."""
    exact = copy.deepcopy(model).double()
    windows, targets = merges(extraction)
    states = merge_windows(exact.tree.layers[0].layer, extraction.prototypes.double()[windows])
    nearest, codes = extraction.prototypes.double()[targets], exact.codebook.known
    slacks = []
    for code in codes:
        ahead = (states - code).square().sum(1) - (states - nearest).square().sum(1)
        slack = ahead / (2 * (code - nearest).norm(dim=1))
        slacks.append(float(slack.where((code != nearest).any(1), torch.inf).min()))
    return min(slacks)


@given(st.integers(0, 10**6), st.sampled_from([(2, 2), (2, 8), (3, 3)]))
def test_slack_is_that_of_the_definition_less_rounding(seed: int, sizes: tuple[int, int]) -> None:
    chunk_size, count = sizes
    model = with_random_codes(seed, count, chunk_size=chunk_size)
    extraction = extracted(model)
    exact, evidence = slack_by_definition(model, extraction), enumerate_merges(model, extraction)
    if evidence is None:
        assert exact < 1e-2
    else:
        assert exact - 1e-2 < evidence.slack <= exact
        assert evidence.num_merges == len(merges(extraction)[0])


@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(1, 300))
def test_the_net_is_its_table_to_the_last_bit(seed: int, count: int, length: int) -> None:
    model = with_random_codes(seed, count)
    extraction = extracted(model)
    strings = torch.randint(2, (8, length), generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        states, logits = model.last_state(strings), model(strings)[:, -1]
    assume(enumerate_merges(model, extraction) is not None)
    assert torch.equal(states, extraction.prototypes[extraction.fine.final_classes(strings.numpy())])
    assert torch.equal(logits.argmax(-1), torch.from_numpy(extraction.machine.answers(strings.numpy())))


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(0, 3))
def test_a_state_between_two_codes_is_never_certain(seed: int, count: int, index: int) -> None:
    """A code is planted as far from a merged state as the code that this becomes."""
    model = with_random_codes(seed, count)
    before = extracted(model)
    windows, targets = (whole[index] for whole in merges(before))
    parts, code = before.prototypes[windows], before.prototypes[targets]
    with torch.no_grad():
        state = merge_windows(model.tree.layers[0].layer, parts)
    model.codebook.fill(torch.stack([*model.codebook.known.clone(), 2 * state - code]))
    after = extracted(model)
    assume(_is_merged(after, parts))
    assert enumerate_merges(model, after) is None


def _is_merged(extraction: Extraction, parts: torch.Tensor) -> bool:
    """Whether strings still show this window; the code that was planted may have taken their ways elsewhere."""
    windows, _ = merges(extraction)
    return bool((extraction.prototypes[windows] == parts).flatten(1).all(1).any())


def test_a_wrong_entry_of_the_table_is_found() -> None:
    model = with_random_codes(0, 6)
    extraction = extracted(model)
    machine = extraction.fine
    windows, targets = merges(extraction)
    assert enumerate_merges(model, extraction) is not None
    for window, target in zip(windows.tolist(), targets.tolist(), strict=True):
        table = machine.table.copy()
        table[tuple(window)] = target + 1 if target + 1 < machine.num_classes else target - 1
        wrong = TreeMachine(machine.symbols, machine.leaves, table, machine.outputs)
        assert enumerate_merges(model, extraction._replace(fine=wrong)) is None


def test_models_without_codes_are_not_proved_this_way() -> None:
    plain, without = (make_model(name, PARITY, **SMALL) for name in ("regular-gpt", "codebook-gpt"))
    for model in (plain, without):
        with pytest.raises(ValueError, match="model: expected a CodebookGPT with a QuantizingLayer, got a"):
            enumerate_merges(model, extract_tree(model, PARITY.symbols, radius=20.0))


def test_enclosures_are_not_looked_for_where_states_are_quantized() -> None:
    model = with_random_codes(0, 6)
    with pytest.raises(ValueError, match="with a MergeLayer, got a CodebookGPT with a QuantizingLayer"):
        invariant_enclosures(model, extracted(model))


def test_the_extraction_of_another_model_is_refused() -> None:
    model = with_random_codes(0, 6)
    with pytest.raises(ValueError, match="expected the model's leaves and codes as prototypes"):
        enumerate_merges(model, extracted(with_random_codes(1, 6)))
    leaves_alone, codes_alone = with_random_codes(0, 6), with_random_codes(0, 6)
    with torch.no_grad():
        codes_alone.embedding.weight += 1
    leaves_alone.codebook.fill(model.codebook.known + 1)
    for other in (leaves_alone, codes_alone):
        with pytest.raises(ValueError, match="expected the model's leaves and codes as prototypes"):
            enumerate_merges(other, extracted(model))


def test_codes_are_compared_in_all_numbers() -> None:
    """Two codes may share their first number; a state that shares a number with a code is not the code."""
    model = with_random_codes(0, 3)
    codes, leaves = model.codebook.known.clone(), model.tree.leaves
    codes[:, 0] = codes[0, 0]
    model.codebook.fill(codes)
    for order in ([0, 1, 2], [2, 1], [1]):
        extraction = extracted(with_random_codes(0, 3))
        merged = codes[order]
        extraction = extraction._replace(prototypes=torch.cat([leaves, merged]), num_given=len(leaves))
        assert _codes_of(extraction, leaves, model.codebook).tolist() == [-1] * len(leaves) + order
        merged[-1, 1] += 1
        extraction = extraction._replace(prototypes=torch.cat([leaves, merged]))
        with pytest.raises(ValueError, match="expected the model's leaves and codes as prototypes"):
            _codes_of(extraction, leaves, model.codebook)


def test_of_one_code_there_is_no_slack() -> None:
    model = with_random_codes(0, 1)
    evidence = enumerate_merges(model, extracted(model))
    assert evidence is not None
    assert evidence.slack is None


@pytest.mark.usefixtures("fewer_strings")
def test_a_task_of_one_answer_has_no_margin() -> None:
    task = make_task("cycle-navigation", size=1)
    model = make_model("codebook-gpt", task, **SMALL)
    codes = torch.randn(3, 16, generator=torch.Generator().manual_seed(0))
    model.codebook.fill(torch.nn.functional.layer_norm(codes, (16,)))
    certificate = certify(model, task)
    assert certificate.level == "proved"
    assert certificate.evidence.logit_margin is None
    check(certificate)
    assert "there is only one answer" in dict(certificate_lines(certificate))["codes"]


def test_a_codebook_of_a_models_own_is_refused() -> None:
    model = with_random_codes(0, 6)
    extraction = extracted(model)
    model.codebook.forward = lambda states: states
    with pytest.raises(ValueError, match="only the methods of its class, got a replaced method forward; restore this"):
        enumerate_merges(model, extraction)


def test_too_many_merges_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lengthwise.certification.methods.codes.prover.MAX_ENUMERATED", 10)
    model = with_random_codes(0, 6)
    with pytest.raises(ValueError, match="extraction: expected no more than 10 merges to enumerate, got "):
        enumerate_merges(model, extracted(model))


@pytest.fixture(scope="module")
def coded() -> CodebookGPT:
    """The net of `last_symbol_net`, its two fixed points the codes: right on every CPU, as no training is."""
    plain = last_symbol_net()
    model = CodebookGPT(CodebookGPTConfig(d_model=8, num_heads=2), vocab_size=2, num_classes=2)
    model.load_state_dict(plain.state_dict(), strict=False)
    model.codebook.fill(extract_tree(plain, TASK.symbols, radius=1.0).prototypes[3:])
    return model


@pytest.mark.usefixtures("fewer_strings")
def test_a_net_of_codes_is_right_at_every_length(coded: CodebookGPT) -> None:
    certificate = certify(coded, TASK)
    assert certificate.level == "proved"
    assert isinstance(certificate.evidence, CodeEvidence)
    assert certificate.evidence.num_codes == int(coded.codebook.count)
    assert certificate.closure is not None
    assert certificate.closure.radius == 0
    assert "the model merges codes as the machine does" in check(certificate).taken_on_trust
    assert Certificate.from_text(certificate.to_text()) == certificate
    assert "codes" in dict(certificate_lines(certificate))
    for name, sentence in (
        ("slack", "expected a positive slack, or None for a single code, got -1e-09"),
        ("logit_margin", "expected a positive logit margin, got -1e-09"),
    ):
        evidence = certificate.evidence.model_copy(update={name: -1e-9})
        with pytest.raises(ValueError, match=sentence):
            check(certificate.model_copy(update={"evidence": evidence}))


@pytest.mark.usefixtures("fewer_strings")
def test_a_code_moved_to_the_middle_costs_proved(coded: CodebookGPT) -> None:
    """Close to the other code; then between a merged state and the code that this becomes."""
    first, *_, second = codes = coded.codebook.known.clone()
    moved = copy.deepcopy(coded)
    moved.codebook.fill(torch.cat([(0.2 * first + 0.8 * second)[None], codes[1:]]))
    assert certify(moved, TASK).level == "refuted"
    extraction = extract_tree(coded, TASK.symbols, radius=1.0)
    windows, targets = merges(extraction)
    with torch.no_grad():
        states = merge_windows(coded.tree.layers[0].layer, extraction.prototypes[windows])
    planted = copy.deepcopy(coded)
    planted.codebook.fill(torch.cat([codes, (2 * states[-1] - extraction.prototypes[targets[-1]])[None]]))
    assert certify(planted, TASK).level != "proved"


@pytest.mark.usefixtures("fewer_strings")
def test_a_net_that_found_no_codes_is_certified_as_any_other(coded: CodebookGPT) -> None:
    without = copy.deepcopy(coded)
    without.codebook.count.zero_()
    certificate = certify(without, TASK)
    assert (certificate.evidence is not None) == (certificate.level == "proved")
    assert certificate.evidence is None or certificate.evidence.method == "enclosures"
