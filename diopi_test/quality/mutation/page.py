"""The kill matrix as a page of the documentation, in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from diopi_proto.interface import lookup
from diopi_test.quality.mutation.kinds import DESCRIPTIONS
from diopi_test.quality.mutation.matrix import (
    MutantResult,
    MutationReport,
    count_killed,
    count_killing_checks,
    format_score,
)
from diopi_test.quality.mutation.report import assign_signs, matrix_row

# The constants in capital letters are texts of the page.
INTRODUCTION = """# Mutation testing

This page is for contributors who write cases. Afterwards you know which defects the cases detect and which they can't
detect. The command `diopi-test mutation-test --markdown docs/mutation_testing.md` generates this page.

A mutant is a correct vendor with one injected defect. The command runs the cases of a function at level full against
each mutant until a case fails: this case kills the mutant. A mutant counts for a function only if it changes a result
in one of the function's cases. Three changes don't count. They are another payload of a NaN, a difference within the
rounding of the reference, and other values of elements that the standard doesn't specify. A mutant gets its results in
one of these ways:

- It modifies the expected results.
- It computes the reference with wrong arguments.
- It computes a reference whose source was changed: another operator, number or function.
- It draws random results with NumPy.

Some mutants cache a value of an earlier call under an incomplete key and use it in a later call:

| cached value | key |
| --- | --- |
| an attribute, or all attributes | the shapes and element types of the tensors |
| element types | the shapes of the tensors |
| the order of tensors | the shapes and element types of the tensors, in any order |
| strides | everything except strides and data |
| the kind of a scalar | shapes, element types and attributes, where 1 and 1.0 are equal |
| results | everything except the data, or only the shapes and element types of the results |

For these mutants, the order of the cases matters: they run in the order of their file, as in a run. The cases of the
smoke level run first, as if the other cases did not exist.

Further mutants need cases that are derived from the stored cases:

| the mutant is wrong | cases |
| --- | --- |
| if parameters of a call share memory | class `aliased` |
| if calls are in flight at the same time | class `concurrent` |
| in some of many calls, or because every call leaks memory | the soak test of the function |
"""

KINDS = """## Kinds of mutants

A kind comprises the mutants with the same defect in different parameters, results or places of a formula.

| kind | what a mutant of this kind does |
| --- | --- |"""

MATRIX = """## Killed mutants by kind and family

