"""Print which of the named symbols a library exports, as JSON: `python symbols.py LIBRARY NAME...`.

The file is run as a script so that it imports nothing else.
"""

import ctypes
import json
import sys

if __name__ == "__main__":
    try:
        library = ctypes.CDLL(sys.argv[1])
    except OSError as error:
        sys.exit(str(error))
    print(json.dumps([name for name in sys.argv[2:] if hasattr(library, name)]))
