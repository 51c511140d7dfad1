"""The headers of the engine interfaces are up to date and complete, and compilers accept them."""

import re
import shutil
import subprocess
from pathlib import Path

import cffi
import pytest

from diopi_engine.proto import headers, hgrt, nvdla
from diopi_engine.proto.__main__ import main
from diopi_engine.proto.declarations import EnumDeclaration, FunctionDeclaration, StructDeclaration

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
LANGUAGES = {"c11": ("cc", ["-x", "c", "-std=c11"]), "c++17": ("c++", ["-x", "c++", "-std=c++17"])}

DERIVED = """
#include <nvdla.h>
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
    compile_with(language, "".join(f"#include <{header}>\n" for header in headers.header_names()))


def test_the_class_can_be_derived_from() -> None:
    methods = "".join(
        f"    {m.returns} {m.name}({', '.join(p.type for p in m.parameters)}) override {{ return {{}}; }}\n"
        for m in nvdla.METHODS
    )
    compile_with("c++17", DERIVED.format(methods=methods))


@pytest.mark.parametrize("declarations", [hgrt.DECLARATIONS, nvdla.DECLARATIONS], ids=["hgrt", "nvdla"])
def test_cffi_reads_the_declarations_with_the_numbers_of_the_tables(declarations: tuple[object, ...]) -> None:
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
    for header, declared in {"hgrt.h": hgrt.DECLARATIONS, "nvdla.h": nvdla.DECLARATIONS}.items():
        text = headers.render_header(header)
        for declaration in declared:
            if isinstance(declaration, EnumDeclaration | FunctionDeclaration | StructDeclaration):
                assert re.search(rf"\b{declaration.name}\b", text), declaration.name


def test_every_declaration_has_a_docstring() -> None:
    for declaration in (*hgrt.DECLARATIONS, *nvdla.DECLARATIONS, *nvdla.METHODS, *nvdla.FACTORIES):
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
