"""A model's average over regular languages that are drawn at random, not chosen."""

from lengthwise.automata.monoid import bounded_monoid
from lengthwise.automata.random_languages import random_language
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, ScaledSpecs, with_certificates
from lengthwise.runs.spec import Settings

NUM_STATES, NUM_SYMBOLS, BLOCK = 6, 2, 64
"""The size of the languages, and the states of the net: preset `machine`'s 128 would take several times as long."""

MAX_ELEMENTS = 30_000
"""The largest transition monoid that is counted to the end, in elements."""


def about_monoids(count: int) -> str:
    """Return a sentence on the transition monoids of the first languages, whose elements a composing net has to learn.

    Example:
        >>> about_monoids(10)
        'Their transition monoids have 15 to 2,350 elements, and half of the monoids have at most 62.'
    """
    sizes = sorted(map(_monoid_size, range(count)))
    largest = f"{sizes[-1]:,}" if sizes[-1] <= MAX_ELEMENTS else f"more than {MAX_ELEMENTS:,}"
    return (
        f"Their transition monoids have {sizes[0]:,} to {largest} elements, and half of the monoids have at most "
        f"{sizes[(count - 1) // 2]:,}."
    )


def _monoid_size(seed: int) -> int:
    monoid = bounded_monoid(random_language(NUM_STATES, NUM_SYMBOLS, seed).semiautomaton, MAX_ELEMENTS)
    return MAX_ELEMENTS + 1 if monoid is None else monoid.size


@EXPERIMENTS.register("linear-rnn/random-languages")
def random_languages(scale: Scale = "small") -> Experiment:
    """Train a linear RNN of one dense block on 50 random languages: mean with its interval, and the share proved."""
    specs = ScaledSpecs(scale, seeds=(0,), model="block-linear-rnn")
    count = 3 if scale == "smoke" else 50
    size: Settings = {"d_model": BLOCK, "block_dim": BLOCK}
    language: Settings = {"num_states": NUM_STATES, "num_symbols": NUM_SYMBOLS}
    runs = [
        run
        for seed in range(count)
        for run in specs("random-language", {"task": {**language, "seed": seed}, "model": size}, preset="machine")
    ]
    recipe = runs[0].recipe
    plan = EvaluationPlan(dense_strings=64, long=((1_000, 256),), structured=((500, 32),))
    return Experiment(
        title="A linear RNN of one dense block on random regular languages",
        headline=(
            "On {cells[*][*][solved]} languages the net makes no error at the lengths scored.\n"
            "Nets proved right at every length, with a 95 % interval for all such languages: {cells[*][*][proved]}."
        ),
        about=(
            "The languages are drawn at random, so the page estimates the result on other regular languages of this "
            "size.\n"
            f"Preset `machine` of `block-linear-rnn` with {BLOCK} states, {count} languages, final weights; no "
            "language, seed, step or setting is selected."
        ),
        notes=(
            f"The languages: task `random-language` with {NUM_STATES} states, {NUM_SYMBOLS} symbols and the seeds 0 "
            f"to {count - 1}. Each language has one net, with seed 0. Automata are minimal and drawn uniformly, "
            "without automata that are trivial or forget earlier symbols (see the page on random languages). "
            f"{about_monoids(count)}",
            "Intervals: Student's interval for the mean, which is approximate because scores cannot exceed 1, and "
            "Wilson's interval for the share of proved nets. The intervals are about this family of languages and one "
            "seed of training.",
            f"A net is trained for {recipe.steps:,} steps of {recipe.batch_size} strings of 39 or 40 symbols with the "
            f"answers to all prefixes. In all, it reads some {recipe.steps * recipe.batch_size * 39.5 / 1e6:.0f} "
            f"million symbols. The net has one block of {BLOCK} x {BLOCK} for each symbol, whose columns end as "
            "one-hot vectors. It has ten times as many states as the languages' automata.",
        ),
        cells=[Cell(f"{NUM_STATES} states, {NUM_SYMBOLS} symbols", "", tuple(runs))],
        plan=with_certificates(plan, scale),
        main=("row", "runs", "mean", "interval", "lowest", "solved", "proved", "chance"),
    )
