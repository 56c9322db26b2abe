"""Strings as a model reads them: its answers to them, and whether its states follow a machine."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxtyping import Int64
from torch import Tensor

from lengthwise.certification.certificate import Followed
from lengthwise.certification.counterexample import Judged, judge
from lengthwise.certification.extraction import Extraction, TreeModel, can_be_followed
from lengthwise.certification.following import Trees, follow, grow, parts_to_grow, root_answers
from lengthwise.certification.one_hot import follow_states
from lengthwise.certification.recurrent import follow_recurrent
from lengthwise.evaluation.length_curve import final_answers
from lengthwise.models.base import RecurrentModel, SequenceModel
from lengthwise.models.codebook_gpt import CodebookGPT
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.tasks.base import OracleTask

SYMBOLS_READ = 1_000_000
"""Strings of so many symbols are read as the model always reads; of more, the trees' roots give the answers."""

NUMBERS_KEPT = 100_000_000
"""Trees are kept as long as their states have no more numbers; others are grown again whenever they are followed."""


@dataclass(frozen=True, eq=False)
class Reading:
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
        for place, strings in enumerate(parts_to_grow(self.strings)):
            trees = self._kept.get(place) or grow(self.model, strings)
            if trees.num_numbers + sum(some.num_numbers for some in self._kept.values()) <= NUMBERS_KEPT:
                self._kept[place] = trees
            yield trees

    def glance(self, num_strings: int) -> "Reading":
        """Some of the strings only, evenly spread."""
        return Reading(self.model, self.strings[:: max(1, len(self.strings) // num_strings)])

    def judge(self, task: OracleTask) -> Judged:
        """The model's answers and the right ones; of many strings most are answered by the roots of their trees.

        Not so if the model is none of ours, or not a tree that can be followed: then nobody knows whether it answers
        as its trees do. Strings of `SYMBOLS_READ` symbols, spread evenly, are read as the model always reads.
        """
        model, every = self.model, -(-self.strings.numel() // SYMBOLS_READ)
        if not isinstance(model, RegularGPT) or type(model) not in (RegularGPT, CodebookGPT):
            return judge(model, task, self.strings)
        if every == 1 or not can_be_followed(model.tree):
            return judge(model, task, self.strings)
        answers = root_answers(model, self.trees)
        answers[::every] = final_answers(model, self.strings[::every])
        return Judged(answers, task.solve(self.strings)[:, -1])

    def follow(self, extraction: Extraction) -> Followed:
        """How many of the model's states are in the classes that the extracted machine says."""
        if isinstance(self.model, TreeModel):
            seen = follow(self.model, extraction, self.trees)
        else:
            assert isinstance(self.model, RecurrentModel)
            seen = (follow_states if extraction.exact else follow_recurrent)(self.model, extraction, self.strings)
        return Followed(length=self.length, **seen._asdict())
