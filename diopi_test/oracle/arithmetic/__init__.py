"""The arithmetic that a vendor declares: references are evaluated in it, and error budgets follow.

- `array` carries an arithmetic through an unchanged reference.
- `signs` draws the directions in which rounding errors move numbers.
- One module per kind of deviation has the rules of the operations that deviate.
- `change` measures how much a declared arithmetic changes the results of a reference.
- `declared_case` adds this change to the budgets of a case.
"""
