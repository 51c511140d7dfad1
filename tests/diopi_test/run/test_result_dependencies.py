"""The stored dependencies between cases of different functions are those of the cases."""

from __future__ import annotations

from pathlib import Path

from diopi_test.run import result_dependencies
from diopi_test.run.result_dependencies import FILE, render_dependencies


def test_the_stored_dependencies_are_current() -> None:
    stored = Path(result_dependencies.__file__).with_name(FILE).read_text("utf-8")
    assert stored == render_dependencies(), "run `python -m diopi_test refresh`"
    assert '"diopiSoftmaxBackward": [\n  "diopiSoftmax"\n ]' in stored
