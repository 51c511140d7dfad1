"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

import click
from click.shell_completion import CompletionItem

from diopi_impl.plugins import known_vendors
from diopi_proto.messages import describe_unknown
from diopi_test.cases.selection import INDEPENDENT_LEVELS, LEVELS
from diopi_test.cli.console import UnusableError
from diopi_test.run import output
from diopi_test.run.keywords import SelectionError
from diopi_test.run.selection import EXCLUSION_PREFIX

if TYPE_CHECKING:
    from diopi_test.baseline.parallel import ParallelMap


T = TypeVar("T")
"""The type of a function's result."""

F = TypeVar("F", bound=Callable[..., Any])
"""The decorated command."""

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
"""A function that returns the words that a shell suggests for the incomplete value of an option."""


@final
class OutputFile(click.Path):
    """The type of an output file, which is rejected before the work starts if it can't be written."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; fail with a usage error if the file can't be written."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            output.check_writable(path)
        except OSError as error:
            self.fail(str(error), param, ctx)
        return path


@final
class LevelName(click.ParamType[str]):
    """The type of a level's name.

    Args:
        further_names: names that the command accepts besides those of the levels.
    """

    name = "level"

    def __init__(self, further_names: Sequence[str] = ()) -> None:
        self._further_names = further_names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; fail with a usage error and similar names if there is no such level."""
        if value in LEVELS or value in self._further_names:
            return str(value)
        similar = get_close_matches(value, [*LEVELS, *self._further_names], n=1)
        self.fail(describe_unknown(value, [*INDEPENDENT_LEVELS, *self._further_names], "levels", similar), param, ctx)


def default_workers() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def combine_options(options: Sequence[Callable[[Callable[..., Any]], Callable[..., Any]]]) -> Callable[[F], F]:
    """Return a decorator that adds several options to a command; `--help` lists them in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def complete_names(known: Callable[[], Iterable[str]], *, files: bool = False) -> Completer:
    """Return a shell completion for names.

    Args:
        known: returns the names; a name with the prefix `no-` is completed, too.
        files: whether to complete file names if no name matches.

    Returns:
        The function that click calls for the incomplete value.
    """

    def complete(context: click.Context, option: click.Parameter, incomplete: str) -> list[CompletionItem]:
        prefix = EXCLUSION_PREFIX if incomplete.startswith(EXCLUSION_PREFIX) else ""
        items = [
            CompletionItem(prefix + name)
            for name in known()
            if name.startswith(incomplete.removeprefix(EXCLUSION_PREFIX))
        ]
        return items or ([CompletionItem(incomplete, type="file")] if files else [])

    return complete


@contextmanager
def convert_selection_errors() -> Iterator[None]:
    """Return a context manager that converts an invalid selection to a usage error."""
    try:
        yield
    except SelectionError as error:
        raise click.UsageError(str(error)) from error


FORMER_VENDORS = {"diopi_test.quality.echo:vendor": "diopi_test.quality.stub_vendor:vendor"}
"""The current paths of vendors, by their deprecated paths."""


def _rename_vendor(context: click.Context, option: click.Parameter, name: str) -> str:
    """Return the current path of a vendor; print a notice if the given path is deprecated."""
    if name in FORMER_VENDORS:
        click.echo(f"--vendor {name} is deprecated; use --vendor {FORMER_VENDORS[name]} instead", err=True)
    return FORMER_VENDORS.get(name, name)


def torch_setup_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with the option `--torch-setup`; its value becomes a part of the parameter `vendor`."""

    @wraps(command)
    def with_setup(*arguments: Any, vendor: str, torch_setup: str | None, **options: Any) -> Any:
        return command(*arguments, vendor=_add_torch_setup(vendor, torch_setup), **options)

    return click.option(
        "--torch-setup",
        metavar="MODULE:FUNCTION",
        help="With --vendor torch:DEVICE: call this function first, for example to enable a library of operators.",
    )(with_setup)


def _add_torch_setup(vendor: str, setup: str | None) -> str:
    """Return the name of the vendor that calls a setup function first; raise click.UsageError if it can't."""
    if setup is None:
        return vendor
    if not vendor.startswith("torch:") or "+" in vendor:
        raise click.UsageError(f"--torch-setup requires --vendor torch:DEVICE; the vendor is {vendor}")
    if not all(setup.partition(":")):
        raise click.UsageError(f"--torch-setup is {setup!r}, expected MODULE:FUNCTION")
    return f"{vendor}+{setup}"


