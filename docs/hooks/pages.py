"""Pages of the site that are generated from the README, the changelog and the prototypes, and labels in Chinese.

MkDocs calls the functions whose names begin with `on_`.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from diopi_proto.families import families
from diopi_proto.headers import declaration
from diopi_proto.interface import header_of, prototypes
from diopi_proto.messages import pluralize
from diopi_proto.prototype import Prototype

ROOT = Path(__file__).parents[2]

FROM_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages that are files in the root of the repository."""

CHINESE: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("chinese.toml").read_text("utf-8"))

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")

API = "API"

LINE = 80
"""Maximum number of characters of a declaration on one line."""

english_titles: dict[int, str] = {}
"""The titles of the navigation in English, by the identity of the item."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the reference of the functions to the navigation, with one page per family."""
    pages: list[Any] = ["api/functions.md", *({family: f"api/{family}.md"} for family in families())]
    assert config.nav is not None
    config.nav.insert(-1, {API: pages})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    generated = {page: ROOT.joinpath(name).read_text("utf-8") for name, page in FROM_ROOT.items()}
    generated |= {"api/functions.md": _index(), **{f"api/{family}.md": _family(family) for family in families()}}
    for path, content in generated.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace links to files of the repository by links to their pages, or by their names if they have no page."""
    source = page.file.src_uri
    folder = ROOT if source in FROM_ROOT.values() else Path(config.docs_dir, source).parent

    def led(link: re.Match[str]) -> str:
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

    return LINK.sub(led, markdown)


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Navigation) -> dict[str, Any]:
    """Show labels and navigation in the language of the page."""
    is_chinese = page.file.src_uri.startswith("zh/")
    config.theme["language"] = "zh" if is_chinese else "en"
    for item in _items(nav.items):
        english = english_titles.setdefault(id(item), item.title)
        item.title = CHINESE["titles"].get(english, english) if is_chinese else english
    for scheme in config.theme["palette"]:
        toggle = scheme["toggle"]
        english = english_titles.setdefault(id(toggle), toggle["name"])
        toggle["name"] = CHINESE["palette"][english] if is_chinese else english
    return context


def _items(items: Any) -> Iterator[Any]:
    """Yield the sections and pages of a navigation."""
    for item in items:
        yield item
        yield from _items(item.children or ())


def _index() -> str:
    by_header: dict[str, list[str]] = defaultdict(list)
    for name, prototype in prototypes().items():
        by_header[header_of(name)].append(f"[{name}]({prototype.family}.md#{name.lower()})")
    lists = (f"## `{header}`\n\n{', '.join(names)}" for header, names in by_header.items())
    head = (
        f"# The functions\n\nThis page lists all {len(prototypes())} functions of the standard. The prototypes are in "
        "`diopi_proto/functions/`. `diopi-test list` shows the reference, cases and vendors of each function."
    )
    return "\n\n".join((head, *lists))


def _family(family: str) -> str:
    members = [prototype for prototype in prototypes().values() if prototype.family == family]
    number = pluralize(len(members), "function")
    head = f"# {family}\n\n{number}. The reference, the cases and the implementations are in modules of the same name."
    return "\n\n".join((head, *(_function(prototype) for prototype in members)))


def _function(prototype: Prototype) -> str:
    facts = "\n".join(f"- {line}" for line in _facts(prototype))
    return f"## {prototype.name}\n\n```c\n{_declared(prototype)}\n```\n\n{_escaped(prototype.doc)}\n\n{facts}"


def _declared(prototype: Prototype) -> str:
    """Return the C declaration; a long one has a parameter per line."""
    text = declaration(prototype)
    if len(text) <= LINE:
        return text
    name, _, parameters = text.removesuffix(")").partition("(")
    return f"{name}(\n    " + parameters.replace(", ", ",\n    ") + ")"


def _facts(prototype: Prototype) -> Iterator[str]:
    yield f"header: `{header_of(prototype.name)}`"
    if prototype.dtypes:
        yield f"element types: {', '.join(dtype.name for dtype in prototype.dtypes)}"
    for name, dtypes in prototype.argument_dtypes.items():
        yield f"element types of `{name}`: {', '.join(dtype.name for dtype in dtypes)}"
    yield f"guarantee: {prototype.guarantee}"
    forms = [p.name for p in prototypes().values() if p.base == prototype.base and p.name != prototype.name]
    for label, names in (("other forms", forms), ("gradient", [prototype.backward] if prototype.backward else [])):
        if names:
            yield f"{label}: " + ", ".join(f"[{name}]({prototypes()[name].family}.md#{name.lower()})" for name in names)


def _escaped(text: str) -> str:
    """Return a docstring as Markdown, with special characters escaped outside of backticks."""
    parts = text.split("`")
    return "`".join(re.sub(r"([*_<\[\]|#\\])", r"\\\1", part) if i % 2 == 0 else part for i, part in enumerate(parts))
