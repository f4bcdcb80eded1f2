"""Counts what a test runner's output says of its tests, by the lines that it closes with.

    count.py KIND STATUS LOG    prints "PASSED FAILED"

KIND is `cargo`, `unittest`, or `check` for a command that is one test by itself. A runner that failed though none of its
tests did, and one that ended without its closing line, count as one failure.
"""

import re
import sys
from pathlib import Path

CARGO = re.compile(r"^test result: \S+ (\d+) passed; (\d+) failed;", re.MULTILINE)
RAN = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
OUTCOME = re.compile(r"^(?:OK|FAILED)(?: \((.*)\))?$", re.MULTILINE)


def count_cargo(output: str) -> tuple[int, int]:
    closings = CARGO.findall(output)
    return sum(int(p) for p, _ in closings), sum(int(f) for _, f in closings)


def count_unittest(output: str) -> tuple[int, int]:
    ran, outcome = RAN.search(output), OUTCOME.findall(output)
    if not ran or not outcome:
        return 0, 0
    parts = dict(re.findall(r"([a-z ]+)=(\d+)", outcome[-1]))
    counts = {name.strip(): int(number) for name, number in parts.items()}
    failed = sum(
        counts.get(n, 0) for n in ("failures", "errors", "unexpected successes")
    )
    return max(int(ran[1]) - failed - counts.get("skipped", 0), 0), failed


def main() -> None:
    kind, status, log = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    output = log.read_text(encoding="utf-8", errors="replace")
    match kind:
        case "cargo":
            passed, failed = count_cargo(output)
        case "unittest":
            passed, failed = count_unittest(output)
        case _:
            passed, failed = int(status == 0), 0
    if failed == 0 and (status != 0 or passed == 0):
        failed = 1
    print(passed, failed)


if __name__ == "__main__":
    main()
