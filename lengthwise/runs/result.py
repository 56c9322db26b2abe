"""The result of a finished run, the status of a run, and its card in a notebook."""

from itertools import takewhile
from typing import Any

from pydantic import Field, field_validator

from lengthwise.certification.certificate import ACCENTS, Certificate
from lengthwise.display import ACCENT, Plotted, accuracy_svg, card, percent
from lengthwise.evaluation.error_curve import ErrorCurve
from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint
from lengthwise.evaluation.perplexity import PerplexityCurve
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.goal import Attempt
from lengthwise.runs.journal import Probe
from lengthwise.runs.spec import SECTIONS, RunSpec
from lengthwise.tasks.base import SymbolTask
from lengthwise.text.language import LanguageTask
from lengthwise.validation import FrozenRecord


class RunStatus(FrozenRecord):
    """The status of a run; times are sums over all processes that worked on it.

    `device` is the device of training, or a list of devices in sequence if the run continued elsewhere. Early versions
    left this field empty. `journals` contains the digest of each `Journal` up to `step`, by the journal's name. For a
    run with a goal, `step` and the seconds count all attempts and their certificates, and `attempts` contains the
    finished attempts.
    """

    status: str = "new"
    step: int = 0
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    message: str = ""
    device: str = Field("", exclude_if=lambda device: not device)
    journals: dict[str, str] = Field(default_factory=dict)
    attempts: tuple[Attempt, ...] = Field((), exclude_if=lambda attempts: not attempts)


ENDINGS = ("reached", "out of budget")
"""The statuses at the end of a run with a goal: it reached the goal, or no further attempt could begin."""


def takes_probes(spec: RunSpec) -> bool:
    """Return whether strings are graded while a run trains.

    Strings are not graded in runs with a goal, because the outcome of training decides how such runs continue. They are
    also not graded for models that would take too long, and for language models, whose answers are neither right nor
    wrong.
    """
    has_answers = isinstance(spec.task, SymbolTask) and not isinstance(spec.task, LanguageTask)
    return has_answers and spec.goal is None and spec.model_config.takes_probes


NOT_MEASURED = LengthCurve(protocol="independent", points=())
"""The empty curve, which replaces a curve that the plan leaves out."""


class RunResult(FrozenRecord):
    """The measurements of a finished run, and everything needed to judge them.

    Curves contain accuracies by length if answers are classes. If answers are numbers, `errors` contains errors by
    length instead. Language models have `perplexity` by length. `final_loss` is the loss of the final weights on new
    strings of the training lengths (`lengthwise.training.final_loss`). Runs with a goal record this loss in their
    attempts, and early versions did not record it. `on_other_tasks` contains the accuracies in the dense range
    (`EvaluationPlan`) on each of the specification's `other_tasks`. `examples` contains accuracies on the fixed
    training set, if the recipe has one.
    """

    run_id: str
    spec: dict[str, Any]
    weights: str
    num_parameters: int
    plan: EvaluationPlan
    dense: LengthCurve = NOT_MEASURED
    long: LengthCurve = NOT_MEASURED
    structured: LengthCurve = NOT_MEASURED
    errors: ErrorCurve | None = Field(None, exclude_if=lambda errors: errors is None)
    perplexity: PerplexityCurve | None = Field(None, exclude_if=lambda curve: curve is None)
    on_other_tasks: tuple[LengthCurve, ...] = Field((), exclude_if=lambda curves: not curves)
    examples: tuple[LengthPoint, ...] = Field((), exclude_if=lambda points: not points)
    certificate: Certificate | None = None
    final_loss: float | None = Field(None, exclude_if=lambda loss: loss is None)
    probes: tuple[Probe, ...]
    training: RunStatus
    evaluation_seconds: float
    process_peak_memory_mb: float
    versions: dict[str, str]

    @field_validator("spec")
    @classmethod
    def _complete(cls, spec: dict[str, Any]) -> dict[str, Any]:
        # Pages and records read these fields without checks, so a result without them is rejected here.
        for section in SECTIONS:
            if not isinstance(spec.get(section), dict):
                raise ValueError(f"expected a section {section}")
        if not (isinstance(spec["task"].get("name"), str) and isinstance(spec["model"].get("name"), str)):
            raise ValueError("expected names of task and model")
        if not isinstance(spec.get("seed"), int):
            raise ValueError("expected a seed")
        return spec

    @property
    def curves(self) -> tuple[LengthCurve, LengthCurve, LengthCurve]:
        """The curves `dense`, `long` and `structured` of the learned task; a curve that is not measured is empty."""
        return self.dense, self.long, self.structured

    def _repr_html_(self) -> str:
        """Return a card with a chart, for notebooks."""
        return result_card(self)

    @property
    def fresh_tests(self) -> list[float]:
        """The accuracies on new strings (`Probe.fresh`), for the probes that measured them."""
        return [probe.fresh for probe in self.probes if probe.fresh is not None]

    @property
    def first_flawless_probe(self) -> Probe | None:
        """The first probe from which on all probes are without errors; None if the last probe had errors."""
        flawless = list(takewhile(lambda probe: probe.accuracy == 1.0, reversed(self.probes)))
        return flawless[-1] if flawless else None


def result_card(result: RunResult) -> str:
    """Return an HTML card about a run: task, model, accuracies and their chart, certificate's level, and cost."""
    spec, training = result.spec, result.training
    dense, long = result.dense.balanced(), result.long.balanced()
    title = f"{spec['task']['name']}, {spec['model']['name']}, seed {spec['seed']}"
    trained = f"lengths {spec['train']['min_length']:,} to {spec['train']['max_length']:,}, {training.step:,} steps"
    pairs = [("trained", f"{trained}, {training.cpu_seconds:,.1f} CPU s"), ("parameters", f"{result.num_parameters:,}")]
    if dense.points:
        lengths = f"lengths {dense.points[0].length:,} to {dense.points[-1].length:,}"
        pairs.append((lengths, f"mean {percent(dense.mean())}, lowest {percent(dense.min())}"))
    pairs += [(f"length {point.length:,}", percent(point.accuracy)) for point in long.points]
    if result.structured.points:
        pairs.append(("structured strings", f"lowest {percent(result.structured.min())}"))
    if result.errors is not None:
        pairs.append(
            ("squared error", f"{result.errors.last.error:.4g} after {result.errors.last.num_examples} examples")
        )
    accent = ACCENT
    if result.certificate is not None:
        accent = ACCENTS[result.certificate.level]
        pairs.append(("certificate", f"{result.certificate.level}. {result.certificate.claim}"))
    pairs.append(("run", result.run_id))
    plotted = [Plotted(p.length, p.accuracy, *p.interval, p.baseline) for p in (*dense.points, *long.points)]
    return card(title, pairs, accuracy_svg(plotted, is_joined=True) if plotted else "", accent=accent)
