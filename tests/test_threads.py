"""What holds inside runs and nowhere else: one thread, and no numbers below float32's normal ones."""

import torch

from lengthwise.devices import one_thread


def test_settings_hold_inside_and_are_as_before_afterwards() -> None:
    small, threads = torch.full((3,), 1e-39), torch.get_num_threads()
    assert (small * 1.0).all()
    with one_thread():
        with one_thread():
            inner = small * 1.0
        outer = small * 1.0
        assert torch.get_num_threads() == 1
    assert (small * 1.0).all()
    assert torch.get_num_threads() == threads
    assert torch.equal(inner, outer)
    if torch.set_flush_denormal(False):  # False where the processor has no such mode
        assert not outer.any()
