"""Certificates from fewer and shorter strings: recognition tasks need seconds to draw strings of 10,000 symbols."""

from collections.abc import Callable

import lengthwise.certification.attacks.attack as attack_module
import lengthwise.certification.searches as searches_module
import lengthwise.certification.traces as traces_module
import lengthwise.certification.verify as verify_module

LENGTHS = (40, 120)
"""The lengths of these strings, in symbols: nets that read symbol by symbol take four times as long for 500."""

NUM_STRINGS = 24
"""The number of strings of each length."""

NUM_ALONE = 4
"""The number of strings of each length that are read one by one."""


def draw_fewer_strings(
    replace: Callable[[object, str, object], None] = setattr, lengths: tuple[int, ...] = LENGTHS
) -> None:
    """Draw and require `NUM_STRINGS` strings of each of a few lengths instead of 1,000 of up to 10,000 symbols.

    `NUM_ALONE` strings of each length are read one by one instead of 100, and fewer of the shortest strings. Each of
    them is a call of its own, and ten of each length took a third of a certificate.
    """
    for module, name, count in (
        (traces_module, "TESTED_LENGTHS", "NUM_STRINGS"),
        (verify_module, "MIN_LENGTHS", "MIN_STRINGS"),
    ):
        replace(module, name, lengths)
        replace(module, count, NUM_STRINGS)
    replace(traces_module, "SUBSAMPLE_SIZE", NUM_ALONE)
    replace(searches_module, "MAX_SHORT", 4)
    replace(attack_module, "MAX_SYMBOLS_IN_CERTIFY", 5_000)
