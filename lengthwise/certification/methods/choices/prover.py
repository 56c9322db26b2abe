"""Proof that a PD-SSM with one-hot states answers as a machine does, however float32 rounds."""

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none
from lengthwise.certification.methods.choices.evidence import ChoiceEvidence
from lengthwise.certification.methods.steps import READOUT, hidden_features, margin
from lengthwise.certification.methods.usual_parts import check_usual, unlike_settings
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction
from lengthwise.layers.sparse_linear import PDSSMLayer
from lengthwise.models.base import RecurrentModel
from lengthwise.models.pd_ssm import PDSSM
from lengthwise.ops.intervals import ULPS, Intervals
from lengthwise.validation import narrow, type_in_words

MAX_PAIRS = 200_000
"""The largest number of enumerated pairs of a state of the model and a state of the machine."""

MIN_EXPONENTIAL = 1e-290
"""The floor of an upper bound on an exponential. Float64 numbers of this size have full precision."""

SUM_SLACK = 1e-9
"""The relative slack of a float64 sum of exponentials. One term is subtracted from this sum, which loses digits."""

MAX_NUMBERS = 1 << 24
"""The largest product of the number of enumerated steps and the size of a state. States and bounds take about 2 GB."""


@PROVERS.register("choices")
class ChoiceProver(Prover):
    """A proof that a PD-SSM with one-hot states answers like the machine that was extracted from it.

    If the layer adds no input to its state and has no diagonal matrix, each state is a one-hot vector, bit for bit. The
    reason is that steps only copy numbers and add zeros. Each step selects one column of a transition matrix, and the
    largest number in this column determines the next state. If rounding may decide which number is the largest, each
    choice is enumerated. The logits depend on the state and the latest symbol. They are bounded for each combination of
    state, latest symbol and machine's state that a string may reach.
    """

    reader = "recurrent"

    @classmethod
    def applies_to(cls, model: RecurrentModel) -> bool:
        return type(model) is PDSSM and _has_one_hot_states(model)

    @torch.no_grad()
    def prove(self, model: RecurrentModel, extraction: Extraction) -> ChoiceEvidence:
        layer = _checked_layer(model)
        assert isinstance(model, PDSSM)
        machine = narrow(extraction.fine, Transducer)
        embedded = Intervals.around(model.embedding.weight.double())
        features = embedded.normed(narrow(model.norms[0], nn.LayerNorm))
        # A net may have more symbols than its task; strings of the task contain only the task's symbols.
        choices = _choices(layer, features)[: machine.semiautomaton.table.shape[1]]
        triples = torch.tensor(_reached(choices, machine))
        outputs = torch.tensor(machine.outputs)[triples[:, 2]]
        if not bool((needed := outputs != IGNORE).any()):
            raise Unproved("the task has no answer to any string")
        states, symbols = triples[needed, 0], triples[needed, 1]
        # One-hot vectors are exact. The operations below follow the layer, and each adds its own rounding: the linear
        # map, the product with d, the sum of both, and the residual sum.
        one_hot = Intervals.around(nn.functional.one_hot(states, layer.num_states).double())
        skipped = Intervals.around(layer.d.double()) * features[symbols]
        stream = embedded[symbols] + (one_hot.linear(layer.w.weight, layer.w.bias.double()) + skipped)
        last = narrow(model.readout[-1], nn.Linear)
        logit_margin = margin(last, hidden_features(model.readout, stream), outputs[needed])
        if not logit_margin > 0:  # a margin that is NaN also ends here
            raise Unproved("the machine's answer may not have the largest logit after some symbol in some state")
        # State 0 is the first state. It is added here, because perhaps no step leads to it.
        reached = torch.tensor([0, *triples[:, 0].unique().tolist()]).unique()
        return ChoiceEvidence(
            num_states=len(reached),
            num_steps=len(triples),
            num_undecided=int((choices[:, :, reached].sum(1) > 1).sum()),
            logit_margin=finite_or_none(logit_margin),
        )


def _choices(layer: PDSSMLayer, features: Intervals) -> Bool[Tensor, "V N N"]:
    """Return a mask of the entries of each symbol's transition matrix.

    An entry is True if float32 rounding may make it the largest number of its column.
    """
    mixtures = _softmax(features.linear(layer.mixture_map.weight))
    size = layer.num_states
    matrices = mixtures.linear(layer.dictionary.double().flatten(1).T)
    low, high = (end.unflatten(-1, (size, size)) for end in (matrices.low, matrices.high))
    # A number cannot be the largest if another number's lower bound is above its upper bound. Equal bounds may be a
    # tie, which computers resolve differently, so both numbers stay possible. If a bound is NaN, all numbers stay
    # possible.
    impossible: Tensor = high < low.amax(-2, keepdim=True)
    return ~impossible


