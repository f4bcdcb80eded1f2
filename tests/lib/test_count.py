"""Runners' closing lines as they are printed, and what is counted of them."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COUNT = Path(__file__).with_name("count.py")
CARGO_OK = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out"
CARGO_BAD = "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured"
# libtest-mimic prints cargo's closing line, and the zoo its figures after that.
MIMIC_OK = """test bom                      ... ok

test result: ok. 172 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 60.0s

faults in the catalogue: 142, covered: 142, passing: 142 of 142 that ran"""
MIMIC_BAD = "test result: FAILED. 170 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 60.0s"
UNITTEST_OK = "Ran 4 tests in 0.1s\n\nOK (skipped=1)"
UNITTEST_BAD = "Ran 4 tests in 0.1s\n\nFAILED (failures=1, errors=2)"


def count(kind: str, status: int, output: str) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
        log.write(output + "\n")
        log.flush()
        command = [sys.executable, str(COUNT), kind, str(status), log.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Count(unittest.TestCase):
    def test_closing_lines_are_added_up(self) -> None:
        self.assertEqual(count("cargo", 0, f"{CARGO_OK}\n\n{CARGO_OK}"), "6 0")
        self.assertEqual(count("cargo", 101, f"{CARGO_OK}\n{CARGO_BAD}"), "5 1")
        self.assertEqual(count("cargo", 0, f"{CARGO_OK}\n{MIMIC_OK}\n"), "175 0")
        self.assertEqual(count("cargo", 101, f"{MIMIC_BAD}\n{CARGO_OK}"), "173 2")
        self.assertEqual(count("unittest", 0, UNITTEST_OK), "3 0")
        self.assertEqual(count("unittest", 1, UNITTEST_BAD), "1 3")
        self.assertEqual(count("check", 0, ""), "1 0")

    def test_a_runner_that_fails_without_a_failed_test_is_a_failure(self) -> None:
        self.assertEqual(count("cargo", 101, f"{CARGO_OK}\nerror: no"), "3 1")
        self.assertEqual(count("check", 1, ""), "0 1")

    def test_a_runner_without_a_closing_line_is_a_failure(self) -> None:
        self.assertEqual(count("cargo", 0, "Finished"), "0 1")
        self.assertEqual(count("unittest", 0, "Ran 0 tests in 0.0s\n\nOK"), "0 1")


if __name__ == "__main__":
    unittest.main()
