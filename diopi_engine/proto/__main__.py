"""`python -m diopi_engine.proto`: print the folder of the headers, or regenerate them."""

from __future__ import annotations

import argparse

from diopi_engine.proto import headers


def main() -> None:
    """Parse the command line; print the folder of the headers, or regenerate them."""
    parser = argparse.ArgumentParser(prog="python -m diopi_engine.proto", description=__doc__)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--include-dir", action="store_true", help="print the folder that contains the headers")
    choice.add_argument("--write", action="store_true", help="regenerate the headers in that folder")
    if parser.parse_args().include_dir:
        print(headers.INCLUDE_DIR)
    else:
        headers.write_headers(headers.INCLUDE_DIR)


if __name__ == "__main__":
    main()
