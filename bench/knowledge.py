#!/usr/bin/env python3
"""CPU time of a search in the handbook alone, and with 10 000 further pieces of text.

    bench/knowledge.py --atunner build/dev/faces/atunner

Each search is a process of its own; the difference of both rows is the cost of the larger index.
"""

import argparse
import os
import random
import re
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

QUERIES = ["shared memory bank conflicts", "how large should tiles in shared memory be",
           "stream-k", "fast exponentials exp2f", "one block has much more work than others"]
ROOT = Path(__file__).parents[1]


def write_documents(folder, documents=20, sections=500):
    """Sections of 150 words each, from the project's own documents."""
    text = " ".join(path.read_text() for path in sorted((ROOT / "docs").rglob("*.md")))
    words = re.findall(r"[A-Za-z]{3,}", text)
    chosen = random.Random(1)
    for number in range(documents):
        parts = []
        for _ in range(sections):
            at = chosen.randrange(len(words) - 150)
            parts.append(f"# {' '.join(words[at:at + 4])}\n\n{' '.join(words[at:at + 150])}\n")
        (folder / f"{number}.md").write_text("\n".join(parts))
    return documents * sections


def search_ms(atunner, env, repetitions=9):
    """Median CPU time of one search as a process, milliseconds."""
    times = []
    for query in QUERIES * repetitions:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([atunner, "knowledge", "search", query], stdout=subprocess.DEVNULL, env=env,
                       check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atunner", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, XDG_DATA_HOME=home)
        documents = Path(home) / "documents"
        documents.mkdir()
        pieces = write_documents(documents)
        alone = search_ms(options.atunner, env)
        subprocess.run([options.atunner, "knowledge", "add", documents], env=env, check=True,
                       stdout=subprocess.DEVNULL)
        both = search_ms(options.atunner, env)
    print(f"handbook alone      {alone:6.1f} ms of CPU (process and search)")
    print(f"and {pieces} pieces  {both:6.1f} ms; the larger index costs {both - alone:.1f} ms")


if __name__ == "__main__":
    main()
