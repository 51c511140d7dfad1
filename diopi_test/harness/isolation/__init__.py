"""Cases in processes of their own: a crash, a hang or an exit of a vendor takes its process and nothing else.

The parent talks to one *nursery*, a process that has imported everything and holds no vendor, and has it fork *device
processes*, each of which loads the vendor, proves with a probe that it starts, and runs case after case.
"""
