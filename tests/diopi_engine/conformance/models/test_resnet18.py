"""`benchmarks/engine_resnet18.py` runs with a narrow ResNet-18 and small pictures."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

SCRIPT = Path(__file__).parents[4] / "benchmarks" / "engine_resnet18.py"

LINE = re.compile(r"batch (\d+): \S+ ms, \S+ for a picture; largest error (\S+) of its budget")


@pytest.mark.exhaustive  # six seconds; test_networks.py runs the same code on smaller networks
def test_batches_are_within_their_budgets(
    library: Path, locks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    spec = importlib.util.spec_from_file_location("engine_resnet18", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    options = ["--width", "4", "--size", "32", "--classes", "10", "--library", str(library)]
    assert script.main(options) == 0
    matched = [LINE.fullmatch(line) for line in capsys.readouterr().out.splitlines()]
    assert [match and match[1] for match in matched] == ["1", "7", "64"]
    assert all(match is not None and 0 < float(match[2]) < 1 for match in matched)
