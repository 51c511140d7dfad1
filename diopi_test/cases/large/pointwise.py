"""Large cases of the unary element-wise functions."""

from diopi_test.cases.large.makers import stretched
from diopi_test.cases.pointwise import DOMAINS

stretched(*DOMAINS, "diopiTanhBackward")
