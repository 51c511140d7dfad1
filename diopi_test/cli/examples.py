"""Examples of every command, at the end of its `--help`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Example = tuple[str, str]
"""The words after `diopi-test`, and the purpose of the command."""

EXAMPLES: Mapping[str, Sequence[Example]] = {
    "": [
        ("doctor", "check the installation"),
        ("run", "run the suite against the built-in vendor"),
        ("run --vendor build/libdiopi_impl.so", "run the suite against a compiled library"),
        ("run --help", "show the options of a command, with examples"),
    ],
    "run": [
        ("run --vendor my_vendor", "test a vendor that is registered as an entry point"),
        ("run --vendor build/libdiopi_impl.so -n 1 -k diopiSoftmax", "test one function of a compiled library"),
        (
            "run --vendor my_package.module:vendor --family conv --dtype no-float64",
            "test a family of functions without one element type",
        ),
        ("run --case 'diopiAdd[float32-row]' --dump failed", "run one case and write its arrays if it fails"),
        ("run --vendor my_vendor --waivers waivers.toml --json report.json", "accept known failures; write a report"),
        ("run --vendor my_vendor --numerics tf32", "evaluate the results for products in TF32"),
        ("run --vendor my_vendor --failed-in report.json", "repeat the cases that failed"),
        ("run --vendor my_vendor --level full --shard 2/8", "run the second of eight parts of all cases"),
        ("run --level models --model resnet50", "run the calls of a training step of a network"),
        ("run --affected-by diopiSoftmax", "run the cases that a change of a function can affect"),
        (
            "run --vendor my_vendor --since run.log.jsonl",
            "run the cases that the changes since an earlier run can affect",
        ),
        ("run --resume run.log.jsonl", "continue a run that was interrupted"),
    ],
    "report": [
        ("report run.log.jsonl --html report.html", "write a self-contained HTML page"),
        (
            "report run.log.jsonl --junit results.xml --markdown summary.md",
            "write reports for a build server and a comment",
        ),
    ],
    "plan": [
        ("plan run.log.jsonl --models resnet50,llama", "show what unlocks two networks, in order"),
        ("plan report.json --json plan.json", "plan for all networks, and write the plan as JSON"),
    ],
    "compare": [
        ("compare before.json after.json", "show which cases broke, were fixed, or are less accurate"),
        ("compare before.json run.log.jsonl --factor 1.5 --markdown change.md", "report smaller changes, in Markdown"),
    ],
    "history": [
        ("history add run.log.jsonl", "add a run to the history"),
        ("history list", "list the runs"),
        ("history show --html history.html", "show the trends, and write them as a page"),
    ],
    "submit": [
        ("submit run.log.jsonl run.diopi.zip", "pack the run"),
        ("submit run.log.jsonl run.diopi.zip --sign key", "pack the run and sign it with an OpenSSH private key"),
    ],
    "verify": [
        ("verify run.diopi.zip", "check that the archive is consistent, without checking its author"),
        ("verify run.diopi.zip --signers signers --signer lab@example.org", "also check who signed the archive"),
    ],
    "waive": [("waive report.json --output waivers.toml", "draft a file of waivers; then write the reasons")],
    "show": [
        ("show 'diopiAdd[float32-row]'", "show the call, the expected results and the checks"),
        ("show 'diopiAdd[float32-long]' --level full --full", "show a case of another level with all elements"),
    ],
    "doctor": [
        ("doctor", "check the installation and every registered vendor"),
        ("doctor --vendor build/libdiopi_impl.so", "check the installation and only this vendor"),
    ],
    "gen-data": [
        ("gen-data --level full", "generate all cases in the user's cache, where `run --level full` finds them"),
        ("gen-data --data baselines -k diopiSoftmax", "generate the baseline of some functions in a folder"),
    ],
    "mutation-test": [
        ("mutation-test --function diopiSoftmax", "run the mutants of a function"),
        ("mutation-test --shuffle 7 --sample 20 --markdown page.md", "test twenty functions chosen by a seed"),
    ],
    "new-operator": [
        (
            "new-operator diopiHardsigmoid --family activation --aten hardsigmoid",
            "add an element-wise function with a gradient, which PyTorch also has",
        ),
        (
            "new-operator diopiMish --family activation --like diopiSilu",
            "copy the parameters and facts of another function",
        ),
    ],
    "refresh": [("refresh", "update the headers, the golden interface and the README in a clone")],
    "fingerprint": [
        ("fingerprint --vendor my_vendor --json fingerprint.json", "probe a vendor and write the result"),
        ("fingerprint --vendor my_vendor --declare", "print the declaration of its arithmetic that fits"),
        ("fingerprint --vendor my_vendor --check", "compare its declaration with its arithmetic"),
    ],
    "fuzz": [
        ("fuzz --vendor my_vendor --minutes 60", "run random calls for an hour"),
        ("fuzz --function diopiSoftmax --seed 7 --rounds 20 --statistics", "run the same random calls each time"),
    ],
    "trace": [("trace --output net.json net.py --batch 8", "record the calls of `net.py --batch 8`")],
    "export": [("export --vendor jax_cpu --output library", "build a library for a framework in C or C++")],
    "bundle": [
        ("bundle --level smoke --output cases.diopi", "write all smoke cases for a target"),
        ("bundle -k diopiSqrt --output cases.diopi", "write the cases of one function"),
    ],
    "evaluate": [
        ("evaluate cases.diopi results.diopi", "evaluate what `diopi-runner` wrote on the target"),
        ("evaluate cases.diopi results.diopi --json report.json", "also write a report"),
    ],
    "import-config": [
        ("import-config configs.py device_configs.py --output imported", "write cases for `run --data imported`"),
    ],
    "describe": [
        ("describe diopiSum", "show the meaning, signature, guarantees and cases of a function"),
        ("describe diopiLayerNormBackward --json", "the same as JSON"),
    ],
    "list": [
        ("list --family norm", "list the functions of a family"),
        ("list --dtype float16 --json", "list the functions that accept an element type, as JSON"),
    ],
}
"""The examples of each command; an empty name stands for `diopi-test` itself."""


def epilog(command: str) -> str:
    """Return the examples at the end of a command's help; click does not wrap paragraphs after a backspace."""
    blocks = (f"\b\n  diopi-test {words}\n      {purpose}" for words, purpose in EXAMPLES[command])
    return "\n\n".join(("Examples:", *blocks))
