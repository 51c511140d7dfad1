"""`python -m diopi_proto`: print where the headers and CMake files are, or regenerate the headers."""

from __future__ import annotations

import argparse
from importlib.resources import files

from diopi_proto import headers


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m diopi_proto", description=__doc__)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--include-dir", action="store_true", help="print the folder that contains diopi/*.h")
    choice.add_argument("--cmake-dir", action="store_true", help="print the folder to pass as -Ddiopi_DIR")
    choice.add_argument("--write", action="store_true", help="regenerate the headers in that folder")
    options = parser.parse_args()
    if options.include_dir:
        print(headers.INCLUDE_DIR)
    elif options.cmake_dir:
        print(files("diopi_proto") / "cmake")
    else:
        headers.write(headers.INCLUDE_DIR)


if __name__ == "__main__":
    main()
