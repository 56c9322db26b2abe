"""Tested strings that the task's machine names: no net passes that never gives a rare answer, or lacks a state."""

import torch

from lengthwise.automata.labeled import labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.certification import traces as traces_module
from lengthwise.certification.certify import certify
from lengthwise.certification.traces import with_rare_answers
from lengthwise.models.base import SequenceModel
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import RegularTask
from lengthwise.tasks.regular.machine import machine_task


class AnswersOf(SequenceModel):
    """Answers as a task does, but for strings of at least a length, to which it gives answer 0; it reads 600 symbols.

    No reader reads it.
    """

    def __init__(self, task: RegularTask, below: int) -> None:
        super().__init__()
        self.task, self.below = task, below

    max_length = 600

    def reset_parameters(self, generator):
        """It has none."""

    def forward(self, inputs):
        is_long = torch.arange(1, inputs.shape[1] + 1) >= self.below
        answers = torch.where(is_long, 0, self.task.solve(inputs))
        return torch.nn.functional.one_hot(answers, len(self.task.classes)).float()

    def last_state(self, inputs):
        return self(inputs)[:, -1]

    def readout(self, states):
        return states


def acceptor(pattern: str) -> RegularTask:
    return machine_task(labeled_dfa(dfa_from_regex(pattern, "ab")))


WORDS = "abbabaabbaababba|bbabaabbaababbab"

BLOCKS = "(abbabaabbaababbabaab|bbabaabbaababbabaaba)*"


def test_a_net_that_accepts_no_word_of_sixteen_letters_is_refuted() -> None:
    """Of the strings that are tried otherwise, all of up to 12 symbols and others of 40 and 500, none is a word."""
    task = acceptor(WORDS)
    certificate = certify(AnswersOf(task, below=16), task)
    assert certificate.level == "refuted"
    assert len(certificate.counterexample.string) == 16
    assert (certificate.counterexample.expected, certificate.counterexample.got) == ("accept", "reject")
    assert certify(AnswersOf(task, below=17), task).level == "tested"


def test_a_sixth_of_the_samples_gives_way_to_strings_of_an_answer_that_none_has() -> None:
    """A net that accepts nothing of more than 40 letters answers samples and structured strings rightly."""
    task = acceptor(BLOCKS)
    for length in (40, 500):
        samples = task.sample(600, length, generator_for(0, "samples", length)).inputs
        assert not task.solve(samples)[:, -1].any()
        changed = with_rare_answers(task.transducer, samples, generator_for(0, "rare", length))
        assert torch.equal(changed[:500], samples[:500])
        assert task.solve(changed)[500:, -1].all()
        strings = traces_module.tested_strings(task, length, 1_000, 0, None)
        assert len(strings) == 1_000
        assert 100 <= int(task.solve(strings)[:, -1].sum()) <= 1_000 // 6
    certificate = certify(AnswersOf(task, below=41), task)
    assert certificate.level == "refuted"
    assert (certificate.counterexample.expected, certificate.counterexample.got) == ("accept", "reject")
