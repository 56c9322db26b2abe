"""A proof that rounding in float32 cannot change which codebook vector a merge produces."""

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.methods.affine import Affine
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none, foreign_extraction
from lengthwise.certification.methods.codes.evidence import CodeEvidence
from lengthwise.certification.methods.enclosures.prover import MAX_WINDOWS_PER_CHUNK
from lengthwise.certification.methods.merges import check_parts, merge_bounds, merges_of, smallest_margin
from lengthwise.extraction.base import Extraction
from lengthwise.layers.codebook import Codebook, QuantizingLayer
from lengthwise.layers.tree_layers import MergeLayer
from lengthwise.models.base import TreeModel
from lengthwise.models.codebook_gpt import CodebookGPT
from lengthwise.validation import narrow, type_in_words

MAX_ENUMERATED = 5_000
"""The largest number of merges that are enumerated."""


@torch.no_grad()
def enumerate_merges(model: TreeModel, extraction: Extraction) -> CodeEvidence | None:
    """Bound all merges in the machine's table, and return the evidence; None if rounding may change a code or answer.

    Each state is a leaf, or equals a code bit for bit. So there are finitely many merges, and the table contains all of
    them. Suppose that each merged state is closer to the code of its class than to any other code, by more than
    rounding can change. Then, by induction on the levels, the float32 model computes the codes of the table, for every
    string of every length.

    Raises:
        ValueError: the model is not a `CodebookGPT` that has codes, or has parts without bounds. The prototypes are not
            the model's leaves and codes. More than `MAX_ENUMERATED` merges occur in strings.
    """
    layer = model.tree.layers[0]
    # Types are compared exactly, because a subclass may compute another formula.
    quantizes = isinstance(layer, QuantizingLayer) and type(layer.layer) is MergeLayer
    if type(model) is not CodebookGPT or not quantizes:
        names = f"{type(model).__name__} with {type_in_words(layer)}"
        raise ValueError(
            f"model: expected a CodebookGPT with a QuantizingLayer, got a {names}; train a CodebookGPT until it "
            "has codes"
        )
    assert isinstance(layer, QuantizingLayer)
    assert isinstance(layer.layer, MergeLayer)
    check_parts(model, layer.layer)
    fine = narrow(extraction.fine, TreeMachine)
    windows, classes = merges_of(fine)
    if len(windows) > MAX_ENUMERATED:
        raise ValueError(
            f"extraction: expected no more than {MAX_ENUMERATED:,} merges to enumerate, got {len(windows):,}; train a "
            "model with fewer codes or a smaller chunk_size"
        )
    targets = _codes_of(extraction, model.tree.leaves, layer.codebook)[classes]
    # Leaves and codes are float32 numbers, which float64 represents exactly. So the inputs of a merge are points, and
    # its output bounds contain only the errors of this merge: quantization removes the errors of the merges below.
    points = extraction.prototypes.double()
    slacks = [
        _slacks(layer.codebook, merge_bounds(layer.layer, exact_points(points[chunk.T])), codes)
        for chunk, codes in zip(windows.split(MAX_WINDOWS_PER_CHUNK), targets.split(MAX_WINDOWS_PER_CHUNK), strict=True)
    ]
    slack = float(torch.cat(slacks).min())
    # The root of every tree is a merged state, so the answers of leaves are not needed.
    (codes,) = exact_points(points[None, extraction.num_given :])
    answers = torch.tensor(fine.outputs[extraction.num_given :])
    margin = smallest_margin(model.readout, codes, answers)
    if not (slack > 0 and margin > 0):  # also true for a slack or margin of NaN
        return None
    num_codes = len(points) - extraction.num_given
    return CodeEvidence(
        num_codes=num_codes, num_merges=len(windows), slack=finite_or_none(slack), logit_margin=finite_or_none(margin)
    )


@PROVERS.register("codes")
class CodeProver(Prover):
    """A proof that enumerates all merges of leaves and codes of a `CodebookGPT` (`enumerate_merges`)."""

    reader = "codebook"

    def prove(self, model: TreeModel, extraction: Extraction) -> CodeEvidence:
        evidence = enumerate_merges(model, extraction)
        if evidence is None:
            raise Unproved("rounding may decide the nearest code, or the answer, of some merged state")
        layer = narrow(model.tree.layers[0], QuantizingLayer)  # `enumerate_merges` has checked this
        codes = _codes_of(extraction, model.tree.leaves, layer.codebook)
        self.sets = {"codes": codes[len(model.tree.leaves) :]}
        return evidence


def _codes_of(extraction: Extraction, leaves: Tensor, codebook: Codebook) -> Int64[Tensor, " K"]:
    """Return the index of each prototype's code; it is -1 for leaves, which come first."""
    given, merged = extraction.prototypes.tensor_split([extraction.num_given])
    # The net copies codes bit for bit, so a merged state has to equal a code without any tolerance.
    same = (merged[:, None] == codebook.known).all(-1)
    if not torch.equal(given, leaves) or not bool(same.any(1).all()):
        raise foreign_extraction("expected the model's leaves and codes as prototypes, got other prototypes")
    return torch.cat([torch.full((len(leaves),), -1), same.int().argmax(1)])


def exact_points(states: Float64[Tensor, "C N D"]) -> list[Affine]:
    """Return affine forms that contain only the given states: one form for each of the C parts of N windows."""
    return [Affine(part, torch.zeros(*part.shape, 0), torch.zeros_like(part)) for part in states]


def _slacks(codebook: Codebook, merged: Affine, nearest: Int64[Tensor, " N"]) -> Float64[Tensor, " N"]:
    """Return a lower bound on the distance by which each merged state can move before another code is the nearest."""
    codes = codebook.known.double()
    half_squares = 0.5 * codes.square().sum(-1)
    # A code c is nearest to x if c.x - |c|^2 / 2 is largest. The model also rounds |c|^2 / 2, a sum of D squares.
    scores = merged.linear(codes, -half_squares).rounded(half_squares, codes.shape[1])
    index = nearest[:, None]
    # A score's radius contains its float32 error, so both radii are subtracted. A move by d changes the difference of
    # two scores by at most d |c - c'|. These differences are computed in float64. The radii count more roundings of
    # float32 than occur. This surplus also covers the rounding of float64, which is 2^29 times smaller.
    lead = scores.center.gather(1, index) - scores.center - scores.radius.gather(1, index) - scores.radius
    distances = (codes[nearest][:, None] - codes).norm(dim=-1)
    slacks: Tensor = (lead / distances).scatter(1, index, torch.inf).amin(1)
    return slacks
