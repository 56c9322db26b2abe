"""Proofs that a grid recurrence computes the rule that was extracted from it.

At temperature 0, the net makes choices: a relation for each pair of letters, two classes for each input of a cell, and
the classes at the borders. Each choice is the index of the largest logit. Then the net looks up classes and adds
integers: one number for each class, and one for each row. The logits are parameters, which are compared, but never
computed. So the proof only has to show that the two largest logits of each choice differ. If they were equal, different
computers could choose different classes.

Source: ours.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none
from lengthwise.certification.methods.rules.evidence import RuleEvidence
from lengthwise.certification.methods.usual_parts import check_usual, unlike_settings
from lengthwise.extraction.base import Extraction
from lengthwise.extraction.readers.grid import grid_machine, kept_classes
from lengthwise.layers.grid_cells import CategoricalCell, NumberReadout
from lengthwise.models.grid_recurrence import GridRecurrence
from lengthwise.validation import narrow, type_in_words


@PROVERS.register("rules")
class RuleProver(Prover):
    """A proof that the machine has the tables of the net's cell, without ties between the two largest logits.

    The cell chooses relations and classes by their largest logits. In each choice that can occur, the two largest
    logits must differ.
    """

    reader = "grid"

    @torch.no_grad()
    def prove(self, model: Any, extraction: Extraction) -> RuleEvidence:
        cell = _checked_cell(model)
        machine = narrow(extraction.machine, GridMachine)
        # The extraction may belong to another net, so the rule is read from this net again.
        if grid_machine(cell, machine.symbols).to_json() != machine.to_json():
            raise Unproved("the machine differs from the machine that the net's cell computes")
        # A cell needs a leading logit only for inputs that can occur. `down` and `right` contain every class that
        # borders and cells give. So, by induction over the grid, no other class occurs.
        down, right = kept_classes(cell, machine)
        slacks = (
            _lead(cell.relations),
            _lead(cell.table[down][:, right][:, :, cell.relations.argmax(-1).unique()]),
            _lead(cell.top),
            _lead(cell.left),
        )
        if not all(slack > 0 for slack in slacks):  # no `min` here, because Python's `min` may drop a NaN
            raise Unproved("the two largest logits of a choice are equal, so another computer may choose another class")
        return RuleEvidence(num_cells=machine.num_cells, slack=finite_or_none(min(slacks)))


def _checked_cell(model: Any) -> CategoricalCell:
    """Return the cell of a model with exactly the known parts: a subclass may compute another formula."""
    if type(model) is not GridRecurrence or type(model.cell) is not CategoricalCell:
        raise ValueError(
            f"model: expected a GridRecurrence with a CategoricalCell, got {type_in_words(model)} with "
            f"{type_in_words(getattr(model, 'cell', None))}; train a GridRecurrence with messages='categorical'"
        )
    if type(model.readout) is not NumberReadout or set(map(type, model.children())) != {CategoricalCell, NumberReadout}:
        raise unlike_settings("expected only a CategoricalCell and a NumberReadout, got other parts")
    check_usual(model, {CategoricalCell, NumberReadout})
    return model.cell


def _lead(logits: Float[Tensor, "*N K"]) -> float:
    """Return the smallest lead of the largest logit along the last axis; infinite if no second logit exists."""
    if logits.shape[-1] == 1 or not logits.numel():
        return math.inf
    # The difference is rounded to float64, but its sign is exact: it is 0 only for equal logits. NaN is never above 0.
    largest, second = logits.double().topk(2).values.unbind(-1)
    return float((largest - second).min())
