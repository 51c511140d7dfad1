"""docs/fingerprint.md has the names of summation orders that fingerprints use."""

import ast
import re
from pathlib import Path

from diopi_test.fingerprint.orders import describe
from diopi_test.fingerprint.trees import Tree

PAGE = Path(__file__).parent.parent.parent / "docs" / "fingerprint.md"
ROW = re.compile(r"^\| ([a-z0-9, ]+) \| ([(0-9+)]+)(?:, .*)? \|$", re.MULTILINE)


def tree(node: ast.expr) -> Tree:
    """Return the tree of additions of a Python expression."""
    if isinstance(node, ast.BinOp):
        return (tree(node.left), tree(node.right))
    assert isinstance(node, ast.Constant)
    assert isinstance(node.value, int)
    return node.value


def test_the_examples_of_orders_have_the_documented_names() -> None:
    rows = dict(ROW.findall(PAGE.read_text("utf-8")))
    at_once = rows.pop("sequential, 4 at once")
    assert at_once == "(0+1+2+3)+4+5+6+7"
    assert describe(((0, 1, 2, 3), 4, 5, 6, 7)) == "sequential, 4 at once"
    assert {words: describe(tree(ast.parse(sum_, mode="eval").body)) for words, sum_ in rows.items()} == {
        words: words for words in rows
    }
    assert len(rows) == 7
