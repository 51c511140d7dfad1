"""The runner can be built for other processors, and gives a vendor the same verdicts there."""

import shutil
import subprocess
from pathlib import Path

import pytest
from runners import ROOT, run_quietly
from sampling import sampled
from shared_folders import fill_once
from target_commands import Bundles, evaluate, run_here, select
from toolchain import VENDORS, WARNINGS

from diopi_proto import headers

FUNCTIONS = ("diopiAbs", "diopiAbsInp", "diopiAdd", "diopiArgmax", "diopiCat", "diopiDiv", "diopiNonzero", "diopiSum")
"""Functions of the vendor in C whose results do not depend on the mathematical functions of the C library."""

PROCESSORS = {
    "aarch64": "aarch64-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
    "arm": "arm-linux-gnueabihf",
}
"""The prefix of the cross compiler by the processor's name in QEMU."""


def require_tools(processor: str) -> None:
    """Skip the test if there is no cross compiler or no emulator."""
    for tool in ("cmake", f"{PROCESSORS[processor]}-gcc", f"qemu-{processor}"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} here")


def build_for(processor: str, folder: Path) -> None:
    """Build the runner and the vendor in C for a processor."""
    compiler = f"{PROCESSORS[processor]}-gcc"
    toolchain = ROOT / "runner" / "toolchains" / f"{PROCESSORS[processor]}.cmake"
    options = [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", "-DDIOPI_WERROR=ON", f"-DDIOPI_LIBRARY_FOLDER={folder}"]
    run_quietly(["cmake", "-S", str(ROOT), "-B", str(folder / "build"), *options])
    run_quietly(["cmake", "--build", str(folder / "build"), "--target", "diopi-runner"])
    sources = sorted(map(str, (VENDORS / "c").glob("*.c")))
    flags = ["-std=c11", "-D_GNU_SOURCE", *WARNINGS, "-O1", "-shared", "-fPIC", f"-I{headers.INCLUDE_DIR}"]
    run_quietly([compiler, *flags, *sources, "-lm", "-o", str(folder / "vendor.so")])


@pytest.mark.parametrize("processor", sampled(PROCESSORS, 1, slow=2))
def test_a_vendor_gets_the_same_verdicts_on_another_processor(
    processor: str, c_vendor: Path, tmp_path: Path, bundles: Bundles, tmp_path_factory: pytest.TempPathFactory
) -> None:
    require_tools(processor)
    folder = fill_once(tmp_path_factory, f"runner_{processor}", lambda folder: build_for(processor, folder))
    selection = select(FUNCTIONS)
    cases, results = bundles(*selection), tmp_path / "results.diopi"
    emulator = [f"qemu-{processor}", "-L", f"/usr/{PROCESSORS[processor]}"]
    command = [*emulator, str(folder / "build" / "diopi-runner"), str(cases), str(folder / "vendor.so")]
    subprocess.run([*command, "-o", str(results)], check=True, timeout=300)
    evaluated = evaluate(tmp_path, cases, results)
    direct = run_here(tmp_path, c_vendor, *selection)
    assert {name: case["verdict"] for name, case in evaluated.items()} == {
        name: case["verdict"] for name, case in direct.items()
    }
    assert "passed" in {case["verdict"] for case in evaluated.values()}
