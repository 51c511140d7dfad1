"""What a vendor's configuration skips becomes waivers for these cases, and no others."""

from pathlib import Path

from diopi_test.harness.waivers import Waivers
from diopi_test.original.folder import Imported, import_files, write

CASES = """
import numpy as np
configs = {
    'rows': dict(name=['softmax', 'log_softmax'], dtype=[np.float16, np.float32], para=dict(dim=[0, 1]),
        tensor_para=dict(gen_fn='Genfunc.randn', args=[dict(ins=['input'], shape=((2, 3), (4, 5)))])),
}
"""


def imported(folder: Path, entries: str, *, with_cases: bool = True) -> Imported:
    paths = [folder / "device_configs.py", folder / "configs.py"]
    paths[0].write_text(f"import numpy as np\ndevice_configs = {{\n{entries}\n}}")
    paths[1].write_text(CASES)
    return import_files(paths if with_cases else paths[:1], lambda name: None)


def patterns(folder: Path, entries: str, *, with_cases: bool = True) -> list[str]:
    found = imported(folder, entries, with_cases=with_cases)
    assert found.lacking == []
    return [waiver.pattern for waiver in found.waivers]


def test_an_element_type(tmp_path: Path) -> None:
    entry = (
        "'rows': dict(name=['softmax'], atol=1, tensor_para=dict(args=[dict(ins=['input'], dtype=[Skip(np.float16)])]))"
    )
    (waiver,) = imported(tmp_path, entry).waivers
    assert waiver.pattern == "diopiSoftmax[float16-rows-*]"
    assert waiver.reason == "device_configs.py, line 3: Skip(float16) for dtype of input in rows"
    assert patterns(tmp_path, "'rows': dict(dtype=[Skip(np.float16)])") == [
        "diopiSoftmax[float16-rows-*]",
        "diopiLogSoftmax[float16-rows-*]",
    ]


def test_a_shape_or_an_attribute(tmp_path: Path) -> None:
    wanted = [f"diopiSoftmax[{dtype}-rows-1]" for dtype in ("float16", "float32")]
    shape = "'rows': dict(name=['softmax'], tensor_para=dict(args=[dict(ins=['input'], shape=[Skip([4, 5])])]))"
    assert patterns(tmp_path, shape) == wanted
    assert patterns(tmp_path, "'rows': dict(name=['softmax'], para=dict(dim=[Skip(1)]))") == wanted


def test_a_function(tmp_path: Path) -> None:
    skipped = "'rows': dict(name=[Skip('log_softmax')])"
    assert patterns(tmp_path, skipped) == ["diopiLogSoftmax[float16-rows-*]", "diopiLogSoftmax[float32-rows-*]"]


def test_cases_of_the_project_s_own_where_none_is_translated(tmp_path: Path) -> None:
    entries = "'a': dict(name=['tanh'], dtype=[Skip(np.float64)]), 'b': dict(name=[Skip('exp')])"
    assert patterns(tmp_path, entries, with_cases=False) == ["diopiTanh[float64-*]", "diopiExp[*]"]


def test_what_cannot_be_found_says_why(tmp_path: Path) -> None:
    entries = (
        "'rows': dict(name=['softmax'], para=dict(dim=[Skip(True)])),\n"
        "'other': dict(name=['tanh'], para=dict(dim=[Skip(3)])),\n"
        "'none': dict(dtype=[Skip(np.float16)]),\n"
        "'odd': dict(name=['nobody'], dtype=[Skip(np.float16)]),"
    )
    whys = [
        "no case of rows has it",
        "name the case configuration, too",
        "it names no",
        "nobody names no standard function",
    ]
    found = imported(tmp_path, entries)
    assert found.waivers == []
    assert [why for why, line in zip(whys, found.lacking, strict=True) if why not in line] == []


def test_the_file_of_waivers_is_accepted(tmp_path: Path) -> None:
    found = imported(tmp_path, "'rows': dict(name=['softmax'], para=dict(dim=[Skip(1)]))")
    write(tmp_path / "out", found)
    read = Waivers.read([tmp_path / "out" / "waivers.toml"])
    assert [entry.waiver.pattern for entry in read.entries] == [waiver.pattern for waiver in found.waivers]
