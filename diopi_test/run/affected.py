"""The cases that a change of a vendor can affect.

A change of a function can affect:

- the function and its in-place and scalar forms
- its gradient function
- functions whose cases take a result of the changed function as an argument (`ResultOf`)
- for a vendor in Python, all functions whose implementing module is the changed one or imports it
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self, final

from diopi_impl import IEEE
from diopi_proto.interface import prototypes
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.execution.verdict import Verdict
from diopi_test.run.recorder import LogContent
from diopi_test.run.result_dependencies import result_dependencies
from diopi_test.run.vendor_sources import VendorSources


@final
@dataclass(frozen=True, kw_only=True)
class VendorVersion:
    """The version of a vendor, of the baseline that it is tested with, and of the arithmetic that it declares.

    Attributes:
        library: the SHA-256 of a compiled vendor's file; empty for a vendor in Python.
        baseline: the digest of the baseline.
        sources: the sources of a vendor in Python.
        numerics: the digest of the declared arithmetic; empty if it is unknown because the vendor does not start.
    """

    library: str
    baseline: str
    sources: VendorSources
    numerics: str = IEEE.digest


@final
@dataclass(frozen=True, kw_only=True)
class AffectedCases:
    """The cases that a change can affect.

    Attributes:
        options: the command-line options that select them, with their values.
        functions: the affected functions; None for all functions.
        ids: the IDs of the affected cases; None for all cases of `functions`.
        reason: why these cases are affected, as a clause for people.
    """

    options: tuple[tuple[str, str], ...]
    functions: frozenset[str] | None
    ids: frozenset[str] | None
    reason: str

    @classmethod
    def by_functions(cls, names: Sequence[str], sources: VendorSources) -> Self:
        """Return the cases that a change of these functions can affect.

        Args:
            names: The names of the changed functions.
            sources: The sources of a vendor in Python. Functions that depend on the module of a changed function are
                affected, too.
        """
        changed = frozenset(names)
        for name in names:
            if module := sources.functions.get(name):
                changed |= sources.functions_that_depend_on(module)
        options = tuple(("--affected-by", name) for name in names)
        functions = dependent_functions(changed)
        return cls(
            options=options, functions=functions, ids=None, reason=f"a change of {', '.join(names)} can affect them"
        )

    @classmethod
    def since(cls, log: LogContent, version: VendorVersion) -> Self:
        """Return the cases of an earlier run that later changes can affect, and its cases without a verdict.

        Args:
            log: The log of the earlier run.
            version: The present version of the vendor and of the baseline.
        """
        functions, reason = _changes_since(log, version)
        scheduled = log.schedule or ()
        ended = {case.id for case in log.cases.values() if case.verdict is not Verdict.not_run}
        ids = frozenset(
            name for name in scheduled if functions is None or name.partition("[")[0] in functions or name not in ended
        )
        return cls(options=(("--since", str(log.path)),), functions=None, ids=ids, reason=reason)

    def wants(self, function: str, case_id: str) -> bool:
        """Return whether the change can affect a case."""
        return (self.functions is None or function in self.functions) and (self.ids is None or case_id in self.ids)

    def wants_function(self, name: str) -> bool:
        """Return whether the change can affect a case of this function."""
        if self.functions is not None and name not in self.functions:
            return False
        return self.ids is None or any(case_id.startswith(f"{name}[") for case_id in self.ids)


def _changes_since(log: LogContent, version: VendorVersion) -> tuple[frozenset[str] | None, str]:
    """Return the functions that changes since a run can affect, or None for all, and the reason.

    Args:
        log: the log of the run.
        version: the vendor and the baseline as they are now.
    """
    if log.header.baseline.digest != version.baseline:
        return None, "the baseline differs from that of the log"
    if version.numerics and log.numerics.digest != version.numerics:
        return None, "the declared numerics differ from those of the log"
    if log.vendor.digest != version.library:
        return None, "the vendor's library differs from that of the log"
    if version.library:
        return frozenset(), "the vendor's library is identical to that of the log"
    if not log.sources.modules or not version.sources.modules:
        return None, "the sources of the vendor, or those in the log, are unknown"
    changed = version.sources.functions_that_differ(log.sources)
    functions = dependent_functions(changed) | ({RUNTIME} if changed else set())
    return (
        functions,
        "the vendor's sources differ from those of the log" if functions else "the vendor's sources have not changed",
    )


def dependent_functions(changed: Iterable[str]) -> frozenset[str]:
    """Return the changed functions, and the functions that depend on them.

    These are the in-place and scalar forms of the changed functions, and their gradient functions. Functions whose
    cases take a result of one of these forms as an argument are added.
    """
    bases = {prototypes()[name].base for name in changed if name in prototypes()}
    if not bases:
        return frozenset(changed)
    gradients = {prototypes()[base].backward for base in bases}
    forms = {name for name, prototype in prototypes().items() if prototype.base in bases}
    gradient_forms = {name for name, prototype in prototypes().items() if prototype.base in gradients}
    dependents = {name for name, sources in result_dependencies().items() if sources & forms}
    return frozenset({*changed, *forms, *gradient_forms, *dependents})
