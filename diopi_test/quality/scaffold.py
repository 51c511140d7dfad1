"""The scaffold of a new operator: what to add to which file, and which places its author must fill in.

The prototype is copied from a similar function of the family, or describes an element-wise function of one tensor. All
edits are computed before the first file is written, so that a failure leaves the source tree unchanged.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from diopi_proto.messages import describe_unknown
from diopi_test.quality.source_edits import LINE_LENGTH, append_definition

MARK = "FILL IN"
"""Starts the text of each place that the author of an operator fills in."""

SOURCE_PARAGRAPH = f"\n\n    Source: {MARK}: its definition.\n    "
"""The last paragraph of a scaffolded prototype's docstring."""

# The folders and files of the source tree that a new operator changes
PROTOTYPES = "diopi_proto/functions"
REFERENCES = "diopi_test/oracle/reference"
IMPLEMENTATIONS = "diopi_impl/jax_cpu"
CASES = "diopi_test/cases"
INTERFACE = "diopi_proto/interface.txt"
ATEN_TABLE = "diopi_proto/aten/table.tsv"
TORCH_FUNCTIONS = "diopi_impl/torch_cpu/renamed.py"

ELEMENTWISE_PROTOTYPE = '''\
@elementwise(dtypes=floating, inplace="diopiExampleInp", backward="diopiExampleBackward")
def diopiExample(ctx: Context, out: Out, input: In):
    """Example."""


@elementwise(dtypes=floating)
def diopiExampleBackward(ctx: Context, grad_input: Out, grad_output: In, input: In):
    """Gradient of the example."""
'''
"""The prototypes of a function that is not copied from another one."""

DEFAULT_IMPORTS: Mapping[str, Sequence[str]] = {
    "diopi_proto.dtypes": ["floating"],
    "diopi_proto.parameters": ["Context", "In", "Out"],
    "diopi_proto.declaration": ["elementwise"],
}
"""The names that these prototypes need, by module."""

NOT_PASSED = ("Context", "Out", "ChosenOut")
"""The kinds of parameters that neither a reference nor an implementation receives."""


@dataclass(frozen=True, kw_only=True)
class ScaffoldRequest:
    """The options with which an author adds an operator.

    Attributes:
        name: The name of the function in C.
        family: The family of the function.
        module: The module of the family, where the family is a package in a part of the project.
        like: The function whose parameters and facts are copied; None for an element-wise function of one tensor.
        aten: The operator of PyTorch that computes the same; None if there is none.
        no_gradient: The reason why the function has no gradient function; None if it has one.
    """

    name: str
    family: str
    module: str | None = None
    like: str | None = None
    aten: str | None = None
    no_gradient: str | None = None


