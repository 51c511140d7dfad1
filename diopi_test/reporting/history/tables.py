"""The SQL tables of the history, the version of the tables, and the mark that identifies a history file."""

from __future__ import annotations

APPLICATION_ID = 0x44694F50
"""The application ID in the header of the file, which marks it as a history: "DiOP" in ASCII."""

VERSION = 4
"""The version of the tables, stored as `user_version` of the file. Increase it with every change of the tables."""

TABLES = """
CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL,
    added TEXT NOT NULL,
    started TEXT NOT NULL,
    vendor TEXT NOT NULL,
    version TEXT NOT NULL,
    library TEXT NOT NULL,
    device TEXT NOT NULL,
    driver TEXT NOT NULL,
    host TEXT NOT NULL,
    processor TEXT NOT NULL,
    revision TEXT NOT NULL,
    command TEXT NOT NULL,
    workers INTEGER,
    level TEXT NOT NULL,
    baseline TEXT NOT NULL,
    numerics TEXT NOT NULL,
    standard TEXT NOT NULL,
    python TEXT NOT NULL,
    platform TEXT NOT NULL,
    seconds REAL NOT NULL,
    incomplete INTEGER NOT NULL,
    exit_status INTEGER NOT NULL
);
CREATE TABLE verdicts (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    class TEXT NOT NULL,
    verdict TEXT NOT NULL,
    counts INTEGER NOT NULL,
    cases INTEGER NOT NULL,
    PRIMARY KEY (run, class, verdict)
);
CREATE TABLE functions (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    function TEXT NOT NULL,
    cases INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    unsuccessful INTEGER NOT NULL,
    ratio REAL,
    ratio_case TEXT NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (run, function)
);
CREATE TABLE flaky (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    case_id TEXT NOT NULL,
    PRIMARY KEY (run, case_id)
);
CREATE TABLE timings (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    case_id TEXT NOT NULL,
    function TEXT NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (run, case_id)
);
CREATE TABLE causes (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    cause TEXT NOT NULL,
    severity TEXT NOT NULL,
    sentence TEXT NOT NULL,
    cases INTEGER NOT NULL,
    functions INTEGER NOT NULL,
    waived INTEGER NOT NULL,
    PRIMARY KEY (run, cause)
);
CREATE TABLE cause_functions (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    cause TEXT NOT NULL,
    function TEXT NOT NULL,
    PRIMARY KEY (run, cause, function)
);
"""
