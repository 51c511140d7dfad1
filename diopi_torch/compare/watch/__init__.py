"""Judge each ATen call of a program while the program runs, on any device.

- `forms`: which calls are alike, and which operators can't be judged.
- `sampling`: a part of a call whose operator computes elements or rows independently.
- `functions`: the standard's functions that compute the same as a call.
- `judge`: whether a call is right, by the suite's reference or by ATen in float64.
- `origin`: the line of the program from which a call comes.
- `session`: the watch itself, which decides which calls are judged.
- `findings`: the wrong operators, ranked, with a case of each.
- `report`: the text of the report.
- `stored_call`: files of calls that the standard does not have.
- `command`: the command line.
"""