def _softmax(logits: Intervals) -> Intervals:
    """Return bounds on the softmax along the last axis; its outputs are called shares.

    A share is largest at the high end of its own logit and the low ends of all other logits. It is smallest at the
    opposite ends.
    """
    # The net subtracts the largest logit first. The difference is at most twice the largest size, and is rounded once.
    logits = logits.rounded(2 * logits.size.amax(-1, keepdim=True))
    shift = logits.high.amax(-1, keepdim=True)  # so that no exponential overflows; the shift itself cancels
    low, high = ((end - shift).exp() for end in (logits.low, logits.high))
    # All logits may be far below the shift, which is only their largest upper end. So an upper end must not underflow
    # to 0: its share may still be the largest.
    high = high.clamp(min=MIN_EXPONENTIAL)
    count = low.shape[-1]
    # If the largest term is subtracted from a sum, digits of the other terms are lost. The slack is far above `count`
    # units of 2^-53.
    others_high = high.sum(-1, keepdim=True) * (1 + SUM_SLACK) - high
    others_low = low.sum(-1, keepdim=True) * (1 - SUM_SLACK) - low
    # `others_low` may be negative because of the slack. The clamp keeps the denominator at least `high`. Float32 rounds
    # an exponential in the numerator, and exponentials in the sum, which has `count` terms.
    shares = Intervals(low / (low + others_high), high / (high + others_low.clamp(min=0)))
    return shares.rounded(shares.size, 2 * ULPS + count)


def _reached(choices: Bool[Tensor, "V N N"], machine: Transducer) -> list[tuple[int, int, int]]:
    """Return all steps from pairs that a string may reach, as (model's next state, symbol, machine's next state).

    A pair is a state of the model and a state of the machine. The loop is a breadth-first search of the product of
    model and machine: it appends new pairs to the list that it reads.
    """
    table = machine.semiautomaton.table.tolist()
    targets = [[column.nonzero().flatten().tolist() for column in columns] for columns in choices.mT]
    pairs = [(0, machine.start)]
    seen = set(pairs)
    steps: list[tuple[int, int, int]] = []
    for state, in_machine in pairs:
        for symbol, columns in enumerate(targets):
            # Every choice that rounding allows is followed, so the float32 net takes one of these steps.
            reached = [(target, table[in_machine][symbol]) for target in columns[state]]
            steps.extend((pair[0], symbol, pair[1]) for pair in reached)
            new = [pair for pair in reached if pair not in seen]
            seen.update(new)
            pairs.extend(new)
        if len(pairs) > MAX_PAIRS or len(steps) * len(choices[0]) > MAX_NUMBERS:
            raise ValueError(
                f"model: expected at most {MAX_PAIRS:,} pairs of states (model, machine) and {MAX_NUMBERS:,} numbers "
                "in the state vectors of all steps, got more; train a model with fewer states, or choose a task with a "
                "smaller machine"
            )
    return steps


def _has_one_hot_states(model: PDSSM) -> bool:
    config = model.config
    return (config.diagonal, config.driven, config.form, config.num_layers) == ("none", False, "scatter", 1)


def _checked_layer(model: RecurrentModel) -> PDSSMLayer:
    """Return the layer of a model whose states are one-hot vectors; raise a ValueError for other models."""
    # Types are compared exactly, because a subclass may compute another formula.
    if type(model) is not PDSSM or not _has_one_hot_states(model):
        raise ValueError(
            "model: expected a PDSSM with num_layers=1, diagonal='none', form='scatter' and driven=False, got "
            f"{'other settings' if type(model) is PDSSM else type_in_words(model)}; train a PDSSM with the expected "
            "settings"
        )
    kinds: set[type[nn.Module]] = {PDSSMLayer, nn.ModuleList, nn.Sequential, nn.Embedding}
    check_usual(model, kinds | set(READOUT))
    (layer,) = (narrow(part, PDSSMLayer) for part in model.layers)
    if (layer.b, layer.phase_map, layer.size_map, layer.form) != (None, None, None, "scatter"):
        raise unlike_settings(
            "expected a layer of form 'scatter' that adds no inputs to states and has no diagonal, got another layer"
        )
    if layer.mixture_map.bias is not None:
        raise unlike_settings("expected mixture weights without a bias, got mixture weights with a bias")
    return layer
