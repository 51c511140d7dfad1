"""Cases of the sizes that models have, chosen to be hostile: more than 2^16 elements, and a multiple of nothing.

One module a family, of the family's name. Element-wise functions have theirs derived from small ones (`stretched`);
of others, tables say what is called. Inputs are drawn again in each run, so a case may be as large as its results
allow: the level is to stay below 1 GB.
"""

from diopi_test.cases.large.makers import large_cases, why_small

__all__ = ["large_cases", "why_small"]
