"""The average score of a model over randomly drawn regular languages."""

from lengthwise.automata.monoid import bounded_monoid
from lengthwise.automata.random_languages import random_language
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, ScaledSpecs, with_certificates
from lengthwise.runs.spec import Settings

NUM_STATES, NUM_SYMBOLS, BLOCK = 6, 2, 64
"""The numbers of states and symbols of the languages, and the number of states of the net.

With the 128 states of preset `machine`, training would take several times as long.
"""

MAX_ELEMENTS = 30_000
"""The largest transition monoid, in elements, whose size is computed exactly."""


def about_monoids(count: int) -> str:
    """Return a sentence on the sizes of the transition monoids of the first `count` random languages.

    A net that merges the parts of a string has to learn the elements of the language's transition monoid.

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
    """Train a linear RNN of one dense block on 50 random languages: mean accuracy and share of proved nets."""
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
            "On {cells[*][*][solved]} randomly drawn regular languages, a linear RNN with one dense block makes no "
            "error on random strings at the scored lengths.\n"
            "Nets that are proved right at every length: {cells[*][*][proved]}. In brackets is a 95 % interval for "
            "the share of such nets over all languages of this size."
        ),
        about=(
            "The languages are drawn at random, so the numbers estimate the result on other random languages of this "
            "size.\n"
            f"The nets are trained with preset `machine` of `block-linear-rnn`, with {BLOCK} states, one net for each "
            f"of {count} languages. Final weights are measured, and no language, seed, step or setting is selected."
        ),
        notes=(
            f"The languages: task `random-language` with {NUM_STATES} states, {NUM_SYMBOLS} symbols and the seeds 0 "
            f"to {count - 1}. Each language has one net, with seed 0. Automata are drawn uniformly among the minimal "
            "automata that are not trivial and do not forget earlier symbols (see [random "
            f"languages](../random-languages.md)). {about_monoids(count)}",
            "Intervals: Student's interval for the mean, which is approximate because scores cannot exceed 1, and "
            "Wilson's interval for the share of proved nets. The intervals are about this family of languages and one "
            "seed of training.",
            f"A net is trained for {recipe.steps:,} steps of {recipe.batch_size} strings of 39 or 40 symbols with the "
            "answers to all prefixes. Over all steps, it reads about "
            f"{recipe.steps * recipe.batch_size * 39.5 / 1e6:.0f} million symbols. For each symbol, the net has one "
            f"transition matrix of {BLOCK} x {BLOCK} (a dense block), whose columns become one-hot vectors in "
            "training. So the net has about ten times as many states as the automata of the languages.",
        ),
        cells=[Cell(f"{NUM_STATES} states, {NUM_SYMBOLS} symbols", "", tuple(runs))],
        plan=with_certificates(plan, scale),
        main=("row", "runs", "mean", "interval", "lowest", "solved", "proved", "chance"),
    )
