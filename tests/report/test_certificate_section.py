"""What a page shows of a certificate: its machine, whole where it is small."""

import pytest
import torch
from torch import nn

from lengthwise.analysis.states import BlockStates
from lengthwise.automata.monoid import transition_monoid
from lengthwise.certification.certify import certify
from lengthwise.certification.drawing import class_names
from lengthwise.certification.verify import check
from lengthwise.constructions import construct
from lengthwise.models.wrapped import wrap
from lengthwise.report.pages.certificate import certificate_section
from lengthwise.report.tables.certificate import certificate_lines
from lengthwise.tasks import make_task

pytestmark = [pytest.mark.unchecked, pytest.mark.usefixtures("fewer_strings")]


def test_the_table_of_a_recurrent_machine_says_where_each_symbol_leads() -> None:
    task = make_task("tomita", index=1)  # strings of ones
    certificate = certify(construct("rnn", task).model, task)
    assert class_names(certificate) == ["(start)", "0", "1"]  # before any symbol its answer is no task's business
    html, charts = certificate_section({"a run": certificate})
    assert list(charts) == ["map-0"]
    cells = html.replace("<td>", "|").replace("</td>", "").replace("<th>", "|").replace("</th>", "")
    assert "state \\ symbol|answer|0|1" in cells
    assert html.count('class="state"') == 3, "the machine is drawn"
    for row in ("|(start)|out|0|1", "|0|out|0|0", "|1|in|0|1"):
        assert row in cells


def test_a_start_that_nothing_leads_back_to_has_a_name() -> None:
    task = make_task("equal-ends", num_digits=2)
    certificate = certify(construct("block-linear-rnn", task).model, task)
    names = class_names(certificate)
    assert names[0] == "(start)"
    assert sorted(names[1:]) == ["0", "01", "1", "10"]


def test_names_of_words_are_spelled_with_spaces() -> None:
    """Without them aa would be one word and two."""
    table, outputs = ((1, 2, 3), (2, 3, 0), (3, 0, 1), (0, 1, 2)), (0, 0, 1, 0)
    task = make_task("machine", alphabet=("a", "aa", "go"), table=table, outputs=outputs)
    names = class_names(certify(construct("block-linear-rnn", task).model, task))
    assert sorted(names) == ["a", "a go", "aa", "go"]
    assert len(set(BlockStates(*[torch.zeros(0)] * 3, transition_monoid(task.transducer.semiautomaton), 2).names)) == 4


def test_a_large_machine_has_no_table() -> None:
    task = make_task("word-problem", group="Z31")
    html, _ = certificate_section({"a run": certify(construct("rnn", task).model, task)})
    assert html.count('class="state"') in (31, 32), "it is drawn all the same"
    assert "state \\ symbol" not in html


def test_states_of_a_single_symbol_have_names_and_some_have_numbers() -> None:
    task = make_task("regex", pattern="a" * 70)
    certificate = certify(construct("block-linear-rnn", task).model, task)
    names = class_names(certificate)
    assert len(names) == 72
    assert names[:3] == ["(start)", "a", "aa"]


def test_a_counterexample_of_words_has_spaces_between_them() -> None:
    task = make_task("machine", alphabet=("in", "out"), table=((0, 1), (0, 2), (0, 0)), outputs=(0, 0, 1))
    says_no = nn.Linear(6, 2)
    says_no.load_state_dict({"weight": torch.zeros(2, 6), "bias": torch.tensor([1.0, 0.0])})
    certificate = certify(wrap(nn.Embedding(2, 4), nn.GRU(4, 6), says_no), task)
    assert (
        "out out: the model answers no; the right answer is yes"
        in dict(certificate_lines(certificate))["counterexample"]
    )
    assert "(2 symbols: out out) is yes" in " ".join(check(certificate).verified)
