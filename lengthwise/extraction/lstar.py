"""Angluin's L* with a model as its teacher, for comparison with machines that are extracted from states."""

import numpy as np
import torch

from lengthwise.automata.lstar import Hypothesis, String, learn_by_lstar
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.models.base import SequenceModel, eval_mode
from lengthwise.ops.answers import finite_answers_of
from lengthwise.randomness import generator_for


def learn_by_queries(
    model: SequenceModel,
    symbols: tuple[str, ...],
    *,
    num_strings: int = 1_000,
    length: int = 40,
    max_rounds: int = 50,
    seed: int = 0,
) -> Transducer:
    """Return the transducer that L* learns from a model's answers, without access to the model's states.

    The model answers membership queries. An equivalence query compares the answers of the machine and the model to all
    prefixes of random strings. These strings are uniform over the symbols, and the same in every round. So the machine
    is known to agree with the model only on a sample, unlike a machine of `certify`. The empty string is not
    supervised. Among the machines with the same answers to all other strings, the smallest is returned.

    Raises:
        ValueError: a logit is not finite, or no machine agrees after `max_rounds` rounds.

    Source: Angluin, "Learning regular sets from queries and counterexamples" (1987); Weiss et al., "Extracting Automata
        from Recurrent Neural Networks Using Queries and Counterexamples" (arXiv 1711.09576), who query nets.
    Differs from the source: Weiss et al. answer equivalence queries by partitions of the net's states.
    """
    with eval_mode(model):
        strings = torch.randint(len(symbols), (num_strings, length), generator=generator_for(seed, "queries"))
        answers = finite_answers_of(model(strings)).numpy()

        num_rounds = 0

        # The empty string is not supervised; a net answers all prefixes of a string at once.
        known: dict[String, int] = {(): IGNORE}

        def query(string: String) -> int:
            if string not in known:
                outputs = finite_answers_of(model(torch.tensor([string])))[0].tolist()
                known.update((string[: end + 1], output) for end, output in enumerate(outputs))
            return known[string]

        def wrong_prefix(hypothesis: Hypothesis) -> String | None:
            nonlocal num_rounds
            num_rounds += 1
            wrong = np.argwhere(hypothesis.transducer(symbols).run(strings.numpy()) != answers)
            if not len(wrong) or num_rounds > max_rounds:
                return None
            # The earliest error over all strings gives the shortest counterexample.
            row, index = min(wrong.tolist(), key=lambda row_and_index: row_and_index[1])
            return tuple(strings[row, : index + 1].tolist())

        machine = learn_by_lstar(len(symbols), "Moore", query, wrong_prefix).transducer(symbols)
        if (machine.run(strings.numpy()) != answers).any():
            raise ValueError(
                f"model: expected a machine that agrees with it on {num_strings:,} strings of {length} symbols after "
                f"{max_rounds} rounds, got one of {machine.num_states} states that does not; it may not be finite-state"
            )
        return machine.minimize_nonempty()
