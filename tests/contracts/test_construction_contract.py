"""What every registered construction promises, whatever its name, for every regular task and for any machine."""

from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from automaton_strategies import all_strings, checked_strategies, dfas, telling_strings, transducers
from hypothesis import given

from lengthwise.automata import DFA, Semiautomaton, Transducer
from lengthwise.certification.certify import certify
from lengthwise.constructions import CONSTRUCTIONS, Construction, construct
from lengthwise.constructions.base import MARGIN, MAX_WEIGHTS
from lengthwise.conventions import IGNORE, PAD
from lengthwise.models import SequenceModel
from lengthwise.models.capabilities import AcceptsPads
from lengthwise.tasks import TASKS, Batch, RegularTask, Task, make_task

pytestmark = checked_strategies

TASK_NAMES = [name for name, task in TASKS.items() if issubclass(task, RegularTask)]
DTYPES = (torch.float32, torch.float64)


@cache
def compiled(name: str, task_name: str) -> Construction | str:
    """The task's construction, or the sentence with which it is refused."""
    try:
        return construct(name, make_task(task_name))
    except ValueError as error:
        return str(error)


PAIRS = list(product(CONSTRUCTIONS, TASK_NAMES))
COMPILED = [pair for pair in PAIRS if isinstance(compiled(*pair), Construction)]


@pytest.fixture(params=list(CONSTRUCTIONS))
def name(request) -> str:
    return request.param


@pytest.fixture(params=COMPILED, ids="-".join)
def construction(request) -> Construction:
    return compiled(*request.param)


def assert_right(logits: torch.Tensor, expected: np.ndarray) -> None:
    """At supervised positions, the logit margin of the correct answer is at least `MARGIN`."""
    targets = torch.from_numpy(expected)
    logits, targets = logits[targets != IGNORE], targets[targets != IGNORE]
    margins = logits.gather(1, targets[:, None]) - logits
    margins.scatter_(1, targets[:, None], MARGIN)
    assert margins.numel() == 0 or margins.min() >= MARGIN


@torch.no_grad()
def assert_equal_on_all_short_strings(model: SequenceModel, machine: Transducer, maximum: int) -> None:
    num_symbols = len(machine.symbols)
    length = max(n for n in range(1, 9) if n == 1 or num_symbols**n <= maximum)
    strings = all_strings(num_symbols, length)
    for dtype in DTYPES:
        for chunk in np.array_split(strings, -(-len(strings) // 10_000)):
            assert_right(model.to(dtype)(torch.from_numpy(chunk)), machine.run(chunk))
    model.float()


@pytest.mark.parametrize("pair", sorted({*PAIRS} - {*COMPILED}), ids="-".join)
def test_a_task_is_refused_only_for_its_size(pair: tuple[str, str]) -> None:
    assert f"weights, more than {MAX_WEIGHTS:,}; " in compiled(*pair)


def test_says_what_it_is(construction: Construction) -> None:
    task = construction.task
    assert construction.target.symbols == task.symbols
    assert construction.target.classes == task.classes
    assert construction.target.machine.equivalent(task.transducer)
    assert construction.source
    num_weights = sum(parameter.numel() for parameter in construction.model.parameters())
    assert num_weights <= MAX_WEIGHTS
    assert any(f" {num_weights:,} weights" in line for line in construction.about)


def test_is_right_on_all_short_strings(construction: Construction) -> None:
    assert_equal_on_all_short_strings(construction.model, construction.task.transducer, 3_000)


@pytest.mark.slow
def test_is_right_on_all_strings_of_8_symbols_or_as_many_as_there_are_390_625_of(construction: Construction) -> None:
    assert_equal_on_all_short_strings(construction.model, construction.task.transducer, 5**8)


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_strings")
def test_is_certified(construction: Construction) -> None:
    """Except for machines with more states than the limit on classes."""
    certificate = certify(construction.model, construction.task)
    assert certificate.reaches("extracted") or "do not close within " in certificate.reason


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("dtype", "which", "length"),
    [
        (torch.float32, 0, 2_000),
        (torch.float64, 1, 2_000),
        pytest.param(torch.float32, 0, 100_000, marks=pytest.mark.slow),
        pytest.param(torch.float64, 1, 100_000, marks=pytest.mark.slow),
    ],
)
def test_is_right_on_long_strings(construction: Construction, dtype: torch.dtype, which: int, length: int) -> None:
    """Those that lead to one of two answers."""
    assert construction.max_length is None
    telling = telling_strings(construction.task.transducer, length)
    assert len({answer for _, answer in telling}) == 2
    string, answer = telling[which]
    with torch.no_grad():
        logits = construction.model.to(dtype).last(torch.from_numpy(string)[None])
    assert_right(logits, np.array([answer]))
    construction.model.float()


def test_a_pad_is_no_symbol_or_rejected(construction: Construction) -> None:
    model = construction.model
    strings = torch.randint(len(construction.target.symbols), (64, 30), generator=torch.Generator().manual_seed(0))
    padded = torch.full((64, 45), PAD)
    indices = torch.rand(64, 45, generator=torch.Generator().manual_seed(1)).argsort(1)[:, :30].sort(1).values
    padded.scatter_(1, indices, strings)
    if not isinstance(model, AcceptsPads):
        with pytest.raises(ValueError, match="inputs: expected"):
            model.last(padded)
        return
    with torch.no_grad():
        assert torch.equal(model.last(padded), model.last(strings))


@given(machine=transducers(max_states=4))
def test_compiles_any_transducer(machine: Transducer) -> None:
    supervised = Transducer(
        machine.semiautomaton, machine.start, np.where(machine.outputs < 0, IGNORE, machine.outputs)
    )
    for name in CONSTRUCTIONS:
        construction = construct(name, supervised)
        assert construction.task is None
        assert_equal_on_all_short_strings(construction.model, supervised, 800)


@given(machine=dfas())
def test_compiles_any_automaton(machine: DFA) -> None:
    for name in CONSTRUCTIONS:
        construction = construct(name, machine)
        assert construction.target.classes == ("out", "in")
        assert_equal_on_all_short_strings(construction.model, machine.transducer, 300)


def test_answers_that_are_no_classes_are_refused(name: str) -> None:
    machine = Transducer(Semiautomaton(np.array([[0]]), ("a",)), 0, np.array([-1]))
    with pytest.raises(
        ValueError, match=r"machine: expected answers in 0..0, or -100 where nothing is supervised, got \[-1\]"
    ):
        construct(name, machine)


def test_a_task_without_a_finite_machine_is_refused(name: str) -> None:
    class Endless(Task):
        name = "endless"

        def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch: ...
        def baseline(self, length: int) -> float: ...

    with pytest.raises(ValueError, match=r"machine: expected a task that a finite machine solves, got endless"):
        construct(name, Endless())


def test_an_unknown_option_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"chunk_siz: {name} takes no such option"):
        construct(name, make_task("parity"), chunk_siz=2)


def test_a_machine_that_is_too_large_is_refused_with_its_size(name: str) -> None:
    states = np.arange(3_000)
    table = np.stack([(states + 1) % 3_000, states // 2], 1)
    machine = Transducer(Semiautomaton(table, ("a", "b")), 0, states)
    with pytest.raises(ValueError, match=rf"machine: .* would have [\d,]+ weights, more than {MAX_WEIGHTS:,}; "):
        construct(name, machine)
