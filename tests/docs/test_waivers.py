"""The files on the page about waivers and plans are valid, and mean what the page says."""

import re
import tomllib
from pathlib import Path

from diopi_test.run.plan import PlannedRun, read_plan
from diopi_test.waivers.rules import BADNESS, Waivers

PAGE = (Path(__file__).parents[2] / "docs" / "waivers.md").read_text("utf-8")
WAIVERS, PLAN = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_waivers_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    path.write_text(WAIVERS, "utf-8")
    waivers = Waivers.read([path])
    assert [entry.waiver.verdict for entry in waivers.entries] == [None, "crashed", None, "flaky"]
    assert waivers.retries_for("diopiNLLLossBackward[float32-mean]") == 3


def test_the_example_plan_is_valid(tmp_path: Path) -> None:
    (tmp_path / "waivers.toml").write_text(WAIVERS, "utf-8")
    path = tmp_path / "plan.toml"
    path.write_text(PLAN, "utf-8")
    release, mixed = read_plan(path)
    assert (release.vendor, release.data) == (str(tmp_path / "build/libdiopi_impl.so"), tmp_path / "baseline")
    assert (mixed.dtypes, mixed.shuffle) == (("float16", "bfloat16"), 7)


def test_every_key_and_verdict_is_named() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    keys = {key for text in (WAIVERS, PLAN) for tables in tomllib.loads(text).values() for key in tables[0]}
    assert (keys | set(PlannedRun.__dataclass_fields__) | set(BADNESS)) - named == set()
