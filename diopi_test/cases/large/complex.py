"""Large cases of complex numbers and their parts."""

from diopi_test.cases.large.makers import register_stretched

register_stretched("diopiComplex", "diopiPolar", "diopiConj", "diopiReal", "diopiImag")
