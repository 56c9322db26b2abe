"""Angluin's L* with a model as its teacher, for comparison with machines that are extracted from states."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from lengthwise.automata.semiautomaton import Semiautomaton
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

    The model answers membership queries. An equivalence query compares the machine's and the model's answers to all
    prefixes of random strings, which are uniform over the symbols and the same in every round. So the machine agrees
    with the model only on a sample, unlike a machine of `certify`. The empty string is not supervised. Among the
    machines with the same answers to all other strings, the smallest is returned.

    Raises:
        ValueError: AALpy is not installed, a logit is not finite, or no machine agrees after `max_rounds` rounds.

    Source: Angluin, "Learning regular sets from queries and counterexamples" (1987), as AALpy implements it; Weiss et
        al., "Extracting Automata from Recurrent Neural Networks Using Queries and Counterexamples" (arXiv 1711.09576),
        who query nets.
    Differs from the source: Weiss et al. answer equivalence queries by partitions of the net's states.
    """
    with eval_mode(model):
        strings = torch.randint(len(symbols), (num_strings, length), generator=generator_for(seed, "queries"))
        answers = finite_answers_of(model(strings)).numpy()

        def wrong_prefix(hypothesis: Transducer) -> tuple[int, ...] | None:
            wrong = np.argwhere(hypothesis.run(strings.numpy()) != answers)
            if not len(wrong):
                return None
            # The earliest error over all strings gives the shortest counterexample.
            row, index = min(wrong.tolist(), key=lambda row_and_index: row_and_index[1])
            return tuple(strings[row, : index + 1].tolist())

        machine = _learn(
            symbols, lambda word: finite_answers_of(model(torch.tensor([word])))[0].tolist(), wrong_prefix, max_rounds
        )
        if (machine.run(strings.numpy()) != answers).any():
            raise ValueError(
                f"model: expected a machine that agrees with it on {num_strings:,} strings of {length} symbols after "
                f"{max_rounds} rounds, got one of {machine.num_states} states that does not; it may not be finite-state"
            )
        return machine.minimize_nonempty()


def _learn(
    symbols: tuple[str, ...],
    answers_to: Callable[[tuple[int, ...]], list[int]],
    wrong_prefix: Callable[[Transducer], tuple[int, ...] | None],
    max_rounds: int,
) -> Transducer:
    """Run L* and return its machine.

    `answers_to` returns the answers to all prefixes of a word. `wrong_prefix` returns a word on which a hypothesis is
    wrong, or None.
    """
    try:
        from aalpy.base import SUL, Oracle
        from aalpy.learning_algs import run_Lstar
    except ImportError:
        raise ValueError("aalpy: expected the package AALpy, got none; pip install 'lengthwise[lstar]'") from None

    class Teacher(SUL):  # type: ignore[misc]  # AALpy has no types
        def query(self, word: tuple[int, ...]) -> list[int]:
            return answers_to(word) if word else [IGNORE]

        def pre(self) -> None: ...
        def post(self) -> None: ...
        def step(self, letter: Any) -> Any:
            raise NotImplementedError("words are queried whole")

    class Examiner(Oracle):  # type: ignore[misc]
        def find_cex(self, hypothesis: Any) -> tuple[int, ...] | None:
            return wrong_prefix(_transducer(hypothesis, symbols))

    alphabet, teacher = list(range(len(symbols))), Teacher()
    learned = run_Lstar(
        alphabet,
        teacher,
        Examiner(alphabet, teacher),
        automaton_type="moore",
        max_learning_rounds=max_rounds,
        cache_and_non_det_check=False,
        print_level=0,
    )
    return _transducer(learned, symbols)


def _transducer(moore: Any, symbols: tuple[str, ...]) -> Transducer:
    """Return AALpy's Moore machine as a transducer."""
    number = {state.state_id: index for index, state in enumerate(moore.states)}
    table = [[number[state.transitions[v].state_id] for v in range(len(symbols))] for state in moore.states]
    outputs = np.array([state.output for state in moore.states])
    return Transducer(Semiautomaton(np.array(table), symbols), number[moore.initial_state.state_id], outputs)
