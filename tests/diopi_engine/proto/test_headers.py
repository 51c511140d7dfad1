"""The headers of the engine interfaces are up to date and complete, and compilers accept them."""

import re
import shutil
import subprocess
from itertools import permutations
from pathlib import Path
from typing import Any

import cffi
import pytest

from diopi_engine.proto import headers, hgrt, nvdla, nvdla_released
from diopi_engine.proto.__main__ import main
from diopi_engine.proto.declarations import Declaration, EnumDeclaration, FunctionDeclaration, StructDeclaration

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
LANGUAGES = {"c11": ("cc", ["-x", "c", "-std=c11"]), "c++17": ("c++", ["-x", "c++", "-std=c++17"])}

DERIVED = """
#include <{header}>
class Runtime final : public nvdla::IRuntime {{
public:
{methods}}};
nvdla::IRuntime* made() {{ static Runtime runtime; return &runtime; }}
"""


def compile_with(language: str, source: str) -> None:
    """Compile a source with the compiler of a language and all warnings as errors."""
    compiler, flags = LANGUAGES[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    command = [compiler, *flags, *WARNINGS, f"-I{headers.INCLUDE_DIR}", "-fsyntax-only", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", headers.header_names())
def test_committed_header_is_the_generated_one(header: str) -> None:
    """`python -m diopi_engine.proto --write` regenerates them."""
    assert headers.INCLUDE_DIR.joinpath(header).read_text("utf-8") == headers.render_header(header)


def test_write_generates_every_header(tmp_path: Path) -> None:
    headers.write_headers(tmp_path / "include")
    assert {path.name for path in tmp_path.glob("include/*")} == set(headers.header_names())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("header", headers.header_names())
def test_each_header_compiles_without_others_and_twice(header: str, language: str) -> None:
    compile_with(language, f"#include <{header}>\n#include <{header}>\n")


@pytest.mark.parametrize("language", LANGUAGES)
def test_headers_compile_together(language: str) -> None:
    for driver in ("nvdla.h", "nvdla_released.h"):
        compile_with(language, f"#include <hgrt.h>\n#include <{driver}>\n")


def test_both_headers_of_the_driver_in_one_file_are_an_error() -> None:
    for first, second in permutations(("nvdla.h", "nvdla_released.h")):
        with pytest.raises(AssertionError, match="declare two interfaces with the same names"):
            compile_with("c11", f"#include <{first}>\n#include <{second}>\n")


@pytest.mark.parametrize(
    ("header", "methods"), [("nvdla.h", nvdla.METHODS), ("nvdla_released.h", nvdla_released.METHODS)], ids=str
)
def test_the_class_can_be_derived_from(header: str, methods: tuple[FunctionDeclaration, ...]) -> None:
    overridden = "".join(
        f"    {m.returns} {m.name}({', '.join(p.type for p in m.parameters)}) {'const ' * m.is_constant}override "
        f"{{ return {'{}' * (m.returns != 'void')}; }}\n"
        for m in methods
    )
    compile_with("c++17", DERIVED.format(header=header, methods=overridden))


def test_the_released_structures_have_the_released_sizes() -> None:
    """The numbers follow from the order and types of the fields on a 64-bit machine."""
    ffi = cffi.FFI()
    ffi.cdef(headers.cffi_declarations(nvdla_released.DECLARATIONS))
    assert {name: ffi.sizeof(name) for name in ("NvDlaTensor", "NvDlaMemDesc", "NvDlaTask", "NvDlaError")} == {
        "NvDlaTensor": 152,
        "NvDlaMemDesc": 16,
        "NvDlaTask": 16 + 6144 * 16,
        "NvDlaError": 4,
    }
    assert [(name, ffi.offsetof("NvDlaTensor", name)) for name in ("bufferSize", "dims", "pixelMapping", "stride")] == [
        ("bufferSize", 88),
        ("dims", 96),
        ("pixelMapping", 116),
        ("stride", 120),
    ]
    tensor: Any = ffi.new("NvDlaTensor*")
    assert len(tensor.stride) == nvdla_released.STRIDES


@pytest.mark.parametrize(
    "declarations",
    [hgrt.DECLARATIONS, nvdla.DECLARATIONS, nvdla_released.DECLARATIONS],
    ids=["hgrt", "nvdla", "nvdla_released"],
)
def test_cffi_reads_the_declarations_with_the_numbers_of_the_tables(declarations: tuple[Declaration, ...]) -> None:
    ffi = cffi.FFI()
    ffi.cdef(headers.cffi_declarations(declarations))
    enums = [declaration for declaration in declarations if isinstance(declaration, EnumDeclaration)]
    assert enums
    for enum in enums:
        expected = {f"{enum.prefix}{member.name}": member.value for member in enum.members}
        assert ffi.typeof(enum.name).relements == expected
    functions = {declaration.name for declaration in declarations if isinstance(declaration, FunctionDeclaration)}
    assert functions <= set(dir(ffi.dlopen(None)))


def test_every_function_and_type_is_in_its_header() -> None:
    for header, declared in {
        "hgrt.h": hgrt.DECLARATIONS,
        "nvdla.h": nvdla.DECLARATIONS,
        "nvdla_released.h": nvdla_released.DECLARATIONS,
    }.items():
        text = headers.render_header(header)
        for declaration in declared:
            if isinstance(declaration, EnumDeclaration | FunctionDeclaration | StructDeclaration):
                assert re.search(rf"\b{declaration.name}\b", text), declaration.name


def test_every_declaration_has_a_docstring() -> None:
    drivers = [
        declaration
        for table in (nvdla, nvdla_released)
        for declaration in (*table.DECLARATIONS, *table.METHODS, *table.FACTORIES)
    ]
    for declaration in (*hgrt.DECLARATIONS, *drivers):
        assert declaration.doc.rstrip().endswith("."), declaration
        if isinstance(declaration, EnumDeclaration):
            assert all(member.meaning for member in declaration.members)
        if isinstance(declaration, StructDeclaration):
            assert all(field.doc for field in declaration.fields)


def test_both_interfaces_give_types_and_layouts_the_same_numbers() -> None:
    assert [*map(int, hgrt.DataType)] == [*map(int, nvdla.DataType)]
    layouts, formats = hgrt.Layout.__members__.items(), nvdla.DataFormat.__members__.items()
    assert [(name, int(member)) for name, member in layouts] == [(name, int(member)) for name, member in formats]


def test_a_function_lists_its_parameters() -> None:
    create = next(function for function in hgrt.FUNCTIONS if function.name == "hgEngineCreate")
    assert [(p.type, p.name) for p in create.parameters] == [
        ("const char*", "serialized"),
        ("size_t", "size"),
        ("hgEngine*", "engine"),
    ]


def test_the_command_prints_its_folder_and_requires_an_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["proto", "--include-dir"])
    main()
    assert Path(capsys.readouterr().out.strip(), "hgrt.h").is_file()
    monkeypatch.setattr("sys.argv", ["proto"])
    with pytest.raises(SystemExit, match="2"):
        main()
