"""Generate the C header of a vendor interface's function table, and the C++ source that fills the table.

A vendor implements an interface, such as the collectives, in C++. Programs call the vendor through a table of C
functions. `vendor_cpp` generates the C++ text of single functions.
"""

from __future__ import annotations

from dataclasses import dataclass

from diopi_proto.vendor_cpp import GENERATED

_HEADER = """\
/* The {title} as a table of C functions, through which programs call a vendor without C++ and PyTorch.
 *
 * {rules}
 * A vendor in C++ compiles {name}_c.cpp into its library. A vendor in C defines {getter} itself.
 * {generated} */
#ifndef DIPU_{macro}_C_H_
#define DIPU_{macro}_C_H_

{includes}

#ifdef __cplusplus
extern "C" {{
#endif

{definitions}#define DIPU_{macro}_VERSION {version}

{statuses}
{types}
#ifdef __cplusplus
}}
#endif

#endif /* DIPU_{macro}_C_H_ */
"""

_SOURCE = """\
/* The table of the {title} for a vendor that implements the C++ interface; compile it into the vendor's library.
 * {generated} */
#define DIPU_ALL_WEAK
#include <dipu/{name}.h>
#include <dipu/{name}_c.h>

{includes}

namespace {{

using namespace dipu;
{body}
}} // namespace

extern "C" DIPU_EXPORT const {type}* {getter}(void) {{
    static const {type} {variable} = {{
        sizeof {variable},
        DIPU_{macro}_VERSION,
        last_error_text,
{entries}
    }};
    return &{variable};
}}
"""


@dataclass(frozen=True, kw_only=True)
class VendorTable:
    """The names of a vendor interface's table in C.

    Attributes:
        title: the interface in words, such as "device runtime".
        name: the stem of the names of the files, such as `device_runtime`.
        type: the C type of the table, such as `dipuDeviceRuntime`.
        getter: the C function that returns the table, such as `dipuGetDeviceRuntime`.
        variable: the name of the table in the source.
        version: the version of the table.
    """

    title: str
    name: str
    type: str
    getter: str
    variable: str
    version: int

    def render_header(self, *, rules: str, includes: str, statuses: str, types: str, definitions: str = "") -> str:
        """Return the text of the header.

        Args:
            rules: the lines of the comment that state how C calls differ from C++ calls.
            includes: the lines that include other headers.
            statuses: the comment about the statuses that a function of the table returns.
            types: the declarations of the statuses, the table and its getter.
            definitions: the preprocessor lines before the version; empty for none.

        Returns:
            The text. The getter is visible outside the library that defines it.
        """
        declaration = f"const {self.type}* {self.getter}"
        return _HEADER.format(
            **self._names(),
            version=self.version,
            rules=rules,
            includes=includes,
            definitions=definitions,
            statuses=statuses,
            types=types.replace(declaration, f"DIPU_EXPORT {declaration}"),
        )

    def render_source(self, *, includes: str, body: str, entries: str) -> str:
        """Return the text of the source.

        Args:
            includes: the lines that include headers of the C++ library.
            body: the C++ functions to which the table refers.
            entries: the initializers of the table's entries after the text of the last error.

        Returns:
            The text.
        """
        return _SOURCE.format(**self._names(), includes=includes, body=body, entries=entries)

    def _names(self) -> dict[str, str]:
        """Return the values of the placeholders that the header and the source share."""
        return {
            "title": self.title,
            "name": self.name,
            "macro": self.name.upper(),
            "type": self.type,
            "getter": self.getter,
            "variable": self.variable,
            "generated": GENERATED,
        }
