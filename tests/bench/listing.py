"""Lists the tools of many plugins, cold and known, and prints the times and their ratios; asserts nothing.

    python3 tests/bench/listing.py [PLUGINS] [LEMON]

Needs a `lemon` that is built for release (target/release/lemon, unless another one is named).
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ROUNDS = 5


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    lemon = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "target/release/lemon"
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        for number in range(count):
            plugin(home / "agent/extensions" / f"p{number}", f"p{number}")
        run(lemon, home, "plugin", "trust", "--yes")
        plugins = [timed(lemon, home, "plugin", "list") for _ in range(ROUNDS)]
        first = timed(lemon, home, "tools")
        again = [timed(lemon, home, "tools", "--refresh") for _ in range(ROUNDS)]
        known = [timed(lemon, home, "tools") for _ in range(ROUNDS)]
    base = statistics.median(known)
    print(f"{count} trusted plugins in shell, medians of {ROUNDS} runs of `lemon`, and as multiples of the last row")
    for what, seconds in [
        ("plugin list", statistics.median(plugins)),
        ("tools, the first time: every plugin is started", first),
        ("tools --refresh: the same", statistics.median(again)),
        ("tools, when they are known", base),
    ]:
        print(f"{what:<48} {seconds * 1000:7.0f} ms {seconds / base:6.1f}")


def plugin(folder: Path, name: str) -> None:
    """A copy of hello-shell that declares no tools, so that it has to be asked."""
    shutil.copytree(ROOT / "examples/hello-shell", folder)
    file = folder / "lemon_extension.json"
    manifest = json.loads(file.read_text())
    manifest["name"] = name
    del manifest["tools"]
    manifest.pop("idempotent", None)
    file.write_text(json.dumps(manifest))


def run(lemon: Path, home: Path, *arguments: str) -> None:
    environment = {**os.environ, "LEMON_HOME": str(home)}
    # Of many tools with one name only one is listed, and the others are told of.
    output = subprocess.run([lemon, *arguments], cwd=home, env=environment, capture_output=True, check=False)
    if output.returncode != 0:
        sys.exit(f"lemon {' '.join(arguments)}: {output.stderr.decode()}")


def timed(lemon: Path, home: Path, *arguments: str) -> float:
    start = time.perf_counter()
    run(lemon, home, *arguments)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
