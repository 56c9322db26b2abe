"""A machine from a net's answers to all short strings, without the net's states: a guess that `certify` can test."""

import numpy as np
import torch

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.extraction.prototypes import NotFinite
from lengthwise.models.base import SequenceModel
from lengthwise.ops.answers import finite_answers_of


@torch.no_grad()
def machine_of_answers(model: SequenceModel, symbols: tuple[str, ...], max_length: int) -> Transducer:
    """Return a machine that is built from a model's answers to all strings of at most `max_length` symbols.

    A state of the machine is a set of prefixes that no suffix distinguishes. Prefixes and suffixes each have up to
    about half of `max_length` symbols. The model may answer longer strings differently. The answer to the empty string
    is not known, so the start can be any state from which the machine answers all nonempty strings as the table does.

    Raises:
        NotFinite: the answers after some prefix of the largest length differ from the answers after each shorter
            prefix. So the next states of this prefix are not known.
        ValueError: a logit is not finite.

    Example:
        >>> from lengthwise import construct, make_task
        >>> net = construct("rnn", make_task("regex", pattern="(a|b)*abb")).model
        >>> machine_of_answers(net, ("a", "b"), 8).num_states
        4

    Source: the observation table of Angluin, "Learning regular sets from queries and counterexamples" (1987).
    Differs from the source: all prefixes and suffixes of bounded length are used, instead of counterexamples.
    """
    size, suffix_length = len(symbols), max_length // 2
    prefix_length = max_length - suffix_length
    strings = torch.cartesian_prod(*[torch.arange(size)] * max_length).reshape(-1, max_length)
    answers = finite_answers_of(model(strings)).numpy()
    # Strings are sorted, so strings with the same prefix are next to each other.
    by_length = [answers[:: size ** (max_length - length), length - 1] for length in range(1, max_length + 1)]
    rows = []
    for length in range(prefix_length + 1):
        own = by_length[length - 1] if length else np.array([IGNORE])
        after = [by_length[length + more - 1].reshape(len(own), -1) for more in range(1, suffix_length + 1)]
        rows.append(np.hstack([own[:, None], *after]))
    distinct, first, states = np.unique(np.vstack(rows), axis=0, return_index=True, return_inverse=True)
    states = states.reshape(-1)
    # Prefixes are numbered by length, so the prefixes after prefix k have the numbers V k + 1, ..., V k + V.
    successors = first[:, None] * size + 1 + np.arange(size)
    if successors.max() >= len(states):
        raise NotFinite(
            f"model: its answers to strings of up to {max_length} symbols do not show a finite machine; extract the "
            "machine from the model's states"
        )
    machine = Semiautomaton(states[successors], symbols)
    return Transducer(machine, int(states[0]), distinct[:, 0]).minimize_nonempty()
