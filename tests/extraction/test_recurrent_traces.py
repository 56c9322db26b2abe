"""The states of recurrent models along strings, compared with a machine's."""

import pytest
import torch

from lengthwise.certification.searches import search_samples
from lengthwise.certification.traces import FIRST_BATCH_TRACED, TracedStrings
from lengthwise.constructions import construct
from lengthwise.extraction.base import reader_of
from lengthwise.extraction.readers import recurrent as recurrent_reader
from lengthwise.extraction.readers.recurrent import extract_recurrent
from lengthwise.models import make_model
from lengthwise.tasks import make_task

PARITY = make_task("parity")


@pytest.mark.parametrize("model_name", ["rnn", "gru", "delta-net"])
def test_states_that_are_kept_count_as_those_computed_again(model_name, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each of several extractions, of which a good one agrees and a coarse one does not."""
    model = make_model(model_name, PARITY, d_model=8).double()
    reader = reader_of(model, PARITY.symbols)
    strings = torch.randint(2, (30, 41), generator=torch.Generator().manual_seed(0))
    extractions = []
    with torch.no_grad():
        radii = reader.radii(strings)
    for radius in radii:
        try:
            extractions.append(reader.extract(radius))
        except ValueError:
            break  # more classes than are allowed
    assert extractions
    kept = reader.traces(strings)
    counts = [kept.compare(extraction) for extraction in extractions]
    monkeypatch.setattr(recurrent_reader, "MAX_KEPT_POSITIONS", 30 * 41 - 1)
    again = reader.traces(strings)
    for extraction, count in zip(extractions, counts, strict=True):
        computed = again.compare(extraction)
        assert computed[:3] == count[:3]
        assert computed.max_distance == pytest.approx(count.max_distance, rel=1e-9, abs=1e-12)
    assert (kept._kept is None, again._kept is None) == (False, True)
    assert counts[0].num_nodes == strings.numel()


def test_states_are_closed_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of many symbols: a matrix of all next states and all prototypes would not fit into memory."""
    task = make_task("cycle-navigation")
    model = construct("rnn", task).model
    whole = extract_recurrent(model, task.symbols, radius=0.1)
    monkeypatch.setattr(recurrent_reader, "MAX_STATES_PER_CHUNK", 3)
    stepped = []
    monkeypatch.setattr(type(model), "step", _recorded(type(model).step, stepped))
    again = extract_recurrent(model, task.symbols, radius=0.1)
    assert max(stepped) == 3
    assert again.machine.to_json() == whole.machine.to_json()
    assert torch.equal(again.prototypes, whole.prototypes)


def _recorded(step, sizes: list[int]):
    def recorded(self, tokens, state):
        sizes.append(len(tokens))
        return step(self, tokens, state)

    return recorded


def test_a_state_in_another_class_counts_whether_states_are_kept_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a machine that is in another class after every symbol all states are, and it is seen in both ways."""
    model = make_model("gru", PARITY, d_model=8)
    reader = reader_of(model, PARITY.symbols)
    strings = torch.randint(2, (5, 7), generator=torch.Generator().manual_seed(0))
    extraction = reader.extract(100.0)
    elsewhere = extraction._replace(classes=extraction.classes + extraction.machine.num_states)
    for maximum in (35, 34):
        monkeypatch.setattr(recurrent_reader, "MAX_KEPT_POSITIONS", maximum)
        assert reader.traces(strings).compare(elsewhere).num_disagreements == 35


def test_a_recurrence_that_errs_reads_few_strings_and_one_that_does_not_reads_all() -> None:
    """The answers of a net that is not trained are wrong on some of the first 32, which are spread evenly."""
    model = make_model("gru", PARITY, d_model=8)
    strings = PARITY.sample(500, 20, torch.Generator().manual_seed(0)).inputs
    traced = TracedStrings(strings, reader_of(model, PARITY.symbols).traces(strings))
    wrong, (tested,), _ = search_samples(model, PARITY, [traced])
    assert FIRST_BATCH_TRACED <= tested.num_strings < FIRST_BATCH_TRACED + 5
    assert wrong is not None
    parts = [part for part, _ in traced.graded(model, PARITY)]
    assert torch.cat(parts).unique(dim=0).equal(strings.unique(dim=0))
