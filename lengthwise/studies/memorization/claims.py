"""The claims of the note on memorization."""

from lengthwise.studies.claims.claim import CLAIMS, Claim, Paper, Stated, TableNumber, Verdict

_CLOSED, _RATIONAL, _DIMENSION, _GENERATOR = (
    "tests/constructions/memorization/test_closed_forms.py",
    "tests/constructions/memorization/test_rational.py",
    "tests/constructions/memorization/test_smallest_dimension.py",
    "tests/models/test_linear_rnn_generator.py",
)


def _stated(claim: str, verdict: Verdict, test: str, why: str = "", section: str = "") -> Claim:
    return Claim(section, claim, Stated(verdict, "memorization.md", test, why=why))


_STANDARD = "results/rnn-memorization-standard.md"
_PERIODIC, _SMALL = "(s_1^a_1 ... s_k^a_k)^+", "How small can we make d?"

_CLAIMS = (
    Claim(
        "Introduction",
        "An RNN that is trained on a string long enough ends by saying only that string.",
        Stated(
            "not decided",
            _STANDARD,
            command="lengthwise reproduce rnn-memorization/standard",
            numbers=tuple(
                TableNumber(_STANDARD, "lasting", (f"{kind}, {feedback}", "above d_min"), "Success against dimension")
                for kind in ("tanh", "linear")
                for feedback in ("W_x = 0", "W_x learned")
            ),
            why=(
                "nets that repeat for 4,800 symbols what they learned from 48: tanh without and with feedback, linear "
                "ones; dimensions above the smallest, 1,000 steps"
            ),
        ),
    ),
    _stated("Memorization takes no nonlinearity.", "reproduced", _CLOSED, section="Introduction"),
    _stated(
        "The net: linear state, argmax, its own answer as input.", "reproduced", _GENERATOR, section="Introduction"
    ),
    _stated("START leads from h_0 = 0 to the first state.", "reproduced", _GENERATOR, section="Introduction"),
    _stated(
        "Small changes make it work for a standard RNN.",
        "reproduced",
        _GENERATOR,
        "ReLU exactly; tanh for long, not indefinitely",
        "Introduction",
    ),
    _stated("0^a 1^b with d = 2, by a rotation.", "reproduced", _CLOSED, section="(0^a 1^b)^+"),
    _stated(
        "Figures 1 and 2: polygon and line.",
        "reproduced",
        "tests/report/test_memorization_chart.py",
        section="(0^a 1^b)^+",
    ),
    _stated("Any string of period d with d dimensions.", "reproduced", _CLOSED, "d - 1 suffice", _PERIODIC),
    _stated("END as last symbol makes the string finite.", "reproduced", _CLOSED, section=_PERIODIC),
    _stated(
        "Under its action the cycle sends h_1 to the second unit vector.",
        "contradicted",
        _CLOSED,
        "it goes to the last",
        _PERIODIC,
    ),
    _stated("Powers of the cycle coprime to d work, too.", "reproduced", _CLOSED, section=_PERIODIC),
    _stated(
        "There are phi(n) of them, n the number of symbols.",
        "contradicted",
        _CLOSED,
        "phi(d), and all (d - 1)! cycles work",
        _PERIODIC,
    ),
    _stated("phi(n) is at least sqrt(n / 2).", "reproduced", _CLOSED, section=_PERIODIC),
    _stated(
        "d = 2 is the least for 0^a 1^b.",
        "contradicted",
        _DIMENSION,
        "for p = 2 one dimension suffices; from p = 3 on it is",
        _SMALL,
    ),
    _stated(
        "If W_h^p = 1 the minimal polynomial divides x^p - 1, which is a product of cyclotomic ones.",
        "reproduced",
        _RATIONAL,
        "tried for p up to 30",
        _SMALL,
    ),
    _stated("Their coefficients are -1, 0 and 1.", "contradicted", _CLOSED, "that of 105 has -2", _SMALL),
    _stated("No rational 3 x 3 matrix has order 8.", "reproduced", _RATIONAL, section=_SMALL),
    _stated("Which dimensions allow rational matrices of order p.", "reproduced", _RATIONAL, "psi(p)", _SMALL),
    _stated(
        "Over the reals x^p - 1 is a product of quadratic polynomials.",
        "contradicted",
        _CLOSED,
        "only for even p: one of odd degree has a linear factor",
        _SMALL,
    ),
    Claim(
        _SMALL,
        "In general d = 2 is the best to hope for.",
        Stated(
            "reproduced",
            "memorization.md",
            _DIMENSION,
            numbers=(TableNumber("memorization.md", "d_min: how many words", ("12",)),),
            why="of period 12, d and how many words need it: a bound, from period 3 on, that few words reach",
        ),
    ),
)


@CLAIMS.register("memorization")
def memorization() -> Paper:
    """Linear RNNs that repeat a word."""
    return Paper('"update on rnn memorization" (November 20, 2023)', _CLAIMS)
