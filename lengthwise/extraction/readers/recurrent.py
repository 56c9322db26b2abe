"""The reader of recurrent models."""

from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.extraction.base import READERS, Extraction, Reader, TraceCount, Traces, radii_of
from lengthwise.extraction.recurrent import all_states, compare_recurrent_traces, extract_recurrent
from lengthwise.models.base import RecurrentModel

MAX_KEPT_POSITIONS, MAX_KEPT_ELEMENTS = 1 << 14, 1 << 25
"""The largest numbers of positions and of elements (128 MB in float32) of states that are kept for the next extraction.

More states are computed again.
"""


class RecurrentTraces(Traces):
    """The states of a recurrent model at all positions of strings."""

    def __init__(self, model: RecurrentModel, strings: Int64[Tensor, "B T"]) -> None:
        self.model = model
        self.strings = strings
        self._kept: Float[Tensor, "B T D"] | None = None

    def compare(self, extraction: Extraction) -> TraceCount:
        # The same few strings are compared with the extraction of each radius, so their states are worth keeping.
        positions = self.strings.numel()
        is_small = positions <= MAX_KEPT_POSITIONS and (
            positions * self.model.initial_state(1).numel() <= MAX_KEPT_ELEMENTS
        )
        if self._kept is None and is_small:
            self._kept = all_states(self.model, self.strings)
        return compare_recurrent_traces(self.model, extraction, self.strings, self._kept)


@READERS.register("recurrent")
class RecurrentReader(Reader[RecurrentModel]):
    """A reader of models that keep one state (`extract_recurrent`)."""

    kind = RecurrentModel

    def radii(self, strings: Int64[Tensor, "B T"]) -> list[float]:
        return radii_of(self.model.last_state(strings))

    def extract(self, radius: float) -> Extraction:
        return extract_recurrent(self.model, self.symbols, radius=radius)

    def traces(self, strings: Int64[Tensor, "B T"]) -> Traces:
        return RecurrentTraces(self.model, strings)
