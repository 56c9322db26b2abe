"""What pages on words say first is what their tables say."""

from lengthwise.constructions.memorization.contracting import FeedbackBounds
from lengthwise.studies.memorization.experiments import memorization, standard
from lengthwise.studies.memorization.experiments.feedback import Smallest
from lengthwise.studies.memorization.pages.feedback import feedback_page
from lengthwise.studies.memorization.pages.memorization import memorization_page
from lengthwise.studies.memorization.pages.standard import standard_page


def test_words_are_counted_by_their_dimensions() -> None:
    words = [
        Smallest("01", 1, 1, FeedbackBounds(1, 1)),
        Smallest("001", 2, 1, FeedbackBounds(2, 2)),
        Smallest("0011", 2, 2, FeedbackBounds(2, 2)),
        Smallest("0010111", 2, 1, FeedbackBounds(3, 5)),
    ]
    stated = feedback_page(words, "page").headline
    assert "can repeat 3 of the 4 words indefinitely" in stated
    assert stated.endswith("the smallest dimension is 1 for 1 word, 2 for 2 words and 3 to 5 for 1 word.")


def test_standard_nets_are_counted_next_to_linear_ones() -> None:
    size = standard.SIZES["small"]._replace(words=("001",), dimensions=range(1, 3), seeds=8, longest=4_800)
    counts = {
        "linear, W_x = 0": ((1, 0), (5, 2)),
        "linear, W_x learned": ((3, 1), (8, 8)),
        "tanh, W_x = 0": ((0, 0), (6, 4)),
        "tanh, W_x learned": ((7, 1), (8, 8)),
    }
    rows = [
        standard.Success("001", kind, dimension, 2, *of_kind[dimension - 1])
        for kind, of_kind in counts.items()
        for dimension in size.dimensions
    ]
    assert standard_page(standard.Standard(size, rows), "page").headline == (
        "Without feedback of their answers, 1 of 8 linear RNNs learn to repeat their word in fewer dimensions than "
        "d_min, the smallest dimension that is enough in theory.\n"
        "At d_min, also without feedback, 5 of 8 linear nets are right at the first 48 symbols, and 2 of these 5 at "
        "the first 4,800. With tanh and without feedback, 0 of 8 nets are right below d_min. At d_min, 6 of 8 nets "
        "with tanh are right, and 4 of these 6 at the first 4,800 symbols.\n"
        "If nets read their own answers, 3 of 8 linear nets and 7 of 8 nets with tanh are right below d_min."
    )


def test_nets_that_learn_their_words_are_those_of_the_sections() -> None:
    page = memorization_page(memorization.study(memorization.SIZES["smoke"]), "page")
    text = "\n".join(page.sections)
    below, at, above = (
        text.split("- W_x = 0: ")[1].split(f" {side}")[0].split(", ")[-1] for side in ("below", "at", "above")
    )
    assert f"Without feedback of their answers (W_x = 0), {below} linear RNNs learn to repeat" in page.headline
    assert f"At d_min, {at} nets learn their word, and {above} above d_min." in page.headline
    fed = text.split("- W_x learned: ")[1].split(" below")[0]
    assert f"If nets read their own answers, {fed} nets below d_min learn their word." in page.headline
    last = text.split("### Totals")[1].split("## ")[0].strip().split("\n- ")[-1]
    assert last in page.headline
    assert last.endswith(" at the first 16.")
