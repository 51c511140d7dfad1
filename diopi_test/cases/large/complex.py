"""Large cases of complex numbers and their parts."""

from diopi_test.cases.large.makers import stretched

stretched("diopiComplex", "diopiPolar", "diopiConj", "diopiReal", "diopiImag")
