"""Sets that a proof is about hold the states that a net has on other settings of the machine and of torch."""

import contextlib
import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial

import pytest
import torch
from last_symbol import LastSymbol
from slow_nets import slow_net
from torch import Tensor

from lengthwise.certification.builder import mask_unsupervised
from lengthwise.certification.methods.intervals.prover import IntervalProver
from lengthwise.devices import denormals_kept
from lengthwise.extraction.readers.recurrent import extract_recurrent
from lengthwise.models.base import RecurrentModel

TASK = LastSymbol()


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def without_onednn() -> Iterator[None]:
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


def whole(model: RecurrentModel, strings: Tensor) -> Tensor:
    return torch.cat(list(model.states(strings)), 1)


def alone(model: RecurrentModel, strings: Tensor) -> Tensor:
    return torch.cat([whole(model, string[None]) for string in strings])


def by_steps(model: RecurrentModel, strings: Tensor) -> Tensor:
    state, states = model.initial_state(len(strings)), []
    for symbols in strings.T:
        _, state = model.step(symbols, state)
        states.append(state)
    return torch.stack(states, 1)


def in_double_precision(model: RecurrentModel, strings: Tensor) -> Tensor:
    return whole(copy.deepcopy(model).double(), strings)


Environment = tuple[Callable[[], AbstractContextManager[None]], Callable[[RecurrentModel, Tensor], Tensor]]

ENVIRONMENTS: dict[str, Environment] = {
    "one thread": (partial(threads, 1), whole),
    "two threads": (partial(threads, 2), whole),
    "four threads": (partial(threads, 4), whole),
    "strings alone": (contextlib.nullcontext, alone),
    "step by step": (contextlib.nullcontext, by_steps),
    "without oneDNN": (without_onednn, whole),
    "with denormals": (denormals_kept, whole),
    "in float64": (contextlib.nullcontext, in_double_precision),
}


@pytest.mark.parametrize("kind", ["rnn", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("gru", "lstm"))])
@torch.no_grad()
def test_states_stay_in_the_sets_of_a_proof_in_every_environment(kind: str) -> None:
    model = slow_net(kind, None, pace=0.3)
    extraction = mask_unsupervised(extract_recurrent(model, TASK.symbols, radius=0.3), TASK.transducer)
    prover = IntervalProver()
    prover.prove(model, extraction)
    low, high = prover.sets["low"], prover.sets["high"]
    strings = torch.randint(0, 2, (65, 40), generator=torch.Generator().manual_seed(0))
    machine = extraction.fine.semiautomaton
    classes = torch.from_numpy(machine.run(strings.numpy(), extraction.fine.start))
    results = {}
    for name, (environment, states_of) in ENVIRONMENTS.items():
        with environment():
            states = states_of(model, strings)
        results[name] = states.double()
        assert bool(((low[classes] <= states) & (states <= high[classes])).all()), name
    assert not torch.equal(results["in float64"], results["one thread"]), "environments differ"
