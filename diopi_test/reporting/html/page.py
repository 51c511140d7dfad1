"""A page in one file: style, scripts, texts and data."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any


def page(title: str, data: Mapping[str, Any], scripts: Sequence[str]) -> str:
    """Return the page with a title, and with data for these scripts."""
    style = _asset("style.css")
    script = "\n".join(('(() => {\n"use strict";', *map(_asset, scripts), "})();"))
    return Template(_asset("page.html")).substitute(
        policy=f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; base-uri 'none'",
        title=escape(" ".join(title.split())),
        style=style,
        texts=_embedded(json.loads(_asset("texts.json"))),
        data=_embedded({"title": title, **data}),
        script=script,
    )


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    """Return the digest that the content security policy allows."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _embedded(content: Any) -> str:
    """Return JSON without markup, so that it can't end the HTML element around it."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
