"""`python -m diopi_engine`: the same as the command `diopi-engine`."""

from diopi_engine.cli import main

if __name__ == "__main__":
    main(prog_name="diopi-engine")
