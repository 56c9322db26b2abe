"""Published entries for models and tasks of the leaderboard, with their protocols."""

from collections.abc import Iterator, Mapping

from lengthwise.experiment import Printed
from lengthwise.studies.languages import LANGUAGES

_CHI = (
    "Chi et al. (2023): best / mean over 3 seeds and several learning rates. Strings have up to 40 symbols in "
    "training, and 41-500 in the test."
)
_CHI_RECOGNITION = (
    "Chi et al. (2023): best / mean over 3 seeds and several learning rates. Strings have up to 50 symbols in "
    "training, and 51-100 in the test. The test includes odd lengths, and strings outside the language are uniform."
)
_GRAZZI = (
    "Grazzi et al. (2025): best (median) of 3 seeds, on a scale on which 1 is always right and 0 is chance. Strings "
    "have 3-40 symbols in training, and 40-256 in the test."
)
_PERCENT = (
    "Terzić et al. (2025), the paper on PD-SSM: mean (standard deviation) of 5 seeds, in percent. Nets have two layers "
    "of width 128 or 512. The checkpoint of each net was chosen by its accuracy on the test strings. Strings have 3-40 "
    "symbols in training, and 40-256 in the test."
)
_WINDOWS = {_CHI_RECOGNITION: (51, 100), _GRAZZI: (41, 256), _PERCENT: (41, 256)}
"""The first and last length of each protocol that does not include all of our lengths, in symbols."""

_CITATIONS = {
    _CHI: "chi2023transformer",
    _CHI_RECOGNITION: "chi2023transformer",
    _GRAZZI: "grazzi2025unlocking",
    _PERCENT: "terzic2025structured",
}
"""The BibTeX key of the paper of each protocol."""

ARITHMETIC = "Modular Arithmetic"
LEADING_PLUS = "Arithmetic, leading +"
EQUALS = "Arithmetic, = at the end"

_GRAZZI_ROWS = ("Parity", EQUALS)
_GRAZZI_TABLE: Mapping[str, tuple[str, ...]] = {
    "sLSTM": ("1.000 (1.0)", ".787 (.124)"),
    "mLSTM": (".087 (.018)", ".040 (.027)"),
    "Transformer": (".022 (.003)", ".031 (.018)"),
    "Mamba [0, 1]": (".000 (.000)", ".095 (.066)"),
    "Mamba [-1, 1]": ("1.000 (1.0)", ".241 (.214)"),
    "DeltaNet [0, 1]": (".017 (.010)", ".314 (.214)"),
    "DeltaNet [-1, 1]": ("1.000 (.999)", ".971 (.826)"),
}

_PERCENT_ROWS = ("Cycle Navigation", "Even Pairs", EQUALS, "Parity")
_PERCENT_TABLE: Mapping[str, tuple[str, ...]] = {
    "LSTM": ("100", "100", "99.9 (.1)", "100"),
    "sLSTM": ("32.5", "100", "27.7", "100"),
    "mLSTM": ("52.4", "99.9", "28.8", "53.0"),
    "Transformer": ("24.4", "90.4 (10.4)", "23.6", "52.2"),
    "Mamba [0, 1]": ("48.4", "100", "33.1", "54.2"),
    "DeltaNet [0, 1]": ("49.8", "100", "42.2", "57.8"),
    "DeltaNet [-1, 1]": ("46.7 (6.1)", "100", "66.4 (8.8)", "97.7 (2.0)"),
    "linear CDE": ("99.8 (.2)", "85.9 (11.3)", "54.0 (12.5)", "95.3 (3.9)"),
    "linear CDE, low rank": ("81.1 (16.6)", "100", "68.3 (19.3)", "91.0 (18)"),
    "PD-SSM": ("99.5 (.7)", "99.7 (.3)", "96.2 (3.4)", "99.9 (.1)"),
}


def _entries() -> Iterator[tuple[str, str, str, str]]:
    """Yield row, column, published entry and protocol."""
    for language in LANGUAGES:
        row = LEADING_PLUS if language.row == ARITHMETIC else language.row
        protocol = _CHI_RECOGNITION if row.startswith(("D_", "Tomita")) else _CHI
        printed = language.published
        columns = {"RNN": printed.rnn, "Transformer": printed.transformer, "RegularGPT": printed.chunks_of_2}
        yield from ((row, column, entry, protocol) for column, entry in columns.items() if entry)
    for protocol, rows, table in ((_GRAZZI, _GRAZZI_ROWS, _GRAZZI_TABLE), (_PERCENT, _PERCENT_ROWS, _PERCENT_TABLE)):
        for column, entries in table.items():
            yield from ((row, column, entry, protocol) for row, entry in zip(rows, entries, strict=True))


def _by_cell() -> dict[tuple[str, str], tuple[Printed, ...]]:
    by_cell: dict[tuple[str, str], tuple[Printed, ...]] = {}
    for row, column, entry, protocol in _entries():
        printed = Printed(entry, protocol, _WINDOWS.get(protocol), protocol == _GRAZZI, _CITATIONS[protocol])
        by_cell[row, column] = (*by_cell.get((row, column), ()), printed)
    return by_cell


PUBLISHED: Mapping[tuple[str, str], tuple[Printed, ...]] = _by_cell()
"""The published entries by row and column, for nets trained on final answers.

The Transformer of Chi et al. is not causal and has five layers and relative positions. The linear CDEs are from the
paper on SLiCE (blocks of four, rank four), with entries from the table in the paper on PD-SSM.
"""

NOTES = (
    "The Transformer in the published code of Chi et al. reads in both directions, and has five layers and relative "
    "positions. The paper on LDRU reports 100 % on 18 of 21 languages up to 500 symbols, for nets that are trained "
    "on up to 40 symbols. Its arithmetic is evaluated from left to right. On the other three languages, LDRU needed "
    "longer training strings.",
    "Here, DeltaNet, Mamba, sLSTM and mLSTM have one layer and no short convolution (setting `conv`). The published "
    "models have two or three layers, and most have a convolution of width 4. The published DeltaNet and sLSTM also "
    "have a feed-forward layer after each layer.",
    "*Linear CDE* is BD-SLiCE (blocks of four) in the paper on SLiCE, and *linear CDE, low rank* is DPLR-SLiCE (rank "
    "four). Our net of low rank has the transitions of the equation in this paper, I + (sum_i u_i (D_i + U_i V_i^T)) / "
    "40. The published numbers come from the published code, which has I + (sum_i u_i D_i) / 40 + (sum_i u_i U_i) "
    "(sum_j u_j V_j)^T / 40^2. This form is setting `structure` `low-rank-product`; it was not measured.",
    "Published numbers of nets that we did not run are not shown. These nets are gated DeltaNet and gated "
    "DeltaProduct, complex diagonal recurrences, and nets with four Householder matrices on groups. Numbers for group "
    "tasks with other generators are not shown either.",
)
