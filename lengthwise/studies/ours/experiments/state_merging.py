"""State merging by description length, compared with RPNI and EDSM on random machines and protocols.

This study has no recorded runs. The search of `learn` gets all examples. Their labels are the answers of a known
machine, and some labels are wrong.
"""

import signal
import time
import warnings
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.experiment import EXPERIMENTS, Experiment, Scale, check_is_not_paper
from lengthwise.learning.baselines import completed_moore, labeled_prefixes
from lengthwise.learning.exactness import Exactness, exactness
from lengthwise.learning.search import search
from lengthwise.studies.saved import saved_outcomes
from lengthwise.tasks.given.examples import Examples, Row, examples_from

Kind = Literal["random machines", "protocols", "random machines, a label for each symbol"]

ALPHABET = "abcdefghijkl"
CLASSES = ("no", "yes")
LONGEST = 20
TRACE_LENGTHS = (10, 60)
SHARE_REJECTED = 0.15
NUM_FRESH = 2_000
MAX_TRANSITIONS = 100
"""The largest number of transitions (states times symbols) of a random machine. Each transition then has about
30 labels."""

BASELINES = ("RPNI", "EDSM")
BASELINE_SECONDS = 5.0
"""The CPU seconds after which a baseline is stopped, because EDSM takes minutes if labels are wrong."""


class Size(NamedTuple):
    """The size of the study: machines of each kind, examples, shares of wrong labels, and CPU seconds of a search."""

    machines: int = 60
    protocols: int = 10
    traced: int = 10
    examples: int = 3_000
    traces: int = 300
    wrong: tuple[float, ...] = (0.0, 0.01, 0.03, 0.05, 0.1)
    budget: float = 30.0


SMALL_SIZE = Size(machines=5, protocols=2, traced=1, wrong=(0.0, 0.05), budget=15.0)
SMOKE_SIZE = Size(machines=1, protocols=0, traced=1, examples=300, traces=30, wrong=(0.05,), budget=0.0)


class LearnedBy(NamedTuple):
    """The result of a learner for one machine.

    `num_states` is the number of states of the learned machine. It is None if the learner was stopped or AALpy is not
    installed; then all answers count as wrong. `num_wrong` counts wrong answers to fresh strings. `verdict` is a result
    of `exactness`, and `seconds` are CPU seconds.
    """

    learner: str
    num_states: int | None
    verdict: Exactness
    num_wrong: int
    seconds: float


class Outcome(NamedTuple):
    """The results of all learners for one target machine and one share of wrong labels."""

    kind: Kind
    number: int
    share_wrong: float
    num_states: int
    num_symbols: int
    method: str
    learners: tuple[LearnedBy, ...]


_OUTCOMES = TypeAdapter(list[Outcome])


class Outcomes(NamedTuple):
    """The size of the study, and the `Outcome` of each target machine and share of wrong labels."""

    size: Size
    outcomes: list[Outcome]


def drawn_machine(seed: int) -> Transducer:
    """Draw a minimal machine of 5 to 30 states and 2 to 12 symbols, with at most `MAX_TRANSITIONS` transitions."""
    chance = np.random.default_rng([seed, 7])
    while True:
        states, symbols = int(chance.integers(5, 31)), int(chance.integers(2, 13))
        if states * symbols > MAX_TRANSITIONS:
            continue
        for _ in range(100):
            table = chance.integers(states, size=(states, symbols))
            outputs = chance.integers(2, size=states)
            machine = Transducer(Semiautomaton(table, tuple(ALPHABET[:symbols])), 0, outputs).minimize()
            if machine.num_states == states and 0.3 < machine.outputs.mean() < 0.7:
                return machine


def drawn_protocol(seed: int) -> Transducer:
    """Draw a protocol of 5 to 12 states and 6 to 12 tokens. Each state allows 2 to 4 tokens; other tokens are errors.

    The answer is yes as long as no token was an error. So if a trace is accepted, all of its prefixes are accepted.
    """
    chance = np.random.default_rng([seed, 8])
    states, symbols = int(chance.integers(5, 13)), int(chance.integers(6, 13))
    while True:
        table = np.full((states + 1, symbols), states)
        for state in range(states):
            allowed = chance.choice(symbols, int(chance.integers(2, 5)), replace=False)
            table[state, allowed] = chance.integers(states, size=len(allowed))
        outputs = np.append(np.ones(states, np.int64), 0)
        machine = Transducer(Semiautomaton(table, tuple(ALPHABET[:symbols])), 0, outputs).minimize()
        if machine.num_states == states + 1:
            return machine


def drawn_strings(machine: Transducer, count: int, seed: int, longest: int = LONGEST) -> list[np.ndarray]:
    """Draw `count` uniform strings over the machine's symbols, with uniform lengths from 1 to `longest`."""
    chance = np.random.default_rng([seed, 9])
    symbols = len(machine.symbols)
    return [chance.integers(symbols, size=length) for length in chance.integers(1, longest + 1, size=count).tolist()]


def drawn_traces(protocol: Transducer, count: int, seed: int) -> list[np.ndarray]:
    """Draw traces of a protocol. In a share of the traces, an error occurs, and uniform tokens follow the error."""
    chance = np.random.default_rng([seed, 10])
    table = protocol.semiautomaton.table
    (sink,) = np.flatnonzero(protocol.outputs == 0).tolist()
    traces = []
    for _ in range(count):
        length = int(chance.integers(TRACE_LENGTHS[0], TRACE_LENGTHS[1] + 1))
        error = int(chance.integers(length)) if chance.random() < SHARE_REJECTED else -1
        state, trace = protocol.start, []
        for position in range(length):
            is_error = table[state] == sink
            choices = np.flatnonzero(is_error == (position == error)) if state != sink else np.arange(len(is_error))
            trace.append(int(chance.choice(choices if len(choices) else np.flatnonzero(~is_error))))
            state = int(table[state, trace[-1]])
        traces.append(np.array(trace))
    return traces


