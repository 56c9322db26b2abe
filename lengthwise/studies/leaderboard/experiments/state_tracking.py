"""State tracking: word problems of 46 groups. Symbols are the generators of a group, or all of its elements."""

from collections.abc import Mapping

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Printed, Scale, ScaledSpecs, with_certificates
from lengthwise.runs.spec import RunSpec, Settings
from lengthwise.studies.groups import SHEAR, TURN, UNSOLVABLE_LINEAR, linear_group
from lengthwise.studies.languages import Language
from lengthwise.studies.leaderboard.experiments.leaderboard import (
    BATCH_SIZE,
    ENTRANTS,
    EVERY,
    MEAN_LENGTH,
    SEEDS,
    STEPS,
    SUPERVISIONS,
    specs_of,
)
from lengthwise.tasks.base import make_task
from lengthwise.tasks.regular.word_problem import WordProblem

ALPHABETS: Mapping[str, str] = {"generators": "over generators", "elements": "over every element"}
"""The name of each alphabet of a word problem in the headings of the page."""

MAX_ALPHABET = 120
"""The largest order of a group whose elements are the symbols. The net of `MACHINE` then has 1.7 million weights."""

MACHINE, MACHINE_STEPS = "finite machine", 300
"""The column of the net that is trained by Baum-Welch steps, and the number of these steps."""

BASELINES = ("sLSTM", "Transformer", "DeltaProduct, 2", "PD-SSM", "SD-SSM")
"""The models of the leaderboard that are trained on the groups in `COMPARED`, with the same learning rates."""

COMPARED = ("S3", "Q8", "S4", "D30", "A4xZ5", "A5", "S5", "GL(3, 2)", "A6")
"""The groups on which all models are trained. Column `MACHINE` has three seeds on these groups."""


def affine_group(prime: int, factor: int) -> Settings:
    """Return the word problem of the maps x -> ax + b modulo a prime, where a is a power of `factor`."""
    points = range(prime)
    return {"generators": (tuple((x + 1) % prime for x in points), tuple(factor * x % prime for x in points))}


_NAMED = (
    *("Z2", "Z3", "Z5", "Z6", "Z7", "Z12", "Z60", "Z2xZ2", "Z2xZ4", "Z2xZ2xZ2", "Z3xZ3", "Z4xZ4", "Z5xZ5"),
    *("D4", "D5", "D6", "D8", "D12", "D30", "Q8", "Q12", "Q16"),
    *("S3", "A4", "S4", "S3xZ3", "S3xS3", "S4xZ2", "A4xZ5", "S4xS3"),
)
_NAMED_UNSOLVABLE = ("A5", "A5xZ2", "S5", "A5xZ3", "S5xZ2", "A5xZ2xZ2", "A5xZ4", "A5xZ5", "A5xS3", "A6")

SOLVABLE: Mapping[str, Settings] = {
    **{name: {"group": name} for name in _NAMED},
    "F20": affine_group(5, 2),
    "F21": affine_group(7, 2),
    "SL(2, 3)": linear_group(3, (TURN, SHEAR)),
    "GL(2, 3)": linear_group(3, (TURN, SHEAR, ((-1, 0), (0, 1)))),
}
UNSOLVABLE: Mapping[str, Settings] = {**{name: {"group": name} for name in _NAMED_UNSOLVABLE}, **UNSOLVABLE_LINEAR}
"""The settings of the word problem of each group that is not solvable, by the name of the group."""

PUBLISHED: Mapping[tuple[str, str], str] = {("A5", "PD-SSM"): "100"}
_PROTOCOL = (
    "Terzić et al. (2025), the paper on PD-SSM: accuracy in percent. The net has one layer, and two of the group's "
    "elements are symbols. Strings have up to 40 symbols in training, and 40-256 in the test. All other settings "
    "differ from ours."
)