@dataclass(frozen=True, kw_only=True)
class ScaffoldDeclaration:
    """The declaration of a function's prototype.

    Attributes:
        name: The name of the function in C.
        source: The source of the prototype, with places to fill in for the texts.
        parameters: The names of the parameters that a reference and an implementation may declare.
        tensors: The names of the tensors among them.
        is_elementwise: Whether the prototype declares an element-wise function.
        is_default: Whether the prototype is not copied from a function of the family.
    """

    name: str
    source: str
    parameters: Sequence[str]
    tensors: Sequence[str]
    is_elementwise: bool
    is_default: bool

    @property
    def python_name(self) -> str:
        """The name of the functions that implement the prototype in Python."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", self.name.removeprefix("diopi"))
        return words.lower()


def scaffold(tree: Path, request: ScaffoldRequest) -> Mapping[Path, str]:
    """Return the new contents of the files that a new operator changes.

    Args:
        tree: The root of the source tree.
        request: The operator.

    Returns:
        The contents by file.

    Raises:
        ValueError: The name of the function exists or is invalid, or `tree` is not a source tree of the project. The
            family, the module or the function to copy from may also be unknown.
    """
    _check_request(tree, request)
    plain, gradient = make_declarations(tree, request)
    functions = [plain, *([gradient] if gradient else [])]
    forms = re.findall(r'(?:inplace|scalar|inplace_scalar)="(\w+)"', "".join(f.source for f in functions))
    changed = {
        INTERFACE: _insert_into_interface(tree, request, [plain.name, *forms, *(f.name for f in functions[1:])]),
        **_append_to_module(tree, request, PROTOTYPES, functions, _define_prototypes),
        **_append_to_module(tree, request, REFERENCES, functions, _define_references),
        **_append_to_module(tree, request, IMPLEMENTATIONS, functions, _define_implementations),
        **_append_to_module(tree, request, CASES, functions, _define_cases),
    }
    if request.aten:
        changed[ATEN_TABLE] = _insert_into_table(tree, request.aten, functions)
        changed[TORCH_FUNCTIONS] = _insert_renamed(tree, functions)
    return {tree / name: text for name, text in changed.items()}


def places_to_fill_in(contents: Mapping[Path, str]) -> Iterator[tuple[Path, int, str]]:
    """Yield file, line number and text of each place that the author fills in."""
    for path, text in contents.items():
        for number, line in enumerate(text.splitlines(), 1):
            if MARK in line:
                yield path, number, line.partition(MARK)[2].strip(' :"().')


def make_declarations(tree: Path, request: ScaffoldRequest) -> tuple[ScaffoldDeclaration, ScaffoldDeclaration | None]:
    """Return the declaration of a function and of its gradient function; the latter is None without a gradient.

    Raises:
        ValueError: The family does not declare the function that the new function is modeled on.
    """
    if request.like is None:
        source, like = ELEMENTWISE_PROTOTYPE, "diopiExample"
    else:
        source, like = (tree / PROTOTYPES / f"{request.family}.py").read_text("utf-8"), request.like
    nodes = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    if like not in nodes:
        raise ValueError(describe_unknown(like, nodes, f"functions of the family {request.family}"))
    backward = re.search(r'backward="(\w+)"', _source_of(source, nodes[like]))
    plain_text = f"{MARK}: the result as a formula, the shapes and the errors."
    if request.no_gradient:
        plain_text += f"\n\n    There is no gradient: {request.no_gradient.rstrip('.')}."
    plain_text += SOURCE_PARAGRAPH
    plain = _copy_declaration(source, nodes[like], request.name, plain_text, keeps_gradient=not request.no_gradient)
    if request.no_gradient or not backward or backward[1] not in nodes:
        return plain, None
    text = f"Compute the gradient of `{request.name}`. {MARK}: its formula.{SOURCE_PARAGRAPH}"
    return plain, _copy_declaration(source, nodes[backward[1]], f"{request.name}Backward", text)


def _check_request(tree: Path, request: ScaffoldRequest) -> None:
    """Raise ValueError if the tree is not a source tree of DIOPI, or if the name or the family is invalid."""
    if not (tree / INTERFACE).is_file() or not (tree / "pyproject.toml").is_file():
        raise ValueError(f"{tree} is not a source tree of DIOPI: it has no {INTERFACE}; run the command in a clone")
    if not re.fullmatch(r"diopi[A-Z]\w*", request.name):
        raise ValueError(f"{request.name!r} is not a name of a function; expected `diopi` and a word like `Softmax`")
    if request.name in (tree / INTERFACE).read_text("utf-8").split():
        raise ValueError(f"{request.name} is a function already; choose another name")
    families = sorted(path.stem for path in (tree / PROTOTYPES).glob("[a-z]*.py"))
    if request.family not in families:
        raise ValueError(describe_unknown(request.family, families, "families"))


def _source_of(source: str, node: ast.FunctionDef) -> str:
    """Return the source of a function definition, including its decorators."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])


def _copy_declaration(
    source: str, node: ast.FunctionDef, name: str, text: str, *, keeps_gradient: bool = True
) -> ScaffoldDeclaration:
    """Return the declaration of function `name` with the parameters and facts of the function at `node`.

    Args:
        source: The source of the module with the copied function.
        node: The definition of the copied function in this module.
        name: The name of the new function.
        text: The docstring of the new function.
        keeps_gradient: Whether the new function has a gradient function if the copied one has one.
    """
    copied = _source_of(source, node).replace(ast.get_source_segment(source, node.body[0]) or "", f'"""{text}"""')
    copied = re.sub(rf"\b{node.name}(?=\b|Inp\b|Scalar\b|InpScalar\b|Backward\b)", name, copied)
    if not keeps_gradient:
        copied = re.sub(r',?\s*backward="\w+"', "", copied)
    kinds = {argument.arg: ast.unparse(argument.annotation) for argument in node.args.args if argument.annotation}
    passed = {parameter: kind for parameter, kind in kinds.items() if kind.partition("[")[0] not in NOT_PASSED}
    decorators = {ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list}
    return ScaffoldDeclaration(
        name=name,
        source=copied,
        parameters=list(passed),
        tensors=[parameter for parameter, kind in passed.items() if kind in ("In", "InOut")],
        is_elementwise=bool(decorators & {"elementwise", "arithmetic"}),
        is_default=source is ELEMENTWISE_PROTOTYPE,
    )


