"""Build the seeded vendor and find out which cases detect its defects.

The seeded vendor (`tests/vendors/seeded`) is a compiled library whose operators call PyTorch. It is correct until one
of its defects is chosen. `python benchmarks/seeded_defects.py` runs the cases of level full, and those of level large
for defects that no case detects. For each operator and defect, it prints the first case that fails. With `--functions`,
it runs only the cases of some operators.

The figures in docs/defects.md were obtained in this way. The command needs a C++ compiler, PyTorch, and 3 GB of memory.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import final

from diopi_impl.native.vendor import NativeVendor
from diopi_proto.headers import INCLUDE_DIR
from diopi_proto.interface import lookup
from diopi_test.cases.case import CaseClass
from diopi_test.cases.selection import select_cases
from diopi_test.execution.aliased import aliased_labels, make_aliased_case
from diopi_test.execution.evaluated import DerivationError
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.run_case import run_case
from lib_rt import library as runtime_library

SOURCES = Path(__file__).parents[1] / "tests" / "vendors"
"""The folder of the vendor's sources; `cpp/device.cpp` is the device of another vendor in C++."""

SHARED_BY: Mapping[str, Sequence[str]] = {
    "isProductWrong": ("diopiMm", "diopiBmm", "diopiMatmul", "diopiLinear"),
    "corrupt": ("diopiMm", "diopiBmm", "diopiMatmul", "diopiLinear"),
    "isConvolutionWrong": ("diopiConvolution2d",),
    "storeRows": ("diopiSoftmax", "diopiLogSoftmax"),
}
"""By the name of a C++ function that several operators use, these operators."""

LEVELS = ("full", "large")
"""The levels whose cases run, in order."""


@final
@dataclass(frozen=True, kw_only=True)
class Detection:
    """What the cases show about a defect in an operator.

    Attributes:
        function: the name of the operator.
        defect: the name of the defect.
        level: the level of the first case that failed; empty if no case failed.
        label: the label of this case.
        is_smoke: whether this case belongs to level smoke, too.
    """

    function: str
    defect: str
    level: str = ""
    label: str = ""
    is_smoke: bool = False

    def __str__(self) -> str:
        """Return a line of text with the defect and the case."""
        if not self.level:
            return f"{self.function}: {self.defect} is detected by no case"
        level = "smoke" if self.is_smoke else self.level
        return f"{self.function}: {self.defect} is detected by {self.label} of level {level}"


def build_vendor(folder: Path) -> Path:
    """Compile the vendor in a folder and return the path of the library."""
    from torch.utils.cpp_extension import include_paths, library_paths

    library, runtime, torch_libraries = folder / "libdiopi_impl.so", Path(runtime_library.path), library_paths()[0]
    sources = [*sorted((SOURCES / "seeded").glob("*.cpp")), SOURCES / "cpp" / "device.cpp"]
    # All sources are one unit, because the headers of PyTorch take a minute.
    unit = folder / "all.cpp"
    unit.write_text("".join(f'#include "{source}"\n' for source in sources))
    command = ["c++", "-std=c++20", "-fPIC", "-shared", str(unit), "-o", str(library), f"-I{INCLUDE_DIR}"]
    command += [option for path in include_paths() for option in ("-isystem", path)]
    command += [f"-L{torch_libraries}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{torch_libraries}"]
    command += [str(runtime), f"-Wl,-rpath,{runtime.parent}"]
    subprocess.run(command, check=True)
    return library


def read_defects() -> Mapping[str, Sequence[str]]:
    """Return the names of the defects in the sources, by the name of the operator."""
    defects: dict[str, list[str]] = {}
    for source in sorted((SOURCES / "seeded").glob("*.cpp")):
        functions: Sequence[str] = ()
        for line in source.read_text("utf-8").splitlines():
            if match := re.match(r"diopiError_t (diopi\w+)\(|static \S+ (\w+)\(", line):
                functions = (match[1],) if match[1] else SHARED_BY.get(match[2], ())
            for defect in re.findall(r'seeded\("([\w-]+)"\)', line):
                for function in functions:
                    defects_of_function = defects.setdefault(function, [])
                    defects_of_function.extend([defect] * (defect not in defects_of_function))
    return defects


def compute_cases(function: str, level: str) -> Iterator[BaselineCase]:
    """Yield the computed cases of a function at a level; level full includes the cases of class `aliased`."""
    prototype = lookup(function)
    stored: list[BaselineCase] = []
    for case in select_cases(function, level):
        if not case.is_giant:
            stored.append(compute_baseline_case(prototype, case))
            yield stored[-1]
    if level != "full":
        return
    by_label = {case.label: case for case in stored}
    for label, base in aliased_labels(prototype, stored):
        with suppress(DerivationError):
            yield make_aliased_case(by_label[base], label, prototype)


@final
class SeededVendor:
    """The seeded vendor in this process.

    Args:
        library: the path of the library.
    """

    def __init__(self, library: Path) -> None:
        self._vendor = NativeVendor(library)
        self._choose = ctypes.CDLL(str(library)).chooseSeededDefect
        self._choose.argtypes = [ctypes.c_char_p]

    def run(self, case: BaselineCase, defect: str | None) -> Outcome:
        """Return the outcome of a case on the vendor with a defect, or without a defect if this is None."""
        self._choose(None if defect is None else defect.encode())
        with self._vendor.open_device() as device:
            return run_case(self._vendor, device, case)

    def detect(self, function: str, defects: Sequence[str]) -> Iterator[Detection]:
        """Yield the first case that detects each defect of an operator.

        Cases of class `open`, and cases that the correct vendor does not pass, detect nothing.
        """
        remaining = list(defects)
        for level in LEVELS:
            for case in compute_cases(function, level):
                if not remaining:
                    return
                if case.case_class is CaseClass.open or self.run(case, None).verdict is not Verdict.passed:
                    continue
                for defect in list(remaining):
                    if self.run(case, defect).verdict is not Verdict.passed:
                        remaining.remove(defect)
                        yield Detection(
                            function=function, defect=defect, level=level, label=case.label, is_smoke=case.smoke
                        )
        yield from (Detection(function=function, defect=defect) for defect in remaining)


def main(arguments: Sequence[str]) -> int:
    """Build the vendor, run the cases, and return 1 if a defect was not detected, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", nargs="+", metavar="NAME", help="only these operators")
    chosen = parser.parse_args(arguments).functions
    defects = {
        name: defects_of_function
        for name, defects_of_function in read_defects().items()
        if not chosen or name in chosen
    }
    undetected = 0
    with tempfile.TemporaryDirectory() as folder:
        vendor = SeededVendor(build_vendor(Path(folder)))
        for function, names in defects.items():
            for detection in vendor.detect(function, names):
                undetected += not detection.level
                print(detection, flush=True)
    print(f"{undetected} of {sum(map(len, defects.values()))} pairs of an operator and a defect were not detected")
    return int(undetected > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
