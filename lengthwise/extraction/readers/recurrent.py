"""Machines read off recurrent models."""

from jaxtyping import Int64
from torch import Tensor

from lengthwise.extraction.base import READERS, Extraction, Reader, TraceCount, Traces, radii_of
from lengthwise.extraction.recurrent import compare_recurrent_traces, extract_recurrent
from lengthwise.models.base import RecurrentModel, SequenceModel


class RecurrentTraces(Traces):
    """The states of a recurrent model at all positions of strings."""

    def __init__(self, model: RecurrentModel, strings: Int64[Tensor, "B T"]) -> None:
        self.model = model
        self.strings = strings

    def compare(self, extraction: Extraction) -> TraceCount:
        return compare_recurrent_traces(self.model, extraction, self.strings)


@READERS.register("recurrent")
class RecurrentReader(Reader[RecurrentModel]):
    """Reads models that keep one state (`extract_recurrent`)."""

    @staticmethod
    def reads(model: SequenceModel) -> bool:
        return isinstance(model, RecurrentModel)

    def radii(self, strings: Int64[Tensor, "B T"]) -> list[float]:
        return radii_of(self.model.last_state(strings))

    def extract(self, radius: float) -> Extraction:
        return extract_recurrent(self.model, self.symbols, radius=radius)

    def traces(self, strings: Int64[Tensor, "B T"]) -> Traces:
        return RecurrentTraces(self.model, strings)