Definition = tuple[str, Mapping[str, Sequence[str]]]
"""The source of a definition, and the names that it imports, by module."""


def _append_to_module(
    tree: Path,
    request: ScaffoldRequest,
    part: str,
    functions: Sequence[ScaffoldDeclaration],
    define: Callable[[Sequence[ScaffoldDeclaration]], Definition],
) -> dict[str, str]:
    """Return the path of the family's module in a part of the project, and its new content.

    Args:
        tree: The root of the source tree.
        request: The operator.
        part: The folder of the part, such as `diopi_test/cases`.
        functions: The declarations of the function and of its gradient function.
        define: Returns the definition to append.
    """
    name = _module_path(tree, request, part)
    return {name: append_definition((tree / name).read_text("utf-8"), *define(functions))}


def _module_path(tree: Path, request: ScaffoldRequest, part: str) -> str:
    """Return the path of the family's module in a part of the project.

    Raises:
        ValueError: The family is a package there, and the request names none of its modules.
    """
    if (tree / f"{part}/{request.family}.py").is_file():
        return f"{part}/{request.family}.py"
    modules = sorted(path.stem for path in (tree / part / request.family).glob("[a-z]*.py"))
    if request.module not in modules:
        unknown = describe_unknown(str(request.module), modules, f"modules of the package {part}/{request.family}")
        raise ValueError(f"{unknown}; choose the module with --module")
    return f"{part}/{request.family}/{request.module}.py"


def _define_prototypes(functions: Sequence[ScaffoldDeclaration]) -> Definition:
    """Return the definitions of the prototypes and the names that they import."""
    source = "\n\n\n".join(function.source for function in functions)
    return source, DEFAULT_IMPORTS if functions[0].is_default else {}


def _define_references(functions: Sequence[ScaffoldDeclaration]) -> Definition:
    """Return unfinished references of the functions and the names that they import."""
    return _define_functions("reference", functions, "in float64"), {"diopi_test.oracle.reference": ["reference"]}


def _define_implementations(functions: Sequence[ScaffoldDeclaration]) -> Definition:
    """Return unfinished implementations in `jax_cpu` and the names that they import."""
    return _define_functions("vendor.implements", functions, "with jax.numpy"), {"diopi_impl.jax_cpu": ["vendor"]}


def _define_functions(decorator: str, functions: Sequence[ScaffoldDeclaration], instruction: str) -> str:
    """Return the source of functions with all parameters, which raise an error until they are written.

    Args:
        decorator: The name of the decorator of each function.
        functions: The declarations of the functions.
        instruction: The end of the error's message, which states what to compute.
    """
    return "\n\n\n".join(
        f'@{decorator}("{function.name}")\n'
        f"def {function.python_name}({', '.join(function.parameters)}):\n"
        f'    raise NotImplementedError("{MARK}: compute {function.name} {instruction}")'
        for function in functions
    )


def _define_cases(functions: Sequence[ScaffoldDeclaration]) -> Definition:
    """Return a function that yields the cases of the operator and of its gradient."""
    names = ", ".join(f'"{function.name}"' for function in functions)
    tensors = list(dict.fromkeys(name for function in functions for name in function.tensors))
    attributes = [name for name in functions[0].parameters if name not in functions[0].tensors]
    body, imports = _elementwise_cases(tensors) if functions[0].is_elementwise else _template_cases(tensors)
    values = ", ".join(f'"{name}": None' for name in attributes)
    arguments = f"    arguments: Arguments = {{{values}}}  # {MARK}: a value for each attribute\n" if attributes else ""
    header = f"@cases_for({names})\ndef {functions[0].python_name}(prototype: Prototype) -> Iterator[Case]:\n"
    shared = {
        "collections.abc": ["Iterator"],
        "diopi_proto.prototype": ["Prototype"],
        "diopi_test.cases.case": ["Case", "cases_for"],
        "diopi_test.cases.template": ["DtypeSelection", *(["Arguments"] if attributes else [])],
    }
    merged = {module: [*shared.get(module, []), *imports.get(module, [])] for module in {**shared, **imports}}
    return header + arguments + body.replace("ARGUMENTS", "arguments" if attributes else "{}"), merged