_only_vendor_option = click.option(
    "--vendor",
    callback=_rename_vendor,
    default="jax_cpu",
    show_default=True,
    help="Vendor under test: a name, torch:DEVICE, jax:PLATFORM, module:attribute, or the path of a .so.",
    shell_complete=complete_names(known_vendors, files=True),
)
"""The option `--vendor` without `--torch-setup`."""

vendor_option = combine_options([_only_vendor_option, torch_setup_option])
"""The options `--vendor` and `--torch-setup`, which together name the vendor under test."""
SOAK_LEVEL = "soak"
"""The name with which `run` selects the soak tests of level full."""


def make_level_option(further_names: Sequence[str] = (), further_help: str = "") -> Callable[[F], F]:
    """Return the option `--level`.

    Args:
        further_names: names that the command accepts besides those of the levels.
        further_help: sentences about these names.

    Returns:
        The decorator of a command.
    """
    names = [*INDEPENDENT_LEVELS, "models-NAME", *further_names]
    return click.option(
        "--level",
        type=LevelName(further_names),
        shell_complete=complete_names(lambda: [*LEVELS, *further_names]),
        metavar=f"[{'|'.join(names)}]",
        default="smoke",
        show_default=True,
        help=f"Level of the baseline; models-NAME has the calls of a single network.{further_help}",
    )


level_option = make_level_option()
"""The option `--level` of commands that accept only the names of levels."""

data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of the baselines. By default, level smoke is in the package, other levels in the user's cache.",
)
"""The option `--data` of commands that read or write baselines."""

workers_option = click.option(
    "-n", "--workers", type=click.IntRange(min=1), help="Number of workers; by default the number of CPUs."
)
"""The option `--workers` of commands that use several processes."""


def _require_distributed(context: click.Context, option: click.Parameter, address: str | None) -> str | None:
    """Return the address of a cluster, or None; raise click.BadParameter if Dask is not installed for an address."""
    if address is not None and find_spec("distributed") is None:
        raise click.BadParameter("Dask is not installed: pip install 'diopi[dask]'", context, option)
    return address


dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    callback=_require_distributed,
    help="Distribute the work over the Dask cluster of this scheduler (tcp://HOST:PORT) instead of local workers.",
)
"""The option `--dask` of commands that can use a cluster."""


@contextmanager
def open_spread(workers: int | None, dask: str | None) -> Iterator[ParallelMap]:
    """Start processes that share the work on many functions, and stop them at the end of the context.

    Args:
        workers: the number of local processes; None for the number of CPUs.
        dask: the address of the scheduler of a cluster that does the work; None for local processes.

    Yields:
        A function that distributes the work, see `ParallelMap`.

    Raises:
        UnusableError: if the cluster can't be reached or fails.
    """
    from diopi_test.baseline.cluster import Cluster, ClusterError
    from diopi_test.baseline.parallel import process_map

    if dask is None:
        yield process_map(workers or default_workers())
        return
    try:
        with Cluster(dask) as cluster:
            yield cluster.spread
    except ClusterError as error:
        raise UnusableError(str(error)) from error


COMMIT_VARIABLES = ("DIOPI_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT")
"""Environment variables with the revision under test: DIOPI's, then those of GitHub, GitLab and Jenkins."""

origin_options = combine_options(
    [
        click.option(
            "--device",
            default="",
            envvar="DIOPI_DEVICE",
            metavar="NAME",
            help="Name of the device under test, for the report and the history. [env var: DIOPI_DEVICE]",
        ),
        click.option(
            "--driver",
            default="",
            envvar="DIOPI_DRIVER",
            metavar="VERSION",
            help="Version of the device's driver, for the report and the history. [env var: DIOPI_DRIVER]",
        ),
        click.option(
            "--commit",
            default="",
            envvar=list(COMMIT_VARIABLES),
            metavar="REVISION",
            help="Revision of the vendor's sources, for the report and the history. "
            f"[env var: {', '.join(COMMIT_VARIABLES)}]",
        ),
    ]
)
"""The options `--device`, `--driver` and `--commit`, which describe the device and the vendor under test."""


durations_option = click.option(
    "--durations",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Show the N slowest functions and the N slowest cases.",
)
"""The option `--durations` of commands that report on cases."""


def output_option(name: str, variable: str, text: str) -> Callable[[F], F]:
    """Return an option for a file that the command writes."""
    return click.option(name, variable, type=OutputFile(), metavar="FILE", help=text)
