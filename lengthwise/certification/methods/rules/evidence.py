"""Evidence of a rule over the grid of two strings; the classes of the rule are the net's messages."""

from typing import Literal

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.certification.certificate import EVIDENCE, Certificate, Evidence, Requirement
from lengthwise.certification.equivalence import machine_from_json
from lengthwise.certification.parts import Distance, PositiveCount, refusal


@EVIDENCE.register("rules")
class RuleEvidence(Evidence):
    """All results of a net's cell at temperature 0, for each class from above, class from the left and pair of letters.

    The net chooses the relation of two letters, the two classes that a cell passes on, and the classes at the borders.
    Each choice is the index of the largest logit. `slack`: the smallest lead of a largest logit over the other logits;
    None if no choice has a second logit.
    """

    requires = Requirement("grid", {"grid-recurrence": {"messages": "categorical"}})
    assumes = "the model has the cells, borders and numbers of the machine"

    method: Literal["rules"] = "rules"
    num_cells: PositiveCount
    slack: Distance | None

    def describe(self) -> str:
        lead = "there is only one class" if self.slack is None else f"the right class leads by {self.slack:.2g}"
        return f"all {self.num_cells:,} cells enumerated; {lead}; answers are sums of integers"

    def check_numbers(self, certificate: Certificate) -> None:
        if self.slack is not None and not self.slack > 0:
            raise refusal(
                f"expected a positive slack, or None if no choice has a second logit, got {self.slack}", "evidence"
            )
        assert certificate.machine is not None  # a requirement of this method
        machine = machine_from_json(certificate.machine)
        assert isinstance(machine, GridMachine)
        if self.num_cells != machine.num_cells:
            raise refusal(
                "expected the certificate's machine to have `num_cells` cells, got another number of cells", "evidence"
            )
