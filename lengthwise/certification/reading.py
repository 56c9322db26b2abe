"""Strings as a model reads them: its answers to them, and whether its states follow a machine."""

from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Int64
from torch import Tensor

from lengthwise.certification.certificate import Followed
from lengthwise.certification.counterexample import Judged, judge
from lengthwise.certification.extraction import Extraction, TreeModel
from lengthwise.certification.following import Trees, follow, grow, root_answers
from lengthwise.certification.recurrent import follow_recurrent
from lengthwise.evaluation.length_curve import final_answers
from lengthwise.models.base import RecurrentModel, SequenceModel
from lengthwise.tasks.base import OracleTask

SYMBOLS_READ = 1_000_000
"""Strings of so many symbols a tree model reads as it always does; of more, only the trees are grown."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Some strings of one length, and the trees that a tree model grows over them, grown once."""

    model: SequenceModel
    strings: Int64[Tensor, "B T"]

    @property
    def length(self) -> int:
        return self.strings.shape[1]

    @cached_property
    def trees(self) -> list[Trees]:
        assert isinstance(self.model, TreeModel)
        return grow(self.model, self.strings)

    def glance(self, num_strings: int) -> "Reading":
        """Some of the strings only, evenly spread."""
        return Reading(self.model, self.strings[:: max(1, len(self.strings) // num_strings)])

    def judge(self, task: OracleTask) -> Judged:
        """The model's answers and the right ones; a tree model's are those of the trees' roots where strings are many.

        Of those strings of `SYMBOLS_READ` symbols, spread evenly, are read by the model itself, and its answer counts.
        """
        if not isinstance(self.model, TreeModel):
            return judge(self.model, task, self.strings)
        answers = root_answers(self.model, self.trees)
        some = slice(None, None, -(-self.strings.numel() // SYMBOLS_READ))
        answers[some] = final_answers(self.model, self.strings[some])
        return Judged(answers, task.solve(self.strings)[:, -1])

    def follow(self, extraction: Extraction) -> Followed:
        """How many of the model's states are in the classes that the extracted machine says."""
        if isinstance(self.model, TreeModel):
            seen = follow(self.model, extraction, self.trees)
        else:
            assert isinstance(self.model, RecurrentModel)
            seen = follow_recurrent(self.model, extraction, self.strings)
        return Followed(length=self.length, **seen._asdict())