def labeled(machine: Transducer, strings: list[np.ndarray], share: float, seed: int, *, prefixes: bool) -> Examples:
    """Label the strings by the machine's answers, and flip each label with probability `share`."""
    chance = np.random.default_rng([seed, 11])
    rows = []
    for number, string in enumerate(strings):
        answers = machine.run(string[None])[0] ^ (chance.random(len(string)) < share)
        labels = [CLASSES[answer] for answer in (answers if prefixes else answers[-1:]).tolist()]
        rows.append(Row([machine.symbols[v] for v in string.tolist()], labels, number))
    return examples_from(rows, "prefix" if prefixes else "last")


def outcomes(size: Size, root: Path) -> list[Outcome]:
    """Return the outcome of each machine at each share of wrong labels.

    At full size this takes hours. A stopped study continues from the outcomes in the folder of runs.
    """

    def solve(problem: tuple[Kind, int, float]) -> Outcome:
        return _outcome(*problem, size)

    return saved_outcomes(root / "state-merging", size, _OUTCOMES, _problems(size), solve)


def _problems(size: Size) -> list[tuple[Kind, int, float]]:
    kinds: tuple[tuple[Kind, int], ...] = (
        ("random machines", size.machines),
        ("protocols", size.protocols),
        ("random machines, a label for each symbol", size.traced),
    )
    return [(kind, number, share) for share in size.wrong for kind, count in kinds for number in range(count)]


def _drawn(kind: Kind, number: int, size: Size) -> tuple[Transducer, list[np.ndarray], list[np.ndarray]]:
    """Return a machine, the strings of its examples, and fresh strings."""
    if kind == "protocols":
        machine = drawn_protocol(number)
        return machine, drawn_traces(machine, size.examples, number), drawn_traces(machine, NUM_FRESH, 1_000 + number)
    machine = drawn_machine(number)
    strings = drawn_strings(machine, size.examples if kind == "random machines" else size.traces, number)
    return machine, strings, drawn_strings(machine, NUM_FRESH, 1_000 + number, 2 * LONGEST)


def _outcome(kind: Kind, number: int, share: float, size: Size) -> Outcome:
    machine, strings, fresh = _drawn(kind, number, size)
    examples = labeled(machine, strings, share, number, prefixes=kind.endswith("each symbol"))
    # A learner does not know symbols that occur in no example.
    known = [machine.symbols.index(symbol) for symbol in examples.symbols]
    target = Transducer(
        Semiautomaton(machine.semiautomaton.table[:, known], examples.symbols), machine.start, machine.outputs
    )
    fresh = [np.searchsorted(known, string) for string in fresh if np.isin(string, known).all()]

    def graded(learner: str, learned: Transducer | None, seconds: float) -> LearnedBy:
        if learned is None:
            return LearnedBy(learner, None, "wrong", len(fresh), seconds)
        num_wrong = sum(int(learned.run(s[None])[0, -1] != target.run(s[None])[0, -1]) for s in fresh)
        return LearnedBy(learner, learned.num_states, exactness(learned, target, examples), num_wrong, seconds)

    began = time.process_time()
    result = search(examples, budget=size.budget, seed=0)
    ours = graded("learn", result.machine, time.process_time() - began)
    others = [graded(name, *_baseline(name, examples)) for name in BASELINES]
    return Outcome(kind, number, share, target.num_states, len(machine.symbols), result.best.method, (ours, *others))


class _TimeIsOverError(Exception):
    pass


def _baseline(name: str, examples: Examples) -> tuple[Transducer | None, float]:
    """Return the machine of AALpy's learner (None if it was stopped or AALpy is not installed) and the CPU seconds."""
    try:
        from aalpy.learning_algs import run_EDSM, run_RPNI
    except ImportError:
        return None, 0.0
    data = labeled_prefixes(examples)
    learner: Any = run_RPNI if name == "RPNI" else run_EDSM

    def stop(*_: object) -> None:
        raise _TimeIsOverError

    began = time.process_time()
    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, BASELINE_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # AALpy warns of missing transitions and answers, which are completed below
            learned = learner([*data.items()], automaton_type="moore", print_info=False)
    except _TimeIsOverError:
        return None, time.process_time() - began
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return completed_moore(learned, examples.symbols, data), time.process_time() - began


def _experiment(title: str, scale: Scale, small: Size) -> Experiment:
    check_is_not_paper(scale)
    size = SMOKE_SIZE if scale == "smoke" else small
    return Experiment(
        title=title,
        about=(
            "The examples are strings that are labeled by a known machine, the target, with some wrong labels.\n"
            "The baselines RPNI and EDSM (AALpy) get the same examples, and treat every label as right."
        ),
        study=lambda root: Outcomes(size, outcomes(size, root)),
    )


@EXPERIMENTS.register("learning/state-merging")
def state_merging(scale: Scale = "small") -> Experiment:
    """Learn a few random machines and protocols from examples with 0 and 5 % wrong labels, by three learners."""
    return _experiment("State merging by description length, compared with RPNI and EDSM", scale, SMALL_SIZE)


@EXPERIMENTS.register("learning/state-merging-70")
def state_merging_70(scale: Scale = "small") -> Experiment:
    """Learn 70 random machines and protocols from examples with 0 to 10 % wrong labels; takes hours on one core."""
    return _experiment("State merging on 70 machines, compared with RPNI and EDSM", scale, Size())
