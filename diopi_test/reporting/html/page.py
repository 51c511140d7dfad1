"""Build an HTML page in one file that contains its style, scripts, texts and data."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from diopi_test.reporting.html.markup import Markup


def page(title: str, data: Mapping[str, Any], scripts: Sequence[str], summary: Markup, language: str = "en") -> str:
    """Return an HTML page with static content, scripts and the data that the scripts display.

    Args:
        title: The title.
        data: The data that the scripts display. It must be serializable as JSON.
        scripts: The names of the script files, in the order in which they run.
        summary: The content of the page until the scripts replace it.
        language: The language of the summary.

    Returns:
        The content of the HTML file.
    """
    style = asset("style.css")
    script = "\n".join(('(() => {\n"use strict";', *map(asset, scripts), "})();"))
    return Template(asset("page.html")).substitute(
        policy="; ".join(
            (
                "default-src 'none'",
                f"style-src {policy_digest(style)}",
                f"script-src {policy_digest(script)}",
                "base-uri 'none'",
            )
        ),
        title=escape(" ".join(title.split())),
        style=style,
        summary=summary,
        language=language,
        texts=_embedded(json.loads(asset("texts.json"))),
        messages=_embedded(json.loads(asset("messages.json"))),
        data=_embedded({"title": title, **data}),
        script=script,
    )


def asset(name: str) -> str:
    """Return the content of a file in the folder of this module."""
    return files(__package__).joinpath(name).read_text("utf-8")


def policy_digest(text: str) -> str:
    """Return the source expression with which a content security policy allows an inline style or script."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _embedded(content: Any) -> str:
    """Return a value as JSON in which `<` is escaped, so that the JSON can't end the HTML element around it."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
