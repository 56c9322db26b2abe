"""Strings as a model reads them: its answers to them, and whether its states follow a machine."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxtyping import Int64
from torch import Tensor

from lengthwise.certification.certificate import TraceAgreement
from lengthwise.certification.counterexample import Graded, grade
from lengthwise.certification.proofs.one_hot import compare_exact_traces
from lengthwise.evaluation.length_curve import final_answers
from lengthwise.extraction.recurrent import compare_recurrent_traces
from lengthwise.extraction.tree import Extraction, TreeModel, is_traceable
from lengthwise.extraction.tree_traces import Trees, build_trees, compare_traces, root_answers, tree_chunks
from lengthwise.models.base import RecurrentModel, SequenceModel
from lengthwise.models.codebook_gpt import CodebookGPT
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.tasks.base import OracleTask

SYMBOLS_READ = 1_000_000
"""Strings of so many symbols are read as the model always reads; of more, the trees' roots give the answers."""

MAX_CACHED_ELEMENTS = 100_000_000
"""Trees are kept as long as their states have no more numbers; others are grown again whenever they are followed."""


@dataclass(frozen=True, eq=False)
class EvaluatedStrings:
    """Some strings of one length, and the trees that a tree model grows over them."""

    model: SequenceModel
    strings: Int64[Tensor, "B T"]
    _kept: dict[int, Trees] = field(default_factory=dict, init=False)

    @property
    def length(self) -> int:
        return self.strings.shape[1]

    @property
    def trees(self) -> Iterator[Trees]:
        """The trees over all strings, some strings at a time."""
        assert isinstance(self.model, TreeModel)
        for index, strings in enumerate(tree_chunks(self.strings)):
            trees = self._kept.get(index) or build_trees(self.model, strings)
            if trees.num_elements + sum(some.num_elements for some in self._kept.values()) <= MAX_CACHED_ELEMENTS:
                self._kept[index] = trees
            yield trees

    def subsample(self, num_strings: int) -> "EvaluatedStrings":
        """Some of the strings only, evenly spread."""
        return EvaluatedStrings(self.model, self.strings[:: max(1, len(self.strings) // num_strings)])

    def grade(self, task: OracleTask) -> Graded:
        """The model's answers and the right ones; of many strings most are answered by the roots of their trees.

        Not so if the model is none of ours, or not a tree that can be followed: then nobody knows whether it answers
        as its trees do. Strings of `SYMBOLS_READ` symbols, spread evenly, are read as the model always reads.
        """
        model, every = self.model, -(-self.strings.numel() // SYMBOLS_READ)
        if not isinstance(model, RegularGPT) or type(model) not in (RegularGPT, CodebookGPT):
            return grade(model, task, self.strings)
        if every == 1 or not is_traceable(model.tree):
            return grade(model, task, self.strings)
        answers = root_answers(model, self.trees)
        answers[::every] = final_answers(model, self.strings[::every])
        return Graded(answers, task.solve(self.strings)[:, -1])

    def compare_traces(self, extraction: Extraction) -> TraceAgreement:
        """How many of the model's states are in the classes that the extracted machine says."""
        if isinstance(self.model, TreeModel):
            seen = compare_traces(self.model, extraction, self.trees)
        else:
            assert isinstance(self.model, RecurrentModel)
            seen = (compare_exact_traces if extraction.exact else compare_recurrent_traces)(
                self.model, extraction, self.strings
            )
        return TraceAgreement(length=self.length, **seen._asdict())
