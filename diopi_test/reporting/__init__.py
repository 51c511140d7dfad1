"""What runs found, for those who were not there.

A report is read from its JSON or from a log (`reading`), told to people (`html`), to build servers (`junit`) and in
discussions of a change (`markdown`), set against that of another run (`comparison`), and packed with all it is made
of (`evidence`).
"""
