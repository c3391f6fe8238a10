"""What the scripts of this folder share: the files of the repository and which of them are new."""

import os
import re
import subprocess

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
NOT_PRODUCTION = re.compile(
    r"(_test|_fuzz|_cases)\.|(^|/)(tests|testing|testdata)/|test_artifacts")


def git(*arguments):
    return subprocess.run(["git", *arguments], text=True, capture_output=True, check=True).stdout


def names(listed):
    return [name for name in listed.split("\n") if name and os.path.isfile(name)]


def tracked_files():
    return names(git("ls-files"))


def production_files(*endings):
    """Tracked files with one of the endings under atunner/, faces/ and runtime/, without tests."""
    return [path for path in tracked_files()
            if path.startswith(("atunner/", "faces/", "runtime/")) and path.endswith(endings)
            and NOT_PRODUCTION.search(path) is None]


def changed_files():
    """The files that differ from the branch main, and new ones that git does not ignore."""
    branches = git("for-each-ref", "--format=%(refname:short)").split()
    main = next((name for name in ("main", "origin/main") if name in branches), "HEAD")
    base = git("merge-base", "HEAD", main).strip()
    return names(git("diff", "--name-only", base)
                 + git("ls-files", "--others", "--exclude-standard"))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()
