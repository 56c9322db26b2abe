"""L* asks a model; what it learns is compared with the machine that is there."""

import pytest
import torch
from automaton_strategies import checked_strategies, transducers
from hypothesis import given

from lengthwise.automata import Transducer
from lengthwise.certification.equivalence import first_error
from lengthwise.extraction.lstar import learn_by_queries
from lengthwise.models import make_model
from lengthwise.models.machine import TransducerModel
from lengthwise.tasks import make_task

pytestmark = checked_strategies


def names(transducer: Transducer) -> tuple[str, ...]:
    return tuple(map(str, range(int(transducer.outputs.max()) + 1)))


@given(transducers(symbols=("a", "b"), max_states=4))
def test_learns_the_machine_that_answers(transducer: Transducer) -> None:
    outputs = transducer.outputs - transducer.outputs.min()
    there = Transducer(transducer.semiautomaton, transducer.start, outputs)
    learned = learn_by_queries(TransducerModel(there, names(there)), there.symbols)
    assert first_error(learned, there) is None
    assert learned.num_states <= there.minimize().num_states + 1  # the start, of which nothing is asked


def test_an_untrained_net_is_no_small_machine() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=8, num_heads=2)
    with pytest.raises(
        ValueError, match="expected a machine that agrees with it on 200 strings of 12 symbols after 2 rounds"
    ):
        learn_by_queries(model, task.symbols, num_strings=200, length=12, max_rounds=2)


class Overflows(TransducerModel):
    """Has no finite logits from some length on."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        logits = super().forward(inputs)
        logits[:, 5:] = torch.inf
        return logits


@pytest.mark.parametrize("length", [8, 5])
def test_logits_that_are_not_finite_are_no_answers(length: int) -> None:
    """Neither those of the strings that are compared nor those of longer ones, which are queried."""
    task = make_task("tomita", index=4)
    model = Overflows(task.transducer, task.classes)
    with pytest.raises(ValueError, match="model: expected finite logits, got NaN or infinity; give a net"):
        learn_by_queries(model, task.symbols, num_strings=20, length=length)


def test_strings_come_from_the_seed() -> None:
    task = make_task("even-pairs")
    model = TransducerModel(task.transducer, task.classes)
    before = torch.get_rng_state()
    first, again = (learn_by_queries(model, task.symbols, num_strings=20, length=10) for _ in range(2))
    assert first.equivalent(again)
    assert torch.equal(before, torch.get_rng_state())


class Drops(TransducerModel):
    """Answers as its machine does, but in training, as a net with dropout."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        answers = super().forward(inputs)
        return answers.flip(-1) if self.training else answers


def test_a_model_that_is_in_training_answers_in_evaluation_mode_and_stays_in_training() -> None:
    task = make_task("parity")
    model = Drops(task.transducer, task.classes).train()
    assert first_error(learn_by_queries(model, task.symbols), task.transducer) is None
    assert model.training
