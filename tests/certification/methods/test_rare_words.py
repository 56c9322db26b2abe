"""Nets whose only error is one word of 25 to 60 symbols, which no extraction and no sample of strings shows."""

import pytest
import torch
from last_symbol import LastSymbol
from rare_words import ONE, random_word, rare_word_net

from lengthwise.certification.builder import mask_unsupervised
from lengthwise.certification.certify import certify
from lengthwise.certification.equivalence import first_error
from lengthwise.certification.methods.base import Unproved
from lengthwise.certification.methods.intervals.prover import IntervalProver
from lengthwise.extraction.readers.recurrent import extract_recurrent
from lengthwise.models.base import RecurrentModel

KINDS = ["gru", "lstm", "rnn"]
TASK = LastSymbol()


@torch.no_grad()
def check_errs_on(model: RecurrentModel, word: torch.Tensor) -> None:
    """Wherever the word ends, and nowhere else."""
    strings = torch.randint(2, (8, 100), generator=torch.Generator().manual_seed(1_000))
    strings[:4, 30 : 30 + len(word)] = word
    wrong = (model(strings).argmax(-1) != strings).nonzero().tolist()
    assert wrong == [[row, 29 + len(word)] for row in range(4)], "planted"


def check_never_proved(model: RecurrentModel) -> None:
    for radius in (4.0, 1.0, 0.3):
        extraction = extract_recurrent(model, TASK.symbols, radius=radius)
        assert first_error(extraction.machine, TASK.transducer) is None, "the word is not seen"
        with pytest.raises(Unproved, match="may contain states with different answers"):
            IntervalProver().prove(model, mask_unsupervised(extraction, TASK.transducer))


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [*range(3), *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60)]])
def test_nets_that_err_on_one_word_are_never_proved(kind: str, seed: int) -> None:
    """The first three words have 25, 32 and 39 symbols, and the next three have 46, 53 and 60."""
    word = random_word(25 + 7 * seed % 36, seed)
    model = rare_word_net(kind, word)
    check_errs_on(model, word)
    check_never_proved(model)


@pytest.mark.parametrize("kind", ["gru", pytest.param("lstm", marks=pytest.mark.slow)])  # with the same read-out
def test_a_margin_that_is_no_number_proves_nothing(kind: str) -> None:
    """A unit of the read-out that nobody reads is beyond what is bounded: infinity times 0."""
    word = random_word(40, 0)
    model = rare_word_net(kind, word)
    with torch.no_grad():
        model.readout[1].weight[ONE + 1], model.readout[2].weight[:, ONE + 1] = 1e16, 0.0
    check_errs_on(model, word)
    check_never_proved(model)


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize(
    "kind",
    [
        kind if kind == "gru" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS
    ],  # above every kind is never proved
)
def test_certificates_say_no_more_than_was_seen(kind: str) -> None:
    certificate = certify(rare_word_net(kind, random_word(40, 0)), TASK)
    assert certificate.level == "extracted"
    assert "may contain states with different answers" in certificate.reason
