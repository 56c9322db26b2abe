"""A GPU gives what the CPU gives, for every model: answers, gradients, training, runs. `make test-gpu` runs these."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from device_cases import CASES, measured, short, spec_of, trained, trained_here
from torch import Tensor

from lengthwise import execute
from lengthwise.certification.certify import certify
from lengthwise.devices import computing_in, find_device
from lengthwise.evaluation.perplexity import PerplexityCurve
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.models import MODELS
from lengthwise.runs.execute import Interrupted
from lengthwise.runs.folder import RunFolder
from lengthwise.training.batches import training_lengths

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.unchecked,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]

CPU, CUDA = torch.device("cpu"), torch.device("cuda")

LENGTHS = (1, 2, 8, 9, 40, 63, 100)

CHOOSING = {"pd-ssm", "loops by states"}
"""Where a rounding may decide what is largest, or when loops end: then numbers are others, not less precise ones."""

SLACK = 32
"""A GPU may round this many times as much as the CPU does: sums have another order, and products other kernels.

TF32 would round 2^13 times as much."""


def lengths_of(case: str) -> list[int]:
    """Those that the task has and the model reads, of `LENGTHS` or else of training."""
    spec = spec_of(case)
    longest = spec.make_model().max_length or LENGTHS[-1]
    legal = [length for length in LENGTHS if length <= longest and spec.task.is_legal_length(length)]
    return legal or training_lengths(spec.task, spec.recipe)[0][-1:]


def numbers_of(case: str, dtype: torch.dtype, device: torch.device) -> Iterator[list[Tensor]]:
    """At each length the answers of an untrained model, and all gradients of the mean of their squares."""
    spec = spec_of(case)
    model = spec.make_model().to(device, dtype)
    for length in lengths_of(case):
        inputs = spec.task.sample(3, length, torch.Generator().manual_seed(length)).inputs
        with computing_in("float32", device):
            answers = model((inputs.to(dtype) if inputs.is_floating_point() else inputs).to(device))
            answers = answers.where(answers.isfinite(), 0)  # answers that are ruled out are -inf
            parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
            gradients = torch.autograd.grad(answers.square().mean(), parameters, allow_unused=True)
        yield [tensor.detach().double().cpu() for tensor in (answers, *gradients) if tensor is not None]


@pytest.mark.parametrize("case", CASES)
def test_answers_and_gradients_are_those_of_the_cpu_in_float64(case: str) -> None:
    pairs = zip(numbers_of(case, torch.float64, CPU), numbers_of(case, torch.float64, CUDA), strict=True)
    for here, there in pairs:
        for one, other in zip(here, there, strict=True):
            torch.testing.assert_close(other, one, rtol=1e-8, atol=1e-9 * max(1.0, float(one.abs().max())))


@pytest.mark.parametrize("case", [case for case in CASES if case not in CHOOSING])
def test_float32_is_as_precise_as_on_the_cpu(case: str) -> None:
    exact = numbers_of(case, torch.float64, CPU)
    rounded = (numbers_of(case, torch.float32, device) for device in (CPU, CUDA))
    for true, here, there in zip(exact, *rounded, strict=True):
        largest = [float(true[0].abs().max()), *[max(float(g.abs().max()) for g in true[1:])] * len(true[1:])]
        for one, other, number, scale in zip(here, there, true, largest, strict=True):
            allowed = SLACK * (float((one - number).abs().max()) + 2 * torch.finfo(torch.float32).eps * scale)
            assert float((other - number).abs().max()) <= allowed


@pytest.mark.parametrize("case", CASES)
def test_training_has_the_losses_of_the_cpu(case: str) -> None:
    spec = spec_of(case)
    state, on_gpu = trained(spec, CUDA)
    losses = trained_here(case)[1]
    compared = 1 if case in CHOOSING else len(losses)
    assert on_gpu[:compared] == pytest.approx(losses[:compared], rel=2e-3)
    assert {parameter.device.type for parameter in state.parameters.values()} == {"cuda"}
    there = measured(state, spec)
    state.model.cpu()
    here = measured(state, spec)
    assert type(here) is type(there)
    if isinstance(here, PerplexityCurve) and isinstance(there, PerplexityCurve):
        assert [p.perplexity for p in there.points] == pytest.approx([p.perplexity for p in here.points], rel=1e-3)


@pytest.mark.parametrize("name", list(MODELS))
def test_training_in_bfloat16_is_near(name: str) -> None:
    spec = spec_of(name)._replace(recipe=spec_of(name).recipe.model_copy(update={"precision": "bfloat16"}))
    state, losses = trained(spec, CUDA)
    assert {parameter.dtype for parameter in state.model.parameters()} == {torch.float32}
    assert losses == pytest.approx(trained_here(name)[1], rel=0.2, abs=0.2)


def test_a_run_goes_on_from_the_gpu_on_the_cpu_and_back(tmp_path: Path) -> None:
    spec = short("regular-gpt", model={"d_model": 8, "num_heads": 2}, train={"steps": 9, "checkpoint_every": 1})
    plan = EvaluationPlan(dense=(10, 20), dense_strings=16, long=(), structured=())
    for device in (CUDA, CPU):
        stops = iter([False, False, True])
        with pytest.raises(Interrupted):
            execute(spec, tmp_path, plan, stop_requested=lambda stops=stops: next(stops), device=device)
    result = execute(spec, tmp_path, plan, device=CUDA)
    alone = execute(spec, tmp_path / "alone", plan, device=CPU)
    assert result.final_loss == pytest.approx(alone.final_loss, rel=2e-3)
    names = RunFolder(tmp_path / spec.id).read_status().device
    assert re.fullmatch(r"cuda \((.+)\), then cpu \(.+\), then cuda \(\1\)", names), names
    assert result.versions["device"].startswith("cuda (")


def test_a_net_that_was_trained_there_is_certified_on_the_cpu() -> None:
    state, _ = trained(spec_of("gru"), CUDA)
    here = certify(state.model.cpu(), spec_of("gru").task)
    with pytest.raises(ValueError, match="weights on the CPU, got weights on cuda"):
        certify(state.model.cuda(), spec_of("gru").task)
    assert here.level


def test_foreign_symbols_stop_the_program_with_a_sentence() -> None:
    program = (
        "import torch; from lengthwise.models import make_model; from lengthwise.tasks import make_task; "
        "model = make_model('gru', make_task('parity')).cuda(); "
        "model.last(torch.tensor([[0, 2]]).cuda()); torch.cuda.synchronize()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "inputs: expected symbol ids in 0..1, got other numbers" in ended.stdout + ended.stderr


def test_auto_is_the_gpu() -> None:
    assert find_device("auto") == CUDA
