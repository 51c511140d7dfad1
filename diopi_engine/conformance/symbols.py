"""`python symbols.py LIBRARY NAME...`: which symbols a library has, as JSON. It is run as a file, to import nothing."""

import ctypes
import json
import sys

if __name__ == "__main__":
    try:
        library = ctypes.CDLL(sys.argv[1])
    except OSError as error:
        sys.exit(str(error))
    print(json.dumps([name for name in sys.argv[2:] if hasattr(library, name)]))
