"""Evidence of a recurrence with one-hot states: a transition matrix has a single 1 in each column."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate, Evidence, Requirement, check_lead
from lengthwise.certification.parts import Count, PositiveCount, describe_lead
from lengthwise.display import counted


@EVIDENCE.register("choices")
class ChoiceEvidence(Evidence):
    """All states and steps that are possible in a recurrence whose matrices have one-hot columns.

    In each column, the largest number of a mixture of matrices is replaced by 1, and all other numbers by 0.
    `num_undecided`: the number of columns in which rounding may decide which number is the largest. The steps then
    include each choice that rounding allows. `logit_margin`: the smallest lead of the right answer's logit over the
    other logits; None if the task has only one answer.
    """

    requires = Requirement(
        "transducer", {"pd-ssm": {"diagonal": "none", "driven": False, "form": "scatter", "num_layers": 1}}
    )
    assumes = "the model has no states and steps other than the enumerated ones"

    method: Literal["choices"] = "choices"
    num_states: PositiveCount
    num_steps: PositiveCount
    num_undecided: Count
    logit_margin: float | None

    def describe(self) -> str:
        undecided = f"in {self.num_undecided} columns rounding may decide the step; " if self.num_undecided else ""
        return (
            f"{counted(self.num_states, 'state')}, all {self.num_steps:,} steps enumerated; {undecided}"
            f"{describe_lead(self.logit_margin)}"
        )

    def check_numbers(self, certificate: Certificate) -> None:
        check_lead(self.logit_margin, certificate)
