"""Exact arithmetic in the field of z = e^(2 pi i / p): sums of fractions times powers of z."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

Sum = Sequence[Fraction]
"""A sum of fractions times powers of z = e^(2 pi i / p): the coefficients of 1, z, ..., z^(p-1). Different sums may be
the same number, because some sums are 0 (`is_zero`)."""

Term = tuple[int, int]
"""The number c z^e with z = e^(2 pi i / p), as an integer c and an exponent e."""


@cache
def cyclotomic(order: int) -> tuple[int, ...]:
    """Return the coefficients of the cyclotomic polynomial of this order, the highest power first.

    Example:
        >>> cyclotomic(8), min(cyclotomic(105))
        ((1, 0, 0, 0, 1), -2)
    """
    from sympy import Poly, Symbol, cyclotomic_poly

    return tuple(int(number) for number in Poly(cyclotomic_poly(order, Symbol("x"))).all_coeffs())


def is_zero(number: Sum, period: int) -> bool:
    """Return whether a `Sum` is 0, that is, whether the cyclotomic polynomial of order p divides the sum's polynomial.

    The coefficients of the sum belong to 1, z, ..., z^(p-1), with z = e^(2 pi i / p) for the period p.

    Example:
        >>> is_zero([Fraction(1)] * 5, 5), is_zero([Fraction(1), Fraction(1), *[Fraction(0)] * 3], 5)
        (True, False)
    """
    divisor = cyclotomic(period)
    remainder = list(reversed(number))
    for index in range(len(remainder) - len(divisor) + 1):
        factor = remainder[index]
        if factor:
            for offset, coefficient in enumerate(divisor):
                remainder[index + offset] -= factor * coefficient
    return not any(remainder)


def sign(number: Sum, period: int) -> int:
    """Return the exact sign of a `Sum`'s real part: if this part is not 0, intervals are refined until they exclude 0.

    Example:
        >>> sign([Fraction(-1), Fraction(2), Fraction(0)], 3), sign([Fraction(1)] * 3, 3)
        (-1, 0)
    """
    from mpmath import iv

    # A number plus its conjugate is twice its real part. An exact 0 is recognized first, because no interval proves it.
    mirrored = [number[power] + number[-power % period] for power in range(period)]
    if is_zero(mirrored, period):
        return 0
    # mpmath's precision is global, and restored at the end.
    before, bits = iv.prec, 64
    try:
        while True:
            iv.prec = bits
            terms = (
                iv.mpf(c.numerator) / c.denominator * iv.cos(2 * iv.pi * power / period)
                for power, c in enumerate(number)
            )
            total = sum(terms, iv.mpf(0))
            if total.a > 0 or total.b < 0:
                return 1 if total.a > 0 else -1
            bits *= 2
    finally:
        iv.prec = before


def null_vector(equations: Sequence[Sequence[Term]], period: int) -> list[Sum] | None:
    """Return the real l_j with sum 1 that solve all equations sum_j c_j z^(e_j) l_j = 0.

    Here z = e^(2 pi i / p), and the terms (c_j, e_j) of an equation are given. The result is None unless all solutions
    are multiples of one solution, and the sum of this solution is not 0.

    Each complex equation is two equations over the real field of c = 2 cos(2 pi / p). One equation has cosines as
    coefficients, and the other has sines divided by sin(2 pi / p). These coefficients are Chebyshev polynomials of c.

    Example:
        >>> null_vector([[(1, 0), (1, 1), (1, 2)]], 3)[0]  # 1 + z + z^2 = 0
        [Fraction(1, 3), Fraction(0, 1), Fraction(0, 1)]
    """
    from sympy.polys.matrices import DomainMatrix

    field, twice_cosines, sines = _real_field(period)
    rows: list[list[Any]] = []
    for equation in equations:
        for table in (twice_cosines, sines):
            row = [field.convert(c) * table[power % period] for c, power in equation]
            if any(row):
                rows.append(row)
    space = DomainMatrix(rows, (len(rows), len(equations[0])), field).nullspace()
    if space.shape[0] != 1:
        return None
    vector = space.to_dense().to_list()[0]
    total = sum(vector, field.zero)
    if not total:
        return None
    return [_as_sum(number / total, period) for number in vector]


@cache
def _real_field(period: int) -> tuple[Any, list[Any], list[Any]]:
    """Return the field of c = 2 cos(2 pi / p), and 2 cos(2 pi m / p) and sin(2 pi m / p) / sin(2 pi / p) for all m."""
    from sympy import QQ, Poly, Symbol, cos, minimal_polynomial, pi

    x = Symbol("x")
    field = QQ.alg_field_from_poly(Poly(minimal_polynomial(2 * cos(2 * pi / period), x), x))
    # For p = 1, 2, 3, 4 and 6, c is an integer.
    c = field([1, 0]) if field.mod.degree() > 1 else field.convert(round(2 * float(cos(2 * pi / period))))
    cosines, sines = [field.convert(2), c], [field.zero, field.one]
    for _ in range(2, period):
        cosines.append(c * cosines[-1] - cosines[-2])
        sines.append(c * sines[-1] - sines[-2])
    return field, cosines, sines


def _as_sum(number: Any, period: int) -> Sum:
    """Return a polynomial in c = z + 1/z as the coefficients of powers of z."""
    total = [Fraction(0)] * period
    for coefficient in number.to_list():  # Horner: times z + 1/z, plus the next coefficient
        total = [total[power - 1] + total[(power + 1) % period] for power in range(period)]
        total[0] += Fraction(int(coefficient.numerator), int(coefficient.denominator))
    return total
