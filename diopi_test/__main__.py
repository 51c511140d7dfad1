"""`python -m diopi_test` is `diopi-test`."""

from diopi_test.cli import main

main()
