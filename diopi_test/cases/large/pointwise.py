"""Large cases of the unary element-wise functions."""

from diopi_test.cases.large.makers import register_stretched
from diopi_test.cases.pointwise import DOMAINS

register_stretched(*DOMAINS, "diopiTanhBackward")
