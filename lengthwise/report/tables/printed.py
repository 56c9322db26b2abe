"""The range of scores that round to an entry that a paper prints."""


def printed_range(published: str) -> tuple[float, float]:
    """Return the lowest mean and the highest maximum that round to a printed entry.

    An entry is "max / mean", a mean, or an error. If a number is above 1, it is a percentage, and its limits are
    returned as fractions.

    Example:
        >>> [[round(limit, 4) for limit in printed_range(entry)] for entry in ("100.0 / 89.3", "0.27")]
        [[0.8925, 1.0], [0.265, 0.275]]
    """
    highest, *rest = published.split(" / ")
    mean = rest[0] if rest else highest
    return _share(mean) - _half_unit(mean), min(1.0, _share(highest) + _half_unit(highest))


def as_share(text: str) -> float:
    """Return the number in a table's cell: a fraction for a percentage, and any other number as it is."""
    return float(text.removesuffix(" %")) / 100 if text.endswith("%") else float(text)


def _share(text: str) -> float:
    number = float(text)
    return number / 100 if number > 1 else number


def _half_unit(text: str) -> float:
    """Return half a unit of the last printed digit, as a fraction if the number is a percentage (`as_share`)."""
    mantissa, _, exponent = text.partition("e")
    decimals = len(mantissa.partition(".")[2])
    half: float = 0.5 * 10.0 ** (int(exponent or 0) - decimals)
    return half / 100 if float(text) > 1 else half
