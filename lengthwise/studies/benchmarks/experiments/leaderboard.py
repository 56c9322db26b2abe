"""The leaderboard as a benchmark."""

from lengthwise.studies.benchmarks.benchmark import BENCHMARKS, Benchmark, references
from lengthwise.studies.leaderboard.experiments import leaderboard as study
from lengthwise.studies.leaderboard.experiments.published import PUBLISHED


@BENCHMARKS.register("leaderboard")
def leaderboard() -> Benchmark:
    """33 regular tasks by our own protocol: final answers or answers to all prefixes, 1.3 million symbols for a net."""
    return Benchmark(
        title="Leaderboard: regular tasks by one protocol",
        source="The package's own protocol; published entries are from Chi et al., Grazzi et al. and Terzić et al.",
        bibtex=references("chi2023transformer", "grazzi2025unlocking", "terzic2025structured"),
        protocol=(
            f"{study.STEPS:,} steps of {study.BATCH_SIZE} strings of 1 to 40 symbols, with short lengths first, and "
            "measurements at 41-500 symbols. Scores are means over three seeds, for final weights. Published entries "
            "have other budgets, and most are the best of several checkpoints, learning rates or seeds.",
        ),
        experiment="leaderboard",
        entrants=study.ENTRANTS,
        make=study.leaderboard_of,
        published={study.LAST: PUBLISHED},
        rates=study.rates_of,
    )