@EXPERIMENTS.register("state-tracking")
def state_tracking(scale: Scale = "small") -> Experiment:
    """Train six models on the word problems of 46 groups of up to 360 elements, and certify every net."""
    groups = {**SOLVABLE, **UNSOLVABLE}
    plan = EvaluationPlan(
        dense=(41, 512),
        dense_every=EVERY,
        dense_strings=64,
        long=((128, 64), (512, 64), (10_000, 8)),
        structured=((500, 16),),
        certificate=True,
    )
    return Experiment(
        title="State tracking: word problems of groups",
        headline=(
            "Nets are trained on word problems of groups: {cells[*][finite machine][level proved]} finite machines, "
            "and {cells[*][not finite machine][level proved]} other nets, are proved right at every length."
        ),
        about=(
            "Symbols are elements of a group, and the answer is the product of all symbols so far. There are "
            f"{len(groups)} groups of 2 to 360 elements, and {len(UNSOLVABLE)} of these groups are not solvable.\n"
            "All models are trained on strings of up to 40 symbols with the answers to all prefixes. The *finite "
            "machine* is a `block-linear-rnn` with as many states as the group has elements. On the generators of "
            f"{len(COMPARED)} groups, all six models are trained; in all other cases, only the finite machine is "
            "trained."
        ),
        notes=(
            f"The finite machine is trained for {MACHINE_STEPS} Baum-Welch steps (preset `likelihood`), each on 64 "
            f"strings of 39 and 40 symbols, in all {MACHINE_STEPS * 64 * 39.5 / 1e6:.1f} million symbols.",
            f"The other models have the settings, the learning rates and the schedule of the `leaderboard`: {STEPS:,} "
            f"steps on {BATCH_SIZE} strings of 1 to 40 symbols, about {STEPS * BATCH_SIZE * MEAN_LENGTH / 1e6:.1f} "
            "million symbols. Most published nets have more layers, and read more than 100 times as many symbols.",
            "In the parts *nine groups*, the finite machine has three seeds. All other cells have one seed. Final "
            "weights are measured, and nothing is selected.",
            "The generators of Z60 are 0 and 1, so a string of 40 symbols reaches no element above 40. Elements that "
            "do not occur in training are not learned.",
            "Each refuted finite machine on a group other than Z60 had one attempt, with exactly as many states as the "
            "group has elements. On A6 and GL(3, 2), `within-a-minute/tasks` allows more states and further attempts, "
            "and all of its nets are proved.",
            "In the parts *over every element*, all elements of a group are symbols. These parts leave out groups "
            f"with more than {MAX_ALPHABET} elements.",
            "A table of Terzić et al. (2025) has tasks in which only some elements of A_5 and S_5 are symbols, and "
            "training uses last answers alone. PD-SSM has 100 % with 2 to 12 elements of A_5 and with 4 and 8 elements "
            "of S_5, and 1.07 % with 32 elements of S_5. Gated DeltaProduct has 97.9 % with 2 and 60.5 % with 12 "
            "elements of A_5, and 57.4 % with 8 elements of S_5.",
            "F20 is the group of maps x -> ax + b modulo 5, and F21 the group of such maps modulo 7 with a = 1, 2 or "
            "4. Dn has 2n elements, and Qn has n elements (dicyclic groups; Q8 is the quaternion group).",
        ),
        cells=[
            cell
            for compared in (True, False)
            for alphabet in ALPHABETS
            for row, fields in groups.items()
            if (row in COMPARED) == compared
            for cell in _cells(alphabet, row, fields, scale)
        ],
        plan=with_certificates(plan, scale),
        is_matrix=True,
    )


def _cells(alphabet: str, row: str, fields: Settings, scale: Scale) -> list[Cell]:
    """Return the cells of a group with one of its alphabets, or an empty list if the alphabet is too large."""
    task = make_task("word-problem", **fields)
    assert isinstance(task, WordProblem)
    if alphabet == "elements":
        if task.action.order > MAX_ALPHABET:
            return []
        fields = {**fields, "alphabet": alphabet}
    language = Language(row, "word-problem", fields)
    part = f"{ALPHABETS[alphabet]}, {'nine groups' if row in COMPARED else 'more groups'}"
    cells = [Cell(row, MACHINE, _machine_specs(row, fields, task.action.order, scale), part=part)]
    for column in BASELINES if row in COMPARED and alphabet == "generators" else ():
        entrant = next(entrant for entrant in ENTRANTS if entrant.column == column)
        specs = specs_of(entrant, language, SUPERVISIONS["all prefixes"], scale, SEEDS[:1], "legal")
        published = PUBLISHED.get((row, column))
        printed = (Printed(published, _PROTOCOL, (41, 256)),) if published else ()
        cells.append(Cell(row, column, specs, part=part, printed=printed))
    return cells


def _machine_specs(row: str, fields: Settings, num_states: int, scale: Scale) -> tuple[RunSpec, ...]:
    size: Settings = {"d_model": num_states, "block_dim": num_states}
    specs = ScaledSpecs(scale, SEEDS if row in COMPARED else SEEDS[:1], "block-linear-rnn")
    settings: Settings = {"task": fields, "model": size, "train": {"steps": MACHINE_STEPS}}
    return specs("word-problem", settings, preset="likelihood")
