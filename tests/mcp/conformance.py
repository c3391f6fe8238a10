#!/usr/bin/env python3
"""The public conformance suite of the Model Context Protocol against `atunner serve`, over HTTP, in
both revisions. `make mcp-conformance` installs the suite (npm); exit code 77 where it is not."""

import argparse
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

MODULES = Path(__file__).parent / "conformance" / "node_modules"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NODE = MODULES / ".bin" / "node"
# Scenarios that each revision requires of a server (the suite's requirements/*.yaml).
REQUIRED = {"2025-11-25": 30, "2026-07-28": 37}
RESULT = re.compile(r"^([✓✗]) ([\w-]+): (\d+) passed, (\d+) failed", re.MULTILINE)
NOT_SCORED = re.compile(r"^  [✓✗] ([\w-]+) \(", re.MULTILINE)


def run_suite(url, revision):
    """Runs what the revision requires; raises where a scenario of these fails."""
    ended = subprocess.run(
        [NODE, SUITE, "server", "--url", url, "--requirements", revision],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    optional = set(NOT_SCORED.findall(ended.stdout))
    results = [one for one in RESULT.findall(ended.stdout) if one[1] not in optional]
    failed = [name for mark, name, _, _ in results if mark != "✓"]
    checks = sum(int(passed) for _, _, passed, _ in results)
    print(f"{revision}: {len(results) - len(failed)} of {len(results)} required scenarios pass, "
          f"{checks} checks")
    if failed or ended.returncode != 0 or len(results) < REQUIRED[revision]:
        raise SystemExit(f"failed: {', '.join(failed) or 'the suite'}\n{ended.stdout[-6000:]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atunner", required=True)
    options = parser.parse_args()
    if not SUITE.exists() or not NODE.exists():
        print("skipped: `make mcp-conformance` installs the suite")
        raise SystemExit(77)
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, XDG_DATA_HOME=home, XDG_CONFIG_HOME=home, XDG_CACHE_HOME=home)
        server = subprocess.Popen(
            [options.atunner, "serve", "--listen", "127.0.0.1:0", "--workers", "0", "--json",
             "--mcp-conformance-fixtures"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
        try:
            url = json.loads(server.stdout.readline())["url"] + "/mcp"
            for revision in REQUIRED:
                run_suite(url, revision)
        finally:
            server.terminate()
            server.wait(timeout=60)


if __name__ == "__main__":
    main()
