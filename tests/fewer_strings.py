"""Certificates from fewer and shorter strings: recognition tasks need seconds to draw strings of 10,000 symbols."""

from collections.abc import Callable

import lengthwise.certification.searches as searches_module
import lengthwise.certification.strings as strings_module
import lengthwise.certification.traces as traces_module
import lengthwise.certification.verify as verify_module


def draw_fewer_strings(replace: Callable[[object, str, object], None] = setattr) -> None:
    """50 strings of 40 and of 500 symbols are drawn and asked for instead of 1,000 of up to 10,000.

    Of them ten of each length are read one by one instead of a hundred, and fewer of the shortest strings: each is a
    call of its own, and they took two fifths of a certificate.
    """
    for module, lengths, count in (
        (strings_module, "TESTED_LENGTHS", "NUM_STRINGS"),
        (verify_module, "MIN_LENGTHS", "MIN_STRINGS"),
    ):
        replace(module, lengths, (40, 500))
        replace(module, count, 50)
    replace(traces_module, "SUBSAMPLE_SIZE", 10)
    replace(searches_module, "MAX_SHORT", 8)
