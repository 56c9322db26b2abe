"""All merges of a model that moves its states to codes: which code each gives, whatever float32 rounds."""

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.methods.affine import Affine
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none
from lengthwise.certification.methods.codes.evidence import CodeEvidence
from lengthwise.certification.methods.enclosures.prover import MAX_WINDOWS_PER_CHUNK
from lengthwise.certification.methods.merges import check_parts, merge_bounds, smallest_margin
from lengthwise.extraction.base import Extraction
from lengthwise.layers.codebook import Codebook, QuantizingLayer
from lengthwise.layers.tree_layers import MergeLayer
from lengthwise.models.base import TreeModel
from lengthwise.models.codebook_gpt import CodebookGPT

MAX_ENUMERATED = 5_000


@torch.no_grad()
def enumerate_merges(model: TreeModel, extraction: Extraction) -> CodeEvidence | None:
    """Bound all merges of the table; None where it is not certain that float32 gives the codes it names.

    A state is a leaf or, to the last bit, a code, so that there are no other merges than those of the table. If each
    of them is nearest to the code of its class, by more than rounding can change, then by induction on the levels the
    float32 model computes the codes that the table names, for every string of every length.

    Raises:
        ValueError: the model is not a `CodebookGPT` that has codes; the prototypes are not its leaves and codes; the
            table has more than 5,000 entries.
    """
    layer = model.tree.layers[0]
    # A subclass may compute something else than what is bounded here.
    quantizes = isinstance(layer, QuantizingLayer) and type(layer.layer) is MergeLayer
    if type(model) is not CodebookGPT or not quantizes:
        names = f"{type(model).__name__} with a {type(layer).__name__}"
        raise ValueError(f"model: expected a CodebookGPT that has codes, got a {names}")
    assert isinstance(layer, QuantizingLayer)
    assert isinstance(layer.layer, MergeLayer)
    assert isinstance(model, CodebookGPT)
    check_parts(model, layer.layer)
    assert isinstance(extraction.fine, TreeMachine)
    table = extraction.fine.table
    windows = torch.from_numpy(np.argwhere(table >= 0))
    if len(windows) > MAX_ENUMERATED:
        raise ValueError(
            f"extraction: expected no more than {MAX_ENUMERATED:,} merges to enumerate, got {len(windows):,}"
        )
    targets = _codes_of(extraction, model.tree.leaves, layer.codebook)[table[tuple(windows.T.numpy())]]
    points = extraction.prototypes.double()
    slacks = [
        _slacks(layer.codebook, merge_bounds(layer.layer, exact_points(points[chunk.T])), codes)
        for chunk, codes in zip(windows.split(MAX_WINDOWS_PER_CHUNK), targets.split(MAX_WINDOWS_PER_CHUNK), strict=True)
    ]
    slack = float(torch.cat(slacks).min())
    (codes,) = exact_points(points[None, extraction.num_given :])
    answers = torch.tensor(extraction.fine.outputs[extraction.num_given :])
    margin = smallest_margin(model.readout, codes, answers)
    if not (slack > 0 and margin > 0):
        return None
    num_codes = len(points) - extraction.num_given
    return CodeEvidence(
        num_codes=num_codes, num_merges=len(windows), slack=finite_or_none(slack), logit_margin=finite_or_none(margin)
    )


@PROVERS.register("codes")
class CodeProver(Prover):
    """Enumerates all merges of codes (`enumerate_merges`)."""

    reader = "codebook"

    def prove(self, model: TreeModel, extraction: Extraction) -> CodeEvidence:
        evidence = enumerate_merges(model, extraction)
        if evidence is None:
            raise Unproved("rounding may decide which code is the nearest to some merged state")
        layer = model.tree.layers[0]
        assert isinstance(layer, QuantizingLayer)  # as `enumerate_merges` saw
        codes = _codes_of(extraction, model.tree.leaves, layer.codebook)
        self.sets = {"codes": codes[len(model.tree.leaves) :]}
        return evidence


def _codes_of(extraction: Extraction, leaves: Tensor, codebook: Codebook) -> Int64[Tensor, " K"]:
    """Which code each prototype is, -1 for leaves, which come first."""
    given, merged = extraction.prototypes.tensor_split([extraction.num_given])
    same = (merged[:, None] == codebook.known).all(-1)
    if not torch.equal(given, leaves) or not bool(same.any(1).all()):
        raise ValueError("extraction: its prototypes are not the model's leaves and codes; extract from this model")
    return torch.cat([torch.full((len(leaves),), -1), same.int().argmax(1)])


def exact_points(states: Float64[Tensor, "C N D"]) -> list[Affine]:
    """States that are known exactly, for each part of a window."""
    return [Affine(part, torch.zeros(*part.shape, 0), torch.zeros_like(part)) for part in states]


def _slacks(codebook: Codebook, merged: Affine, nearest: Int64[Tensor, " N"]) -> Float64[Tensor, " N"]:
    """How far each merged state could at least be moved before another code than this one were the nearest."""
    codes = codebook.known.double()
    half_squares = 0.5 * codes.square().sum(-1)
    scores = merged.linear(codes, -half_squares).rounded(half_squares, codes.shape[1])  # the model rounds these, too
    own = nearest[:, None]
    lead = scores.center.gather(1, own) - scores.center - scores.radius.gather(1, own) - scores.radius
    distances = (codes[nearest][:, None] - codes).norm(dim=-1)
    slacks: Tensor = (lead / distances).scatter(1, own, torch.inf).amin(1)
    return slacks
