"""CPU time of `memorize` for all binary words of one period, and the dimensions that it finds.

python benchmarks/memorize_time.py [--period 16] [--words NUMBER]

The words are all words up to rotation and renaming, or a random sample of them. Among periods up to 16, the last has
the most sets of frequencies and the largest linear programs.
"""

import argparse
import time
from collections import Counter
from statistics import median

import numpy as np

from lengthwise.constructions.memorization.memorize import memorize
from lengthwise.constructions.memorization.words import binary_words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--period", type=int, default=16)
    parser.add_argument("--words", type=int, help="the size of a random sample; all words by default")
    options = parser.parse_args()
    texts = [word.text for word in binary_words(options.period)]
    if options.words is not None:
        texts = np.random.default_rng(0).choice(texts, min(options.words, len(texts)), replace=False).tolist()
    memorize("01")  # imports
    seconds, dimensions = {}, Counter[int]()
    for text in texts:
        start = time.process_time()
        memorization = memorize(text)
        seconds[text] = time.process_time() - start
        assert memorization.lower == memorization.upper, text
        dimensions[memorization.upper] += 1
    slowest = max(seconds, key=seconds.__getitem__)
    print(
        f"{len(texts):,} binary words of period {options.period}: CPU seconds {median(seconds.values()):.2f} in the "
        f"median, {seconds[slowest]:.2f} at most ({slowest}); smallest dimensions: "
        + ", ".join(f"{d}: {count}" for d, count in sorted(dimensions.items()))
    )


if __name__ == "__main__":
    main()
