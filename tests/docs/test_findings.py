"""The examples in docs/findings.md are the actual messages of the checks for vendors with one defect.

`python tests/docs/test_findings.py`, with the source tree and tests/helpers in PYTHONPATH, regenerates them.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import faulty
import numpy as np
from trials import outcome_of

from diopi_impl import BaseVendor, Vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_test import checks
from diopi_test.baseline.level import open_level
from diopi_test.baseline.location import folder_to_read
from diopi_test.baseline.store import BaselineFile, baseline_file
from diopi_test.cases.case import CaseClass
from diopi_test.execution.negative_cases import NegativeCase
from diopi_test.execution.verdict import Outcome
from diopi_test.run.lookup import find_case, load_case
from diopi_test.run.run_negative_case import run_negative_case

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
WIDTH = 120
NEGATIVE_LABEL = "negative-dim-after-the-last"
ALL_CHECKS = (*checks.CHECKS, *checks.CHECKS_OF_RELEASE, *checks.COMPARISONS)

Corruption = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Example:
    """The description of a vendor's defect, and the case that shows it."""

    defect: str
    function: str
    label: str
    vendor: Callable[[], BaseVendor]

    def outcome(self) -> Outcome:
        """Run the case on the vendor and return its outcome."""
        return outcome_of(self.vendor(), self.function, self.label)


def make_corrupting_vendor(corrupt: Corruption) -> Callable[[], BaseVendor]:
    """Return a function that creates a vendor whose results a function corrupts."""
    return lambda: faulty.FaultyVendor("my_vendor", corrupt)


def scaled_columns(arguments: dict[str, Any]) -> None:
    """Make every second column of the result wrong by 0.1 %."""
    arguments["out"].view()[:, 1::2] *= np.float32(1.001)


def in_the_second_call() -> BaseVendor:
    """Return a vendor whose second call returns slightly different values, within the budget."""
    calls = iter(range(100))

    def corrupt(arguments: dict[str, Any]) -> None:
        if next(calls) == 1:
            view = arguments["out"].view()
            view[...] = np.nextafter(view, np.float32(np.inf))

    return faulty.FaultyVendor("my_vendor", corrupt)


def one_row_more(arguments: dict[str, Any]) -> None:
    """Allocate a result with one row too many."""
    result = arguments["out"].value
    arguments["out"].value = result.context.require_tensor((result.shape[0] + 1, *result.shape[1:]), result.dtype)


def positions_in_reverse(arguments: dict[str, Any]) -> None:
    """Reverse the positions of a sort."""
    view = arguments["indices"].view()
    view[...] = view[..., ::-1].copy()


def row_by_row(arguments: dict[str, Any]) -> None:
    """Read the elements in memory order and ignore strides."""
    out, input = arguments["out"], arguments["input"]
    contents = input.storage().view(input.view().dtype)[input.storage_offset :][: input.numel]
    with np.errstate(invalid="ignore"):
        np.copyto(out.view(), np.sqrt(contents).reshape(out.shape))


def keeping_memory() -> BaseVendor:
    """Return a vendor that never frees the memory that a call allocates."""
    memory = []
    return faulty.FaultyVendor(
        "my_vendor", lambda arguments: memory.append(arguments["out"].context.device.malloc(64)) or None
    )


def with_raw(**functions: Callable[..., Any]) -> Callable[[], BaseVendor]:
    """Return a function that creates a vendor with these raw implementations."""

    def make_vendor() -> BaseVendor:
        vendor = Vendor("my_vendor", "1", HostRuntime().functions(), host_addressable=True)
        for name, function in functions.items():
            vendor.implements_raw(name)(function)
        return vendor

    return make_vendor


def impatient(ctx: Any, out: Any, input: Any) -> None:
    """Compute the square root without waiting for the stream."""
    with np.errstate(invalid="ignore"):
        np.copyto(out.view(), np.sqrt(input.view()))


def seedless(ctx: Any, inout: Any, from_: float, to: float, generator: Any) -> None:
    """Draw the same numbers for every generator state."""
    ctx.stream.synchronize()
    np.copyto(inout.view(), np.random.default_rng(0).uniform(from_, to, inout.shape).astype(inout.view().dtype))


def floor_plus_one(ctx: Any, out: Any, input: Any) -> None:
    """Compute a wrong out-of-place form."""
    ctx.stream.synchronize()
    np.copyto(out.view(), np.floor(input.view()) + 1)


def floor_in_place(ctx: Any, input: Any) -> None:
    """Compute a correct in-place form."""
    ctx.stream.synchronize()
    np.copyto(input.view(), np.floor(input.view()))


