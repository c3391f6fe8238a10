#!/usr/bin/env python3
"""Prints the ten tests of a JUnit file of ctest that took longest, and ctest's closing line.

    scripts/longest_tests.py build/dev/tests.xml
"""

import os
import sys
import xml.etree.ElementTree


def main():
    if not os.path.exists(sys.argv[1]):  # ctest could not start
        return
    suite = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
    tests = [(float(case.get("time")), case.get("name"), case.get("status")) for case in suite]
    total = sum(seconds for seconds, _, _ in tests)
    print(f"\nthe ten longest of {len(tests)} tests ({total:.0f} s of tests in all):")
    for seconds, name, status in sorted(tests, reverse=True)[:10]:
        print(f"{seconds:8.1f} s  {seconds / max(total, 1e-9):4.0%}  {name}"
              + ("" if status == "run" else f"  ({status})"))
    failed = sum(status == "fail" for _, _, status in tests)
    passed = 100 * (len(tests) - failed) // max(1, len(tests))
    print(f"\n{passed}% tests passed, {failed} tests failed out of {len(tests)}")


if __name__ == "__main__":
    main()
