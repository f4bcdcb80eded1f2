#!/usr/bin/env python3
"""The zoo: a Lemon plugin that is right in all things but one.

misbehave.py FAULT [ARG]    runs with that fault
misbehave.py --list         tells which there are
"""

import sys

from faults import FAULTS
from plugin import Plugin


def describe(fault: type[Plugin]) -> str:
    return " ".join((fault.__doc__ or "").split())


def main() -> None:
    match sys.argv[1:]:
        case ["--list"]:
            for name, fault in sorted(FAULTS.items()):
                print(f"{name:24} {describe(fault)}")
        case [name] if name in FAULTS:
            FAULTS[name]().run()
        case [name, arg] if name in FAULTS:
            FAULTS[name](arg).run()
        case _:
            sys.exit(f"{(__doc__ or '').strip()}\n\nthere is no fault {sys.argv[1:]}")


if __name__ == "__main__":
    main()
