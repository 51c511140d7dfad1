"""Whole fingerprints: missing functions, rejected calls, repeatability, compiled vendors, and the command."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from commands import run_here
from rich.console import Console
from small_vendor import Array, small_vendor, summed, vendor
from toolchain import VENDORS, build

from diopi_impl import UnsupportedDtypeError, find_vendor
from diopi_impl.plugins import known_vendors
from diopi_proto.types import Dtype
from diopi_test.fingerprint import Fingerprint, ProbeResult
from diopi_test.fingerprint.probe import NO_RESULT
from diopi_test.fingerprint.report import describe_variants, print_fingerprint
from diopi_test.fingerprint.table import FAMILIES

HELPERS = Path(__file__).parent.parent.parent / "helpers"

ONE_PROBE_PER_FAMILY = {family: probes[:1] for family, probes in FAMILIES.items() if family != "dot products"}
"""Enough probes to see that two runs agree."""


def missing_result_reasons(fingerprint: Fingerprint, function: str) -> set[str | None]:
    """Return the reasons why probes of a function have no result."""
    return {finding.observations.get(NO_RESULT) for finding in fingerprint.results if finding.function == function}


def text(fingerprint: Fingerprint) -> str:
    """Return the printed fingerprint."""
    console = Console(width=200, record=True, file=StringIO())
    print_fingerprint(fingerprint, console)
    return console.export_text()


def test_missing_and_rejected_functions_are_reported() -> None:
    def sqrt(input: Array) -> Array:
        if input.dtype == np.float16:
            raise UnsupportedDtypeError("no float16")
        if input.dtype == np.float64:
            raise ValueError("out of order")
        return np.sqrt(input)

    fingerprint = Fingerprint.measure(small_vendor(diopiSqrt=sqrt), {"NaN": FAMILIES["NaN"]})
    assert missing_result_reasons(fingerprint, "diopiNeg") == {"not implemented"}
    assert missing_result_reasons(fingerprint, "diopiSqrt") == {
        "unsupported type",
        None,
        "ErrorOccurred: diopiSqrt: out of order",
    }
    rows = [" ".join(line.split()) for line in text(fingerprint).splitlines()]
    assert "diopiNeg float16, bfloat16, float32, float64 not implemented" in rows
    assert "diopiSqrt float16 unsupported type" in rows


def test_a_write_beside_the_result_is_reported() -> None:
    from diopi_impl import Vendor
    from diopi_impl.host_runtime import HostRuntime
    from lib_rt import Context, Tensor

    wild = Vendor("wild", "1", HostRuntime().functions(), host_addressable=True)

    @wild.implements_raw("diopiNeg")
    def neg(ctx: Context, out: Tensor, input: Tensor) -> None:
        import ctypes

        ctx.stream.synchronize()
        ctypes.memset(out.data_ptr - 1, 0, 1)

    fingerprint = Fingerprint.measure(
        wild, {"NaN": [probe for probe in FAMILIES["NaN"] if probe.function == "diopiNeg"]}
    )
    assert all(finding.observations[NO_RESULT].startswith("wrote beside a tensor: ") for finding in fingerprint.results)


@pytest.mark.parametrize("name", ["small", pytest.param("jax_cpu", marks=pytest.mark.slow)])
def test_two_fingerprints_of_one_vendor_are_the_same(name: str) -> None:
    probed = find_vendor("diopi_impl.jax_cpu:vendor") if name == "jax_cpu" else vendor
    first, second = (Fingerprint.measure(probed, ONE_PROBE_PER_FAMILY).to_json() for _ in range(2))
    assert first == second
    assert any(NO_RESULT not in finding["answers"] for finding in first["findings"])


@pytest.mark.parametrize("name", sorted(known_vendors()))
def test_every_installed_vendor_answers_every_probe(name: str) -> None:
    if name == "torch_cpu":
        pytest.importorskip("torch", reason="torch_cpu needs PyTorch: pip install 'diopi[torch]'")
    one_type_each = {
        family: [replace(probe, variants=probe.variants[:1]) for probe in probes] for family, probes in FAMILIES.items()
    }
    fingerprint = Fingerprint.measure(find_vendor(name), one_type_each)
    assert len(fingerprint.results) == sum(map(len, FAMILIES.values()))
    assert [
        finding for finding in fingerprint.results if finding.observations.get(NO_RESULT) == "not implemented"
    ] == []


def test_every_row_of_the_table_is_probed() -> None:
    seen: list[str] = []
    fingerprint = Fingerprint.measure(vendor, progress=seen.append)
    assert seen == [probe.function for probes in FAMILIES.values() for probe in probes]
    measured = {(finding.family, finding.function, finding.subject, finding.dtypes) for finding in fingerprint.results}
    assert len(measured) == len(fingerprint.results) == sum(len(p.variants) for ps in FAMILIES.values() for p in ps)
    assert missing_result_reasons(fingerprint, "diopiSum") == missing_result_reasons(fingerprint, "diopiSqrt") == {None}


def test_vendors_of_different_arithmetic_have_different_fingerprints() -> None:
    def pairwise(input: Array, dim: tuple[int, ...]) -> Array:
        while input.shape[dim[0]] > 1:
            even, odd = (np.take(input, range(start, input.shape[dim[0]], 2), dim[0]) for start in (0, 1))
            input = even + odd
        return input.squeeze(dim[0])

    sums = {"sums": FAMILIES["sums"]}
    first, second = (Fingerprint.measure(small_vendor(diopiSum=function), sums) for function in (summed, pairwise))
    assert first.to_json() != second.to_json()


def test_a_compiled_vendor_can_be_probed(tmp_path: Path) -> None:
    library = build(tmp_path / "libdiopi_impl.so", "c", sorted((VENDORS / "c").glob("*.c")), "-O1")
    families = {"sums": FAMILIES["sums"], "division": FAMILIES["division"][:1]}
    fingerprint = Fingerprint.measure(find_vendor(str(library)), families)
    found = {
        (finding.function, finding.subject, finding.dtypes[0]): finding.observations for finding in fingerprint.results
    }
    sums = found["diopiSum", "of a vector", Dtype.float32]
    assert sums == {"partial sums": "float64 (53 bits)", "rounded": "to nearest", "order": "sequential"}
    assert found["diopiDiv", "", Dtype.float32] == {"quotients": "correctly rounded"}
    assert found["diopiSum", "of a vector", Dtype.float16] == {NO_RESULT: "unsupported type"}


def test_element_types_with_equal_observations_share_a_row() -> None:
    results = [
        ProbeResult(
            family="conversions",
            function="diopiCastDtype",
            subject="",
            dtypes=(source, target),
            observations={"rounded": "up"},
        )
        for source in (Dtype.float16, Dtype.float32)
        for target in (Dtype.int8, Dtype.int16)
    ]
    printed = text(Fingerprint("some vendor", "2", results))
    assert printed.splitlines()[0] == "some vendor 2"
    assert [" ".join(line.split()) for line in printed.splitlines()[2:]] == [
        "conversions types rounded",
        "diopiCastDtype float16, float32 → int8, int16 up",
    ]


def test_variants_are_described_in_words() -> None:
    half, single, byte, short = Dtype.float16, Dtype.float32, Dtype.int8, Dtype.int16
    assert describe_variants([(half,), (single,)]) == "float16, float32"
    assert describe_variants([(half, byte), (half, short), (single, byte)]) == "float16 → int8, int16; float32 → int8"


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `diopi-test fingerprint` in a new process."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, "-m", "diopi_test", "fingerprint", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )


def test_the_command_prints_a_fingerprint(tmp_path: Path) -> None:
    """The command also runs in another process, in which hashes of texts differ."""
    runs = []
    for name, run in (("here", partial(run_here, "fingerprint")), ("there", command)):
        file = tmp_path / f"{name}.json"
        done = run("--vendor", "small_vendor:vendor", "--json", file)
        assert (done.returncode, done.stderr) == (0, "")
        runs.append((done.stdout, file.read_text("utf-8")))
    assert runs[0] == runs[1]
    printed, written = runs[0]
    assert printed.startswith("small 1\n")
    record = json.loads(written)
    assert record["vendor"] == {"name": "small", "version": "1"}
    assert {
        "family": "elementary functions",
        "function": "diopiTan",
        "subject": "",
        "dtypes": ["float16"],
        "answers": {NO_RESULT: "not implemented"},
    } in record["findings"]


def test_the_command_rejects_invalid_arguments(tmp_path: Path) -> None:
    unknown = run_here("fingerprint", "--vendor", "nobody")
    missing_folder = run_here("fingerprint", "--vendor", "small_vendor:vendor", "--json", tmp_path / "no" / "such.json")
    assert (unknown.returncode, missing_folder.returncode) == (2, 2)
    assert "'nobody' is not one of" in unknown.stderr
    assert "does not exist" in missing_folder.stderr
