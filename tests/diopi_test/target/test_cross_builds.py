"""The runner can be built for other processors. It gives a vendor the same verdicts there, in a root without Python."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from runners import ROOT, run_quietly
from sampling import sampled
from shared_folders import fill_once
from target_commands import FUNCTIONS_IN_C, Bundles, compare_findings, evaluate, run_here, select
from toolchain import VENDORS, WARNINGS

from diopi_proto import headers

PROCESSORS = {
    "aarch64": "aarch64-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
    "arm": "arm-linux-gnueabihf",
}
"""The prefix of the cross compiler by the processor's name in QEMU."""


def find_emulator(processor: str) -> str:
    """Return the path of the emulator of a processor; empty if there is none."""
    return shutil.which(f"qemu-{processor}-static") or shutil.which(f"qemu-{processor}") or ""


def require_tools(processor: str) -> None:
    """Skip the test if there is no cross compiler or no emulator."""
    for tool in ("cmake", f"{PROCESSORS[processor]}-gcc", "unshare"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} here; docs/targets.md names the packages")
    if not find_emulator(processor):
        pytest.skip(f"there is no qemu-{processor}-static here; it is in the package qemu-user-static")


def build_root(processor: str, folder: Path) -> None:
    """Build the runner and the vendor in C for a processor, in a root that also has the C library and the emulator."""
    root, prefix = folder / "root", PROCESSORS[processor]
    toolchain = ROOT / "runner" / "toolchains" / f"{prefix}.cmake"
    options = [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", "-DDIOPI_WERROR=ON", f"-DDIOPI_LIBRARY_FOLDER={folder}"]
    run_quietly(["cmake", "-S", str(ROOT), "-B", str(folder / "build"), *options])
    run_quietly(["cmake", "--build", str(folder / "build"), "--target", "diopi-runner"])
    shutil.copytree(f"/usr/{prefix}/lib", root / "lib", ignore=lambda _, names: [n for n in names if ".so" not in n])
    shutil.copy(find_emulator(processor), root / "emulator")
    shutil.copy(folder / "build" / "diopi-runner", root)
    sources = sorted(map(str, (VENDORS / "c").glob("*.c")))
    flags = ["-std=c11", "-D_GNU_SOURCE", *WARNINGS, "-O1", "-shared", "-fPIC", f"-I{headers.INCLUDE_DIR}"]
    run_quietly([f"{prefix}-gcc", *flags, *sources, "-lm", "-o", str(root / "vendor.so")])


def emulate(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of another processor in a root, with no other file of this machine."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", *user, f"--root={root}", "/emulator", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def run_emulated(processor: str, root: Path, cases: Path, results: Path) -> None:
    """Run a bundle with the vendor in C in the root of a processor; skip the test if it can't be a root here."""
    if (done := emulate(root, "--version")).returncode != 0:
        pytest.skip(f"qemu-{processor} can't be executed in a root of its own: {done.stderr.strip()}")
    shutil.copy(cases, root / "cases.diopi")
    done = emulate(root, "/diopi-runner", "/cases.diopi", "/vendor.so", "-o", "/results.diopi")
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copy(root / "results.diopi", results)


def select_part(part: str) -> Sequence[str]:
    """Return the options that select a part of the smoke cases: those of some functions, or all of them."""
    return select(FUNCTIONS_IN_C) if part == "some" else []


@pytest.mark.parametrize("part", ["some", pytest.param("all", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("processor", sampled(PROCESSORS, 1, slow=2))
def test_a_vendor_gets_the_same_verdicts_on_another_processor(
    part: str,
    processor: str,
    c_vendor: Path,
    tmp_path: Path,
    bundles: Bundles,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    require_tools(processor)
    folder = fill_once(tmp_path_factory, f"root_{processor}", lambda folder: build_root(processor, folder))
    root = shutil.copytree(folder / "root", tmp_path / "root")
    selection = select_part(part)
    cases, results = bundles(*selection), tmp_path / "results.diopi"
    run_emulated(processor, root, cases, results)
    evaluated = evaluate(tmp_path, cases, results)
    run_here(tmp_path, c_vendor, *selection)
    assert not list(root.rglob("*python*"))
    compare_findings(tmp_path, ("verdict", "message", "error_code"))  # errors differ: other mathematical functions
    assert "passed" in {case["verdict"] for case in evaluated.values()}
