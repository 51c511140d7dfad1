"""Examples of every command, at the end of its `--help`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Example = tuple[str, str]
"""What is typed, after `diopi-test`, and what it does."""

EXAMPLES: Mapping[str, Sequence[Example]] = {
    "": [
        ("doctor", "is everything there that is needed?"),
        ("run", "the suite on the built-in vendor"),
        ("run --vendor build/libdiopi_impl.so", "on a compiled library"),
        ("run --help", "the options of a command, with examples"),
    ],
    "run": [
        ("run --vendor my_vendor", "a vendor that is registered as an entry point"),
        ("run --vendor build/libdiopi_impl.so -n 1 -k diopiSoftmax", "one function of a compiled library"),
        ("run --vendor my_package.module:vendor --family conv --dtype no-float64", "a family, without a type"),
        ("run --case 'diopiAdd[float32-row]' --dump wrong", "one case; its arrays if it fails"),
        ("run --vendor my_vendor --waivers waivers.toml --json report.json", "what is known may fail"),
        ("run --vendor my_vendor --failed-in report.json", "again what failed"),
        ("run --vendor my_vendor --level full --shard 2/8", "the second of eight parts of all cases"),
        ("run --level models --model resnet50", "the calls of a training step of a network"),
        ("run --resume run.log.jsonl", "go on with a run that was interrupted"),
    ],
    "report": [
        ("report run.log.jsonl --html report.html", "as a page, which needs no network"),
        ("report run.log.jsonl --junit results.xml --markdown summary.md", "for a build server and a comment"),
    ],
    "compare": [
        ("compare before.json after.json", "what broke, what was fixed, what is less accurate"),
        ("compare before.json run.log.jsonl --factor 1.5 --markdown change.md", "a log, a narrower factor, a page"),
    ],
    "submit": [
        ("submit run.log.jsonl run.diopi.zip", "the run as evidence"),
        ("submit run.log.jsonl run.diopi.zip --sign key", "signed with a private key of OpenSSH"),
    ],
    "verify": [
        ("verify run.diopi.zip", "is it evidence of what it says? Nobody's identity is checked"),
        ("verify run.diopi.zip --signers signers --signer lab@example.org", "and signed by whom it should be?"),
    ],
    "waive": [("waive report.json --out waivers.toml", "a first file, of which people write the reasons")],
    "show": [
        ("show 'diopiAdd[float32-row]'", "the call, what must come of it, what is checked"),
        ("show 'diopiAdd[float32-long]' --level full --full", "of another level, with all elements"),
    ],
    "doctor": [
        ("doctor", "all that is installed, and every vendor that is registered"),
        ("doctor --vendor build/libdiopi_impl.so", "this vendor alone"),
    ],
    "gen-data": [
        ("gen-data --level full", "all cases, in the user's cache, where `run --level full` finds them"),
        ("gen-data --data baselines -k diopiSoftmax", "of some functions, in a folder"),
    ],
    "audit": [
        ("audit --function diopiSoftmax", "which faults its cases catch"),
        ("audit --shuffle 7 --sample 20 --markdown audit.md", "twenty functions drawn from a seed, as a page"),
    ],
    "fingerprint": [("fingerprint --vendor my_vendor --json fingerprint.json", "what its arithmetic is like")],
    "fuzz": [
        ("fuzz --vendor my_vendor --minutes 60", "calls nobody wrote, for an hour"),
        ("fuzz --function diopiSoftmax --seed 7 --rounds 20 --statistics", "the same calls each time"),
    ],
    "trace": [("trace -o net.json net.py --batch 8", "what a program in PyTorch calls; --batch is an option of it")],
    "export": [("export --vendor jax_cpu --out library", "a library for a framework in C or C++")],
    "import-config": [
        ("import-config configs.py device_configs.py --output imported", "cases for `run --data imported`, waivers"),
    ],
    "list": [
        ("list --family norm", "a family's functions"),
        ("list --dtype float16 --json", "those that take an element type, for a program"),
    ],
}
"""By command; that of no name is `diopi-test` itself."""


def epilog(command: str) -> str:
    """The end of a command's help; click leaves the lines of a paragraph after a backspace as they are."""
    blocks = (f"\b\n  diopi-test {words}\n      {what}" for words, what in EXAMPLES[command])
    return "\n\n".join(("Examples:", *blocks))