A row belongs to a kind of mutants, and its second column is the sign of the kind in [the last table](#functions). The
other columns count the killed mutants in the functions of a family. A single number means that every mutant that
changed a result was killed; `-` means that there was none. The last column lists the [checks](checks.md) that failed
first in the cases that killed mutants, the most frequent one first.
"""

WITHOUT_EFFECT = """## Parameters without effect

No mutant of these parameters changes a result in any case. The other arguments, or the tensors that the caller
allocated, determine the results. The numbers in parentheses count attempts to change the parameter. "2 of 60" means
that in 2 of 60 attempts, the new value contradicted other arguments, so there was no result.
"""


EQUIVALENT = """{equivalent} of {changes} changes of formulas changed no result in any case. Some of them concern only
error budgets. For the others, another line or NumPy compensates for the change. The option `--json` lists them.
"""

FUNCTIONS = """## Functions

Each letter stands for a kind of mutant. A letter means that every mutant of this kind that changed a result was killed.
The sign `!` means that a mutant survived, and `.` that no mutant of the kind changed a result. The table of [killed
mutants by kind](#killed-mutants-by-kind-and-family) lists the block and the letter of each kind. The last column lists
the checks that failed first in the cases that killed mutants.
"""


NOT_COVERED = """## Caching mutants that the cases don't cover

The cases can't reveal these mutants in any order. A case reveals a caching mutant if two calls have equal shapes and
types, but different cached values and different results. Often no such calls exist, because the shapes of other tensors
determine the value.
"""


def render_page(reports: Sequence[MutationReport]) -> str:
    """Return the page: killed mutants by kind and family, survivors, and mutants that can't be killed.

    Args:
        reports: the reports of the functions.

    Returns:
        The page in Markdown.
    """
    parts = [
        INTRODUCTION,
        f"**{format_score(reports)}.**\n",
        *_render_kinds(reports),
        *_render_matrix(reports),
        *_render_survivors(reports),
        *_render_parameters_without_effect(reports),
        *_render_not_covered(reports),
    ]
    return "\n".join([*parts, *_render_functions(reports)])


def _family_of(report: MutationReport) -> str:
    """Return the family of a report's function."""
    return lookup(report.function).family


def _render_kinds(reports: Sequence[MutationReport]) -> Iterator[str]:
    """Yield the lines of the table that says what each kind of mutant does."""
    yield KINDS
    yield from (_table_row(kind, DESCRIPTIONS[kind]) for kind in assign_signs(reports) if kind in DESCRIPTIONS)
    yield ""


def _render_matrix(reports: Sequence[MutationReport]) -> Iterator[str]:
    """Yield the lines of the table of killed mutants by kind and family."""
    families = list(dict.fromkeys(map(_family_of, reports)))
    results = [(_family_of(report), result) for report in reports for result in report.applicable]
    yield MATRIX
    yield _table_row("", "", *families, "all", "first failed check")
    yield _table_row(*["---"] * 2 + ["---:"] * (len(families) + 1), "---")
    functions = Counter(map(_family_of, reports))
    yield _table_row("functions", "", *(str(functions[family]) for family in families), str(len(reports)), "")
    for kind, sign in assign_signs(reports).items():
        of_kind = [(family, result) for family, result in results if result.kind == kind]
        cells = [_format_killed([result for family, result in of_kind if family == column]) for column in families]
        all_of_kind = [result for _, result in of_kind]
        yield _table_row(kind, sign, *cells, _format_killed(all_of_kind), _format_checks(all_of_kind))
    yield ""


def _table_row(*cells: str) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def _format_killed(results: Sequence[MutantResult]) -> str:
    """Return the number of killed mutants, followed by the total unless all were killed; `-` without mutants."""
    killed = count_killed(results)
    return "-" if not results else str(killed) if killed == len(results) else f"{killed} of {len(results)}"


def _format_checks(results: Iterable[MutantResult]) -> str:
    """Return the checks that killed mutants, the most frequent one first."""
    return ", ".join(check for check, _ in count_killing_checks(results).most_common())


def _render_survivors(reports: Sequence[MutationReport]) -> Iterator[str]:
    """Yield the lines of the section about survivors."""
    survivors = [(report.function, result) for report in reports for result in report.survivors]
    yield "## Survivors\n"
    yield from (f"- `{function}`: {result.mutant}, in {result.change_count} cases" for function, result in survivors)
    yield "" if survivors else "None.\n"
    changes = [result for report in reports for result in report.results if result.kind == "formula changed"]
    equivalent = sum(not result.change_count for result in changes)
    yield EQUIVALENT.format(equivalent=equivalent, changes=len(changes))


def _render_parameters_without_effect(reports: Sequence[MutationReport]) -> Iterator[str]:
    """Yield the lines of the section about parameters for which no mutant changed a result."""
    yield WITHOUT_EFFECT
    parameters: dict[str, list[str]] = {}
    for report in reports:
        for name, (undefined, attempts) in report.parameters_without_effect.items():
            parameters.setdefault(name, []).append(f"{report.function} ({undefined} of {attempts})")
    yield from (f"- `{name}` of {', '.join(functions)}" for name, functions in parameters.items())
    yield ""


def _render_not_covered(reports: Sequence[MutationReport]) -> Iterator[str]:
    """Yield the lines of the section about caching mutants that no two cases can reveal."""
    yield NOT_COVERED
    functions: dict[str, list[str]] = {}
    for report in reports:
        for result in report.not_covered:
            functions.setdefault(result.mutant, []).append(report.function)
    yield from (f"- {mutant}: {', '.join(names)}" for mutant, names in functions.items())
    yield "" if functions else "None.\n"


def _render_functions(reports: Sequence[MutationReport]) -> Iterator[str]:
    """Yield the lines of the table with one row per function."""
    yield FUNCTIONS
    yield _table_row("function", "mutants", "", "first failed checks")
    yield _table_row("---", "---:", "---", "---")
    sign_of = assign_signs(reports)
    for report in reports:
        row = f"`{matrix_row(report, sign_of)}`"
        yield _table_row(
            f"`{report.function}`", _format_killed(report.applicable), row, _format_checks(report.applicable)
        )
    yield ""
