"""Skips of a vendor's configuration become waivers for these cases, and for no others."""

from pathlib import Path

import pytest

from diopi_impl.base import matches
from diopi_test.cases.selection import select_cases
from diopi_test.original.folder import ImportSummary, import_files
from diopi_test.waivers.rules import Waivers

CASES = """
import numpy as np
configs = {
    'soft': dict(name=['softmax', 'log_softmax'], dtype=[np.float16, np.float32], para=dict(dim=[0, 1]),
        tensor_para=dict(gen_fn='Genfunc.randn', args=[dict(ins=['input'], shape=((2, 3), (4, 5)))])),
}
"""


def import_configurations(folder: Path, entries: str, *, cases: str = CASES, before: str = "") -> ImportSummary:
    """Import a device configuration and the configuration of the cases."""
    paths = [folder / "device_configs.py", folder / "configs.py"]
    paths[0].write_text(f"import numpy as np\n{before}device_configs = {{\n{entries}\n}}")
    paths[1].write_text(cases)
    return import_files(paths, folder / "out", lambda *done: None)


def patterns(folder: Path, entries: str, *, cases: str = CASES, before: str = "") -> list[str]:
    """Return the patterns of the imported waivers."""
    found = import_configurations(folder, entries, cases=cases, before=before)
    assert found.not_translated == []
    return [waiver.pattern for waiver in found.waivers]


def test_a_skipped_element_type_is_waived(tmp_path: Path) -> None:
    entry = (
        "'soft': dict(name=['softmax'], atol=1, tensor_para=dict(args=[dict(ins=['input'], dtype=[Skip(np.float16)])]))"
    )
    (waiver,) = import_configurations(tmp_path, entry).waivers
    assert waiver.pattern == "diopiSoftmax[float16-soft-*]"
    assert waiver.reason == "device_configs.py, line 3: Skip(float16) for dtype of input in soft"
    assert patterns(tmp_path, "'soft': dict(dtype=[Skip(np.float16)])") == [
        "diopiSoftmax[float16-soft-*]",
        "diopiLogSoftmax[float16-soft-*]",
    ]


def test_a_skipped_shape_or_attribute_is_waived(tmp_path: Path) -> None:
    wanted = [f"diopiSoftmax[{dtype}-soft-1]" for dtype in ("float16", "float32")]
    shape = "'soft': dict(name=['softmax'], tensor_para=dict(args=[dict(ins=['input'], shape=[Skip([4, 5])])]))"
    assert patterns(tmp_path, shape) == wanted
    assert patterns(tmp_path, "'soft': dict(name=['softmax'], para=dict(dim=[Skip(1)]))") == wanted


def test_a_skipped_function_is_waived(tmp_path: Path) -> None:
    skipped = "'soft': dict(name=[Skip('log_softmax')])"
    assert patterns(tmp_path, skipped) == ["diopiLogSoftmax[float16-soft-*]", "diopiLogSoftmax[float32-soft-*]"]


def test_a_skipped_entry_is_waived(tmp_path: Path) -> None:
    expected = [
        f"diopi{name}[{dtype}-soft-*]" for name in ("Softmax", "LogSoftmax") for dtype in ("float16", "float32")
    ]
    assert sorted(patterns(tmp_path, "'soft': dict(name=['softmax', 'log_softmax'], skip_all=True)")) == sorted(
        expected
    )
    assert sorted(patterns(tmp_path, "'soft': dict(name=['softmax'], skip_all=True)")) == expected[:2]
    assert sorted(patterns(tmp_path, "'soft': dict(skip_all=['softmax'])")) == expected[:2]
    assert patterns(tmp_path, "'soft': dict(name=['softmax'], skip_all=False)") == []


def test_a_skip_applies_to_the_functions_that_the_entry_names(tmp_path: Path) -> None:
    text = "without = lambda *values: [Skip(value) for value in values]\n"
    entry = "'soft': dict(name=['softmax'], dtype=without(np.float16), para=dict(dim=without(0, 1)))"
    assert patterns(tmp_path, entry, before=text) == [
        "diopiSoftmax[float16-soft-*]",
        "diopiSoftmax[float16-soft-0]",
        "diopiSoftmax[float32-soft-0]",
        "diopiSoftmax[float16-soft-1]",
        "diopiSoftmax[float32-soft-1]",
    ]


EXPONENT_CASES = """
configs = {
    'pow_tensor': dict(name=['pow'], tensor_para=dict(args=[
        dict(ins=['input'], shape=((2, 3), (4,)), dtype=[np.float32, np.float64], gen_fn='Genfunc.positive'),
        dict(ins=['exponent'], shape=((2, 3), (1,)), dtype=[np.float32, np.float64]),
    ])),
    'pow_number': dict(name=['pow'], para=dict(exponent=[2, 3]), tensor_para=dict(args=[
        dict(ins=['input'], shape=((2, 3), (4,)), dtype=[np.float32]),
    ])),
}
"""


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ("'pow_tensor': dict({ins}=['exponent'], dtype=[Skip(np.float64)])", ["float64-pow_tensor-*"]),
        ("'pow_tensor': dict({ins}=['self'], shape=[Skip((4,))])", ["float32-pow_tensor-1", "float64-pow_tensor-1"]),
        ("'pow_tensor': dict(para=dict(exponent=[Skip(np.float64)]))", ["float64-pow_tensor-*"]),
        ("'pow_number': dict(para=dict(exponent=[Skip(3)]))", ["float32-pow_number-1"]),
        ("'pow_number': dict({ins}=['exponent'], value=[Skip(3.0)])", ["float32-pow_number-1"]),
    ],
)
def test_an_exponent_is_a_tensor_or_a_number(tmp_path: Path, entry: str, wanted: list[str]) -> None:
    head, _, remaining = entry.partition("dict({ins}")
    if remaining:
        entry = f"{head}dict(name=['pow'], tensor_para=dict(args=[dict(ins{remaining}]))"
    found = [pattern.partition("[")[2].removesuffix("]") for pattern in patterns(tmp_path, entry, cases=EXPONENT_CASES)]
    assert found == wanted