EXAMPLES: Mapping[str, Example] = {
    "form": Example(
        "that allocates a result with one row too many",
        "diopiNonzero",
        "float32-matrix",
        make_corrupting_vendor(one_row_more),
    ),
    "written": Example(
        "that leaves out the last element",
        "diopiSqrt",
        "float32-matrix",
        make_corrupting_vendor(faulty.restore_last_element),
    ),
    "values": Example(
        "that is off by 0.1 % in every other column", "diopiAdd", "float32-row", make_corrupting_vendor(scaled_columns)
    ),
    "validity": Example(
        "that returns the correct values but wrong positions",
        "diopiSort",
        "float32-equals-ascending-None",
        make_corrupting_vendor(positions_in_reverse),
    ),
    "draws": Example(
        "that ignores the generator and always draws the same numbers",
        "diopiUniformInp",
        "float32-sample",
        with_raw(diopiUniformInp=seedless),
    ),
    "inputs": Example(
        "that writes to its input", "diopiSqrt", "float32-matrix", make_corrupting_vendor(faulty.flip_bit_of_input)
    ),
    "gaps": Example(
        "that writes where a strided result has a gap",
        "diopiSqrt",
        "float32-strided",
        make_corrupting_vendor(faulty.flip_bit_in_gap),
    ),
    "guards": Example(
        "that writes a byte too many",
        "diopiSqrt",
        "float32-matrix",
        make_corrupting_vendor(faulty.flip_bit_after_storage),
    ),
    "repeat": Example(
        "whose second call returns slightly different values",
        "diopiSqrt",
        "float32-matrix",
        in_the_second_call,
    ),
    "order": Example(
        "that reads its input before the data has arrived", "diopiSqrt", "float32-matrix", with_raw(diopiSqrt=impatient)
    ),
    "layout": Example("that ignores strides", "diopiSqrt", "float32-matrix", make_corrupting_vendor(row_by_row)),
    "inplace": Example(
        "whose in-place form computes something else",
        "diopiFloorInp",
        "float32-matrix",
        with_raw(diopiFloor=floor_plus_one, diopiFloorInp=floor_in_place),
    ),
    "leaks": Example("that keeps memory that a call allocated", "diopiSqrt", "float32-matrix", keeping_memory),
}

REFUSED = f"""\
The check that a vendor rejects an invalid call. A second check, `untouched`, fails if an invalid call changes a result.

A vendor that returns success for an invalid axis fails `diopiSoftmax[{NEGATIVE_LABEL}]` with this message:"""
"""The introduction of the section about negative tests."""


def rejection_message() -> str:
    """Return the message of the check for a vendor that accepts an invalid call."""

    def serves(ctx: Any, out: Any, input: Any, dim: int) -> None:
        ctx.stream.synchronize()
        out.view()[...] = 0

    path, collected = find_case([baseline_file(folder_to_read("smoke"), "diopiSoftmax")], NEGATIVE_LABEL)
    negative_case = load_case(BaselineFile(path), collected)
    assert negative_case.flaw is not None
    vendor = with_raw(diopiSoftmax=serves)()
    with vendor.open_device() as device:
        return message_of(
            run_negative_case(vendor, device, NegativeCase(negative_case.case, negative_case.flaw)), "refused"
        )


def message_of(outcome: Outcome, check: str) -> str:
    """Return the message of a check, in several lines."""
    (message,) = [finding.message for finding in outcome.check_results if finding.check == check and not finding.passed]
    return "\n".join(wrap(f"{check}: {message}", WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def sections() -> Iterator[str]:
    """Yield the generated sections of the page."""
    for check, example in EXAMPLES.items():
        doc = (inspect.getdoc(getattr(checks, check)) or "").partition("\n")[0]
        intro = f"A vendor {example.defect} fails `{example.function}[{example.label}]` with this message:"
        yield f"## {check}\n\n{doc}\n\n{intro}\n\n```\n{message_of(example.outcome(), check)}\n```\n"
    yield f"## refused\n\n{REFUSED}\n\n```\n{rejection_message()}\n```\n"


def regenerate_page(page: str) -> str:
    """Return the page with regenerated examples."""
    head, begin, remaining = page.partition("<!-- checks -->\n")
    _, end, tail = remaining.partition("<!-- end -->\n")
    assert begin and end
    return head + begin + "\n" + "\n".join(sections()) + "\n" + end + tail


def test_the_examples_equal_the_messages_of_the_checks() -> None:
    page = PAGE.read_text("utf-8")
    assert regenerate_page(page) == page


def test_every_check_and_every_class_has_an_example() -> None:
    assert set(EXAMPLES) == {check.__module__.rpartition(".")[2] for check in ALL_CHECKS}
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)\[([^\]]+)\]` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {name for name, *_ in rows} == {case_class.value for case_class in CaseClass}
    level = open_level(folder_to_read("smoke"))
    for name, function, label in rows:
        if name == CaseClass.soak:  # level smoke has no soak tests; the other levels have one for each function
            assert label == "soak"
            continue
        assert [case.class_ for case in level.cases(function) if case.label == label] == [name], label


if __name__ == "__main__":
    PAGE.write_text(regenerate_page(PAGE.read_text("utf-8")), "utf-8")
