"""Generate pages of the site from files in the root of the repository and from the prototypes.

The module also translates the navigation of Chinese pages. MkDocs calls the functions whose names begin with `on_`.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from facts import count_cases, defects, margins, rejected_calls
from formulas import LEGEND, describe_formula
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from python_interface import python_page

from diopi_proto import description
from diopi_proto.families import families, family_conventions
from diopi_proto.headers import declaration
from diopi_proto.interface import header_of, prototypes
from diopi_proto.messages import pluralize
from diopi_proto.prototype import Prototype

ROOT = Path(__file__).parents[2]

FROM_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""The pages that are files in the root of the repository: the path of the page, by the name of the file."""

CHINESE: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("chinese.toml").read_text("utf-8"))
"""The Chinese labels by their English labels: `titles` of the navigation, and `palette` for the color schemes."""

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
"""A link in Markdown; the groups are the text and the target."""

API = "API"
"""The title of the section with the reference of the functions."""

MAX_DECLARATION_WIDTH = 80
"""Maximum number of characters of a declaration on one line."""

english_labels: dict[int, str] = {}
"""The English titles of the navigation and labels of the color schemes, by the `id` of the item with the label."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the list of all functions, the Python interface and the page of each family to the navigation."""
    pages: list[Any] = ["api/functions.md", {"The Python interface": "api/python.md"}]
    pages += [{family: f"api/{family}.md"} for family in families()]
    assert config.nav is not None
    config.nav.insert(-1, {API: pages})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages: root files, all functions, the Python interface, families and functions."""
    generated = {page: ROOT.joinpath(name).read_text("utf-8") for name, page in FROM_ROOT.items()}
    generated |= {"api/functions.md": _index(), "api/python.md": python_page()}
    generated |= {f"api/{family}.md": _family(family) for family in families()}
    generated |= {f"api/{name}.md": _function(prototype) for name, prototype in prototypes().items()}
    for path, content in generated.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text with links to the site's pages instead of files of the repository.

    A link to a file without a page becomes the text of the link, followed by the name of the file.
    """
    source = page.file.src_uri
    folder = ROOT if source in FROM_ROOT.values() else Path(config.docs_dir, source).parent

    def replace_link(link: re.Match[str]) -> str:
        """Return the replacement of one link."""
        text, target = link.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in path or not (folder / path).exists():
            return link[0]
        file = (folder / path).resolve()
        name = file.relative_to(ROOT).as_posix()
        inside = FROM_ROOT.get(name) or (name.removeprefix("docs/") if name.startswith("docs/") else None)
        if inside is None:
            return f"{text} (`{name}`)"
        up = "../" * source.count("/")
        return f"[{text}]({up}{inside}{'#' + anchor if anchor else ''})"

    return LINK.sub(replace_link, markdown)


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Navigation) -> dict[str, Any]:
    """Show labels and navigation in the language of the page."""
    is_chinese = page.file.src_uri.startswith("zh/")
    config.theme["language"] = "zh" if is_chinese else "en"
    for item in _items(nav.items):
        english = english_labels.setdefault(id(item), item.title)
        item.title = CHINESE["titles"].get(english, english) if is_chinese else english
    for scheme in config.theme["palette"]:
        toggle = scheme["toggle"]
        english = english_labels.setdefault(id(toggle), toggle["name"])
        toggle["name"] = CHINESE["palette"][english] if is_chinese else english
    return context


def _items(items: Any) -> Iterator[Any]:
    """Yield all sections and pages of a navigation, also those in sections."""
    for item in items:
        yield item
        yield from _items(item.children or ())


def _index() -> str:
    """Return the Markdown page that lists all functions by header."""
    by_header: dict[str, list[str]] = defaultdict(list)
    for name in prototypes():
        by_header[header_of(name)].append(_link(name))
    lists = (f"## `{header}`\n\n{', '.join(names)}" for header, names in by_header.items())
    head = (
        f"# The functions\n\nThis page lists all {len(prototypes())} functions of the standard. The prototypes are in "
        "`diopi_proto/functions/`. `diopi-test describe NAME` also shows the vendors of a function, and its cases "
        f"at every level.\n\n{LEGEND}"
    )
    return "\n\n".join((head, *lists))


def _link(name: str) -> str:
    """Return a link from a page of the folder `api` to the page of a function."""
    return f"[{name}]({name}.md)"


def _family(family: str) -> str:
    """Return the Markdown page of a family: its conventions, and a table of its functions."""
    members = [prototype for prototype in prototypes().values() if prototype.family == family]
    number = pluralize(len(members), "function")
    head = f"# {family}\n\n{number}. The reference, the cases and the implementations are in modules of the same name."
    rows = (f"| {_link(prototype.name)} | {_cell(prototype.doc.partition(chr(10))[0])} |" for prototype in members)
    conventions = _to_markdown(family_conventions(family))
    return "\n".join((head, "", conventions, "", "| function | summary |", "| --- | --- |", *rows))


