import pytest
import torch
from task_strings import check_against_transducer, seeded

from lengthwise.tasks import make_task


def test_formula_and_machine_agree() -> None:
    check_against_transducer(make_task("parity"))


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_b_has_its_probability_and_the_baseline_is_exact(p: float) -> None:
    task = make_task("parity", p=p)
    inputs, targets = task.sample(100_000, 5, seeded(0))
    torch.testing.assert_close(inputs.double().mean(dim=0), torch.full((5,), p, dtype=torch.float64), rtol=0, atol=0.01)
    odd = targets[:, -1].double().mean().item()
    assert max(odd, 1 - odd) == pytest.approx(task.baseline(5), abs=0.01)


def test_baseline_is_the_closed_form() -> None:
    assert make_task("parity", p=0.25).baseline(2) == pytest.approx(0.25**2 + 0.75**2)
    assert make_task("parity").baseline(40) == 0.5


@pytest.mark.parametrize("p", [0, 1, -0.5, "often"])
def test_bad_probabilities_are_refused(p: object) -> None:
    with pytest.raises(ValueError, match=r"^task\.p: expected .*, got [^\n]*; give one$"):
        make_task("parity", p=p)
