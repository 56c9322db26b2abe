"""Proofs that a grid recurrence is the rule that was read off it.

At temperature 0 the net takes, for each cell and border, the class with the largest logit, and then looks classes up
and adds integers: no number is rounded but the numbers of classes and of a row, to integers, once. So it is enough that
logits are parameters, each compared with others and never computed, and that the largest one leads: which of equal
ones is taken is not the same on every machine.

Source: ours.
"""

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none
from lengthwise.certification.methods.rules.evidence import RuleEvidence
from lengthwise.certification.methods.usual_parts import check_usual
from lengthwise.extraction.base import Extraction
from lengthwise.extraction.readers.grid import grid_machine, kept_classes
from lengthwise.layers.grid_cells import CategoricalCell, NumberReadout
from lengthwise.models.grid_recurrence import GridRecurrence


@PROVERS.register("rules")
class RuleProver(Prover):
    """Shows that the net's classes are certain, and that the machine has all of them."""

    reader = "grid"

    @torch.no_grad()
    def prove(self, model: Any, extraction: Extraction) -> RuleEvidence:
        cell = _checked_cell(model)
        machine = extraction.machine
        assert isinstance(machine, GridMachine)
        if not _is_same(grid_machine(cell, machine.symbols), machine):
            raise Unproved("the machine is not the rule of the net's cell")
        down, right = kept_classes(cell, machine)
        slacks = (
            _lead(cell.relations),
            _lead(cell.table[down][:, right][:, :, cell.relations.argmax(-1).unique()]),
            _lead(cell.top),
            _lead(cell.left),
        )
        if not all(slack > 0 for slack in slacks):  # not their minimum, which forgets one that is no number
            raise Unproved("two logits of a class are equal, so that another machine may take the other one")
        return RuleEvidence(num_cells=machine.num_cells, slack=finite_or_none(min(slacks)))


def _checked_cell(model: Any) -> CategoricalCell:
    """The cell of a model in which nothing is foreign: a subclass may compute something else than what is read."""
    if type(model) is not GridRecurrence or type(model.cell) is not CategoricalCell:
        raise ValueError(f"model: rules are proved of a GridRecurrence with categorical messages, got {type(model)}")
    if type(model.readout) is not NumberReadout or set(map(type, model.children())) != {CategoricalCell, NumberReadout}:
        raise ValueError("model: expected a cell and a readout of numbers, and nothing else")
    check_usual(model, {CategoricalCell, NumberReadout})
    return model.cell


def _is_same(one: GridMachine, other: GridMachine) -> bool:
    return (
        np.array_equal(one.table, other.table)
        and np.array_equal(one.numbers, other.numbers)
        and (one.top, one.left, one.per_row) == (other.top, other.left, other.per_row)
    )


def _lead(logits: Float[Tensor, "*N K"]) -> float:
    """By how much the largest logit along the last axis exceeds the others, at least; infinite if alone."""
    if logits.shape[-1] == 1 or not logits.numel():
        return math.inf
    largest, second = logits.double().topk(2).values.unbind(-1)
    return float((largest - second).min())
