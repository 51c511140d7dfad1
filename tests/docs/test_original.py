"""The example in docs/original.md is translated as the page says, and the cases pass."""

import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from diopi_impl import find_vendor
from diopi_test.baseline.store import BaselineFile
from diopi_test.cli import main
from diopi_test.cli.original_words import WORDS
from diopi_test.execution.verdict import Verdict
from diopi_test.harness.run_case import run_case

PAGE = (Path(__file__).parents[2] / "docs" / "original.md").read_text("utf-8")


def test_the_example(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", PAGE, re.DOTALL):
        Path(name).write_text(text, "utf-8")
    command = re.search(r"^    diopi-test (import-config .*)$", PAGE, re.MULTILINE)
    shown = re.search(r"<!-- import -->\n```\n(.*?)```", PAGE, re.DOTALL)
    assert command and shown
    done = CliRunner().invoke(main, command[1].split())
    assert done.exit_code == 1
    assert done.output == shown[1]
    vendor = find_vendor("jax_cpu")
    ended = {}
    for path in Path("imported/smoke").glob("*.h5"):
        file = BaselineFile(path)
        for label in file.labels:
            with vendor.open_device() as device:
                ended[f"{path.stem}[{label}]"] = run_case(vendor, device, file.case(label)).verdict
    assert set(ended.values()) == {Verdict.passed} and "diopiConvolution2d[float16-conv_2d-0]" in ended


def test_every_option_of_the_original_suite_has_a_line() -> None:
    rows = set(re.findall(r"^\| `(--\w+)", PAGE, re.MULTILINE))
    assert rows == set(WORDS)
