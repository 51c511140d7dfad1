"""Check the results of the ATen calls of a program while the program runs, on any device.

To *judge* a call means to decide whether its results are correct. The expected results come from the suite's reference,
or from the same ATen operator in float64 if the standard does not define the operator. A *watch* intercepts all calls
of the program and judges some of them, so that the program is not slowed down too much. Calls that differ only in the
values of their tensors have the same *form*; each form is judged at least once if possible.

- `forms` finds calls of the same form, and operators that can't be judged.
- `sampling` reduces large calls to some of their elements or rows.
- `functions` finds the functions of the standard that compute the same as a call.
- `judge` decides whether a call is correct.
- `origin` finds the line of the program that makes a call.
- `session` contains the watch, which decides which calls are judged.
- `findings` ranks the incorrect operators and stores a case of each.
- `report` formats the text of the report.
- `stored_call` writes and reads files of calls that are not cases of the suite.
- `command` is the command line.
"""
