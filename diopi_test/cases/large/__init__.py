"""Cases with the sizes of models, chosen to be hostile: more than 2^16 elements, and sizes without common factors.

Templates with the level `LARGE` describe them, next to the small cases of the family. The families that are not yet
described this way have a module here. Every run draws the inputs again, so only the results limit how large a case
can be: the stored level must stay below 1 GB.
"""

from diopi_test.cases.large.makers import large_cases

__all__ = ["large_cases"]
