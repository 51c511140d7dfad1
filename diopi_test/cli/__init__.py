"""The command line `diopi-test`, one module a command.

May import every chapter. A command imports what it needs when it runs, so that `--help` and wrong usage answer at once.
"""

import click

from diopi_test.cli.audit import audit
from diopi_test.cli.compare import compare
from diopi_test.cli.export import export
from diopi_test.cli.fingerprint import fingerprint
from diopi_test.cli.fuzz import fuzz
from diopi_test.cli.gen_data import gen_data
from diopi_test.cli.import_config import import_config
from diopi_test.cli.list_functions import list_functions
from diopi_test.cli.original_words import explain_original_words
from diopi_test.cli.report import report
from diopi_test.cli.run import run
from diopi_test.cli.show import show
from diopi_test.cli.submit import submit
from diopi_test.cli.trace import trace
from diopi_test.cli.verify import verify
from diopi_test.cli.waive import waive

__all__ = ["main"]


@click.group()
@click.version_option(package_name="diopi")
@explain_original_words()
def main() -> None:
    """DIOPI conformance: check a vendor's operators against the standard."""


for command in (
    *(run, report, compare, submit, verify, waive, show),
    *(gen_data, audit, fingerprint, fuzz, trace, export, import_config, list_functions),
):
    main.add_command(command)
