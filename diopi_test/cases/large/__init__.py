"""Cases with the sizes of models, chosen to be hostile: more than 2^16 elements, and sizes without common factors.

Each family has one module. Large cases of element-wise functions are derived from small cases (`register_stretched`);
the other functions have tables of calls. Every run draws the inputs again, so only the results limit how large a case
can be: the stored level must stay below 1 GB.
"""

from diopi_test.cases.large.makers import large_cases, reason_without_large

__all__ = ["large_cases", "reason_without_large"]