def _function(prototype: Prototype) -> str:
    """Return the Markdown page of a function: what the standard states, and what the suite and other software show."""
    sections = {
        "Formula": describe_formula(prototype),
        "Parameters": _parameters(prototype),
        "Results": _list(description.describe_results(prototype)),
        "Errors": _errors(prototype.name),
        "Cases": _cases(prototype.name),
        "Margins": _margins(prototype.name),
        "Known defects of other software": _defects(prototype.name),
        "Implementation in Python": _implementation(prototype),
        "Related": _list(_related(prototype)),
    }
    head = f"# {prototype.name}\n\n```c\n{_declaration(prototype)}\n```\n\n{_to_markdown(prototype.doc)}"
    return "\n\n".join((head, *(f"## {title}\n\n{text}" for title, text in sections.items() if text)))


def _parameters(prototype: Prototype) -> str:
    """Return a table of all parameters except the context."""
    rows = (
        f"| `{p.name}` | {p.role}{', may be NULL' if p.optional else ''} | {_cell(' '.join(p.notes))} "
        f"| {_cell(' '.join(p.dtypes) if p.role == 'result' else ', '.join(p.dtypes))} |"
        for p in description.describe_parameters(prototype)[1:]
    )
    return "\n".join(("| parameter | role | values | element types |", "| --- | --- | --- | --- |", *rows))


def _errors(function: str) -> str:
    """Return the invalid calls that the suite makes; nothing if it makes none."""
    labels = rejected_calls(function)
    if not labels:
        return ""
    listed = ", ".join(f"`{label}`" for label in labels)
    return (
        f"A vendor must reject the following invalid calls. The suite makes each of them in a [negative test]"
        f"(../classes.md), whose label begins with `negative-`: {listed}."
    )


def _cases(function: str) -> str:
    """Return a table of the cases at level smoke by class; nothing if the function has no cases."""
    counts = count_cases(function)
    if not counts:
        return ""
    rows = (f"| {name} | {count} |" for name, count in counts.items())
    head = f"Level smoke has {pluralize(counts.total(), 'case')} of this function, by [class](../classes.md):"
    return "\n".join((head, "", "| class | cases |", "| --- | ---: |", *rows))


def _margins(function: str) -> str:
    """Return the largest errors of the built-in vendors; nothing if no result is rounded."""
    ratios = margins(function)
    if not ratios:
        return ""
    vendors = " and ".join(f"{ratio} with `{vendor}`" for vendor, ratio in ratios.items())
    return f"The largest error, divided by its [budget](../budgets.md), is {vendors} ([margins](../margins.md))."


def _defects(function: str) -> str:
    """Return a table of the defects that `docs/found.md` lists; nothing if it lists none."""
    rows = [f"| {' | '.join(cells)} |" for cells in defects(function)]
    if not rows:
        return ""
    head = "[Defects in other software](../found.md) shows how to reproduce these defects:"
    return "\n".join((head, "", "| library | call | actual | expected |", "| --- | --- | --- | --- |", *rows))


def _implementation(prototype: Prototype) -> str:
    """Return the signature of an implementation in Python, and what it receives and returns."""
    code = f'@vendor.implements("{prototype.name}")\n{description.python_signature(prototype)}'
    return f"```python\n{code}\n```\n\n{_list(description.describe_implementation(prototype))}"


def _related(prototype: Prototype) -> Iterator[str]:
    """Yield one line each for the header, the family, the other forms, the gradient and PyTorch's operators."""
    yield f"header: `{header_of(prototype.name)}`"
    yield f"family: [{prototype.family}]({prototype.family}.md)"
    gradient = [prototype.backward] if prototype.backward else []
    for label, names in (("other forms", description.other_forms(prototype)), ("gradient", gradient)):
        if names:
            yield f"{label}: {', '.join(map(_link, names))}"
    if operators := description.aten_operators(prototype):
        yield f"PyTorch: {', '.join(f'`aten::{operator}`' for operator in operators)}"


def _list(lines: Iterable[str]) -> str:
    """Return a list in Markdown."""
    return "\n".join(f"- {line}" for line in lines)


def _cell(text: str) -> str:
    """Return a text as a cell of a table."""
    return _to_markdown(text.replace("\n", " "))


def _declaration(prototype: Prototype) -> str:
    """Return the C declaration; a long declaration has one line per parameter."""
    text = declaration(prototype)
    if len(text) <= MAX_DECLARATION_WIDTH:
        return text
    name, _, parameters = text.removesuffix(")").partition("(")
    return f"{name}(\n    " + parameters.replace(", ", ",\n    ") + ")"


def _to_markdown(text: str) -> str:
    """Return a docstring as Markdown, with special characters escaped outside of backticks."""
    return "`".join(part if i % 2 else _escape_special(part) for i, part in enumerate(text.split("`")))


def _escape_special(text: str) -> str:
    """Return a text in which no character has a meaning in Markdown or HTML."""
    return re.sub(r"([*_\[\]|#\\])", r"\\\1", text).replace("<", "&lt;")
