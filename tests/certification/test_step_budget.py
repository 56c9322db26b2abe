"""A comparison of two nets within a budget: what is known when it ends, and reports on its steps."""

import copy

import pytest
import torch

from lengthwise import equal, make_model, make_task
from lengthwise.certification import common_machine, traces
from lengthwise.certification.attacks import attack
from lengthwise.certification.methods.intervals import prover
from lengthwise.certification.step_budget import BudgetSpent, StepBudget
from lengthwise.models.base import SequenceModel

pytestmark = pytest.mark.usefixtures("fewer_strings")


def twins() -> tuple[SequenceModel, SequenceModel]:
    """Return an untrained net, whose answers are nearly constant, and a copy with slightly smaller weights."""
    net = make_model("lstm", make_task("parity"), d_model=16, seed=2)
    twin = copy.deepcopy(net)
    with torch.no_grad():
        for weight in twin.parameters():
            weight *= 0.999
    return net, twin


def test_a_budget_leaves_steps_out_and_the_result_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "TESTED_LENGTHS", (40, 50, 60))
    monkeypatch.setattr(attack, "MAX_SYMBOLS_IN_CERTIFY", 3_000)
    monkeypatch.setattr(prover, "MAX_ROUNDS", 4)  # no proof is found in 60 rounds either
    monkeypatch.setattr(prover, "NUM_GROWTH_ROUNDS", 2)
    steps = list[str]()
    result = equal(*twins(), report=steps.append)
    assert result.level == "extracted"
    assert [step.split(";")[0] for step in steps] == [
        "testing both nets on structured strings",
        "extracting machines from the nets",
        *(
            "certifying a net for a machine of 1 state",
            "reading long strings with a net and its machine of 1 state",
        ),
        *(
            "certifying a net for a machine of 1 state",
            "reading long strings with a net and its machine of 1 state",
        ),
        "testing both nets on random strings",
    ]
    result = equal(*twins(), budget=1e-6)
    assert (result.level, result.equal, result.tested) == ("tested", None, ())
    assert result.reason == "; ".join(
        f"the budget of 1e-06 CPU s ended before step {step!r}"
        for step in ("extracting machines from the nets", "testing both nets on random strings")
    )
    assert str(result).startswith("not decided: both nets give the same answer to every string of up to 12 symbols; ")
    monkeypatch.setattr(common_machine, "COST_OF_LONG_STRINGS", 1e9)
    result = equal(*twins(), budget=1_000.0)
    assert result.level == "tested"
    assert result.reason.startswith("the budget of 1000 CPU s ended before step 'reading long strings with a net")
    assert result.tested, "random strings are still compared"


def test_a_difference_is_found_within_any_budget() -> None:
    net, _ = twins()
    result = equal(net, make_model("lstm", make_task("parity"), seed=0), budget=1e-6)
    assert result.level == "refuted"


@pytest.mark.unchecked  # the annotations reject a wrong type before the function can
@pytest.mark.parametrize("budget", [0, -1.0, float("nan"), float("inf"), "5", True])
def test_a_budget_is_a_number_above_0(budget: float) -> None:
    with pytest.raises(ValueError, match=r"^budget: expected CPU seconds above 0, or None for no limit, got "):
        equal(*twins(), budget=budget)


def test_a_step_begins_only_if_the_time_for_it_is_left() -> None:
    StepBudget().begin("a step", expected=1e9)
    StepBudget(1e6).begin("a step", expected=10.0)
    with pytest.raises(BudgetSpent, match=r"^the budget of 5 CPU s ended before step 'a step'$"):
        StepBudget(5).begin("a step", expected=10.0)