def _elementwise_cases(tensors: Sequence[str]) -> Definition:
    """Return the body of a case function for an element-wise function, and the names that it imports."""
    values = ", ".join(f'"{name}": normal()' for name in tensors)
    special = ", ".join(f'"{name}": special' for name in tensors)
    body = f"""\
    domains = {{{values}}}  # {MARK}: values between the points where the function jumps
    patterns = [*UNIFORM, pattern_template("special", (19,), smoke=True)]
    return Elementwise(prototype).cases(
        shapes.with_domains(
            {{{special}}} if shapes.label == "special" else domains,
            arguments=ARGUMENTS,
            dtypes=DtypeSelection.all if shapes.smoke else DtypeSelection.leading,
        )
        for shapes in patterns
    )"""
    return body, {
        "diopi_test.cases.domains": ["normal", "special"],
        "diopi_test.cases.elementwise": ["UNIFORM", "Elementwise", "pattern_template"],
    }


def _template_cases(tensors: Sequence[str]) -> Definition:
    """Return the body of a case function for other functions, and the names that it imports."""
    shapes = ", ".join(f'"{name}": tensor(4, 5)' for name in tensors)
    body = f"""\

    def tensors(template: CaseTemplate, dtype: Dtype) -> Mapping[str, TensorTemplate]:
        return {{{shapes}}}  # {MARK}: the shape and the domain of each tensor

    return expand(prototype, [CaseTemplate("small", (), ARGUMENTS, dtypes=DtypeSelection.all, smoke=True)], tensors)"""
    return body, {
        "collections.abc": ["Mapping"],
        "diopi_proto.types": ["Dtype"],
        "diopi_test.cases.template": ["CaseTemplate", "TensorTemplate", "expand", "tensor"],
    }


def _insert_into_interface(tree: Path, request: ScaffoldRequest, names: Sequence[str]) -> str:
    """Return the list of all function names with the new `names` after the last function of the family."""
    family = set(re.findall(r"^def (diopi\w+)", (tree / PROTOTYPES / f"{request.family}.py").read_text("utf-8"), re.M))
    lines = (tree / INTERFACE).read_text("utf-8").splitlines()
    last = max(number for number, line in enumerate(lines) if line in family)
    return "\n".join([*lines[: last + 1], *names, *lines[last + 1 :], ""])


def _insert_into_table(tree: Path, operator: str, functions: Sequence[ScaffoldDeclaration]) -> str:
    """Return the table of PyTorch's operators with lines for an operator and its gradient.

    Args:
        tree: the source tree.
        operator: the name of the operator of PyTorch.
        functions: the declarations of the function and of its gradient function.
    """
    heading, *lines = (tree / ATEN_TABLE).read_text("utf-8").splitlines()
    rows = {name: f"{name}\t{f.name}" for name, f in zip([operator, f"{operator}_backward"], functions, strict=False)}
    lines = [*(line for line in lines if line.partition("\t")[0] not in rows), *rows.values()]
    return "\n".join([heading, *sorted(lines), ""])


def _insert_renamed(tree: Path, functions: Sequence[ScaffoldDeclaration]) -> str:
    """Return the module of renamed functions of torch_cpu with new names in the list."""
    before, names, after = re.split(
        r'(?s)(?<=RENAMED = """\n)(.*?)(?=""")', (tree / TORCH_FUNCTIONS).read_text("utf-8"), maxsplit=1
    )
    new = sorted([*names.split(), *(function.name.removeprefix("diopi") for function in functions)])
    return before + textwrap.fill(" ".join(new), LINE_LENGTH) + "\n" + after