def test_a_skip_covers_no_case_of_another_entry(tmp_path: Path) -> None:
    entry = "dict(tensor_para=dict(args=[dict(ins=['input'], shape=((2, 3), (4, 5)))]), name=['softmax'],"
    cases = f"configs = {{'soft': {entry} para=dict(dim=[0, 1])), 'soft-2': {entry} para=dict(dim=[0, 1]))}}"
    skipped = "'soft': dict(name=['softmax'], dtype=[Skip(np.float32)])"
    assert patterns(tmp_path, skipped, cases=cases) == [
        "diopiSoftmax[float32-soft-0]",
        "diopiSoftmax[float32-soft-1]",
    ]


def test_a_skip_covers_no_case_of_the_suite(tmp_path: Path) -> None:
    """An entry with the name of a case of the suite, and entries without cases, waive nothing outside of the import."""
    shipped = [case.label for case in select_cases("diopiSoftmax", "full")]
    names = sorted({label.split("-", 1)[1] for label in shipped if label.startswith("float16-")})
    rows = CASES.partition("'soft': ")[2].rpartition("}")[0].rstrip().removesuffix(",")
    cases = f"import numpy as np\nconfigs = {{{', '.join(f'{name!r}: {rows}' for name in names)}}}"
    skipped = "dict(name=['softmax'], dtype=[Skip(np.float16)])"
    entries = [f"{name!r}: {skipped}," for name in (*names, "softmax", "exp")]
    found = import_configurations(tmp_path, "\n".join(entries), cases=cases)
    assert len(found.waivers) >= len(names) > 9 and len(found.not_translated) == 2
    covered = [
        label for label in shipped for waiver in found.waivers if matches(waiver.pattern, f"diopiSoftmax[{label}]")
    ]
    assert covered == []


def test_a_skip_without_cases_is_reported_with_the_reason(tmp_path: Path) -> None:
    entries = (
        "'soft': dict(name=['softmax'], para=dict(dim=[Skip(True), unknown()])),\n"
        "'other': dict(name=['tanh'], dtype=[Skip(np.float16)]),\n"
        "'none': dict(dtype=[Skip(np.float16)]),"
    )
    reasons = [
        "soft: Skip(True) for dim: no translated case of soft has it",
        "soft: a call that is not read: unknown()",
        "other: Skip(float16) for dtype: the case configuration has no entry other",
        "no case of none is translated",
    ]
    found = import_configurations(tmp_path, entries, cases=CASES + "other_configs = {'none': dict(name=['nobody'])}")
    assert found.waivers == []
    assert [reason for reason in reasons if not any(reason in line for line in found.not_translated)] == []


def test_without_the_case_configuration_nothing_is_waived(tmp_path: Path) -> None:
    found = import_configurations(tmp_path, "'a': dict(name=['tanh'], dtype=[Skip(np.float64)])", cases="")
    assert found.waivers == [] and "import the case configuration in the same command" in found.not_translated[0]


def test_tolerances_are_listed_with_what_to_do_instead(tmp_path: Path) -> None:
    entries = "'soft': dict(name=['softmax'], atol=1e-3, rtol_half=0.1, mismatch_ratio_threshold=0.01)"
    found = import_configurations(tmp_path, entries)
    assert found.waivers == [] and found.not_translated == []
    (note,) = found.notes
    assert "soft: atol=0.001, rtol_half=0.1, mismatch_ratio_threshold=0.01: not applied" in note
    assert "waiver with max_ratio for diopiSoftmax[*-soft-*]" in note
    assert note in (tmp_path / "out" / "not_translated.txt").read_text().splitlines()


def test_the_file_of_waivers_is_accepted(tmp_path: Path) -> None:
    found = import_configurations(tmp_path, "'soft': dict(name=['softmax'], para=dict(dim=[Skip(1)]))")
    read = Waivers.read([tmp_path / "out" / "waivers.toml"])
    assert [entry.waiver.pattern for entry in read.entries] == [waiver.pattern for waiver in found.waivers]


def test_skips_of_entries_that_are_not_selected_are_not_reported(tmp_path: Path) -> None:
    other_entry = CASES.replace("'soft'", "'other'").replace("configs =", "more_configs =")
    skips = "'soft': dict(name=['softmax'], dtype=[Skip(np.float16)]), 'other': dict(name=['softmax'], skip_all=True)"
    import_configurations(tmp_path, skips, cases=CASES + other_entry)
    second_import = import_files(
        [tmp_path / "device_configs.py", tmp_path / "configs.py"], tmp_path / "one", lambda *done: None, "soft"
    )
    assert [waiver.pattern for waiver in second_import.waivers] == [
        "diopiSoftmax[float16-soft-*]"
    ] and second_import.not_translated == []
