"""Signals that ask a run to stop."""

import signal

import pytest

from lengthwise.runs.signals import Interrupted, stop_on_interrupt

pytestmark = pytest.mark.usefixtures("handled_signals")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_requests_and_the_second_insists(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_interrupt() as stop_requested:
        assert not stop_requested()
        signal.raise_signal(number)
        assert stop_requested()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_whoever_waits_is_told_once() -> None:
    heard = []
    with stop_on_interrupt(lambda: heard.append(1)):
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert heard == [1]


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_interrupt() as stop_requested:
            signal.raise_signal(signal.SIGHUP)
            assert not stop_requested()
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, None])
def test_who_is_stopped_learns_by_which_signal(number: signal.Signals | None) -> None:
    def work() -> None:
        with stop_on_interrupt():
            if number is not None:
                signal.raise_signal(number)
            raise Interrupted("stopped at step 1")

    with pytest.raises(Interrupted) as stopped:
        work()
    assert stopped.value.signal_number == number
