import io
import logging

import pytest
from rich.console import Console

from deephash_pipeline import progress


def in_a_log() -> Console:
    return Console(file=io.StringIO(), force_terminal=False)


def test_items_pass_through_in_order_with_and_without_a_terminal() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True)
    for console in (terminal, in_a_log()):
        assert list(progress.track(range(5), "counting", 5, console)) == [0, 1, 2, 3, 4]


def test_a_log_gets_a_line_now_and_then(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    with caplog.at_level(logging.INFO, "deephash_pipeline"):
        list(progress.track(range(3), "quick", 3, in_a_log()))
        assert caplog.messages == []
        monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
        list(progress.track(range(3), "slow", 3, in_a_log()))
    assert caplog.messages == ["slow: 1 of 3", "slow: 2 of 3", "slow: 3 of 3"]
