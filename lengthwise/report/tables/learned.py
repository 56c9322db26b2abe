"""What was learned from examples, in sentences."""

from collections.abc import Iterator

from lengthwise.learning.learned import Learned

MAX_NAMED = 3


def learned_lines(learned: Learned) -> Iterator[tuple[str, str]]:
    """Name and sentence of each thing to say, the machine first."""
    counts, certificate = learned.counts, learned.certificate
    yield (
        "examples",
        f"{counts.num_rows:,} rows; left out: {counts.num_duplicates:,} duplicates, {counts.num_contradictory:,} that "
        f"contradict others, {counts.num_empty:,} empty",
    )
    alike = f"{learned.num_alike} of {len(learned.attempts)} models became it"
    yield "machine", f"{learned.machine.num_states} states, {len(learned.machine.symbols)} symbols; {alike}"
    for part, scores in learned.accuracies.items():
        shares = (
            f"{who} {score.num_correct / score.num_labels:.2%} of {score.num_labels:,}" for who, score in scores.items()
        )
        yield ("right where trained" if part == "trained on" else f"right, held out, {part}"), "; ".join(shares)
    if learned.num_contradictions:
        named = ", ".join(
            f"{one.string!r} is {one.answer}, not {one.label}" for one in learned.contradictions[:MAX_NAMED]
        )
        yield "contradicted", f"{learned.num_contradictions:,} labels, for example {named}"
    yield certificate.level, "of the net, that it is this machine at every length; nothing is proved of the world"
    yield from (("note", note) for note in learned.notes)
