#!/usr/bin/env python3
"""Tests of the scripts in this folder, on files that each test writes."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_text
import counters_document
import longest_tests
import structure


class InEmptyFolder(unittest.TestCase):
    def setUp(self):
        self.before = os.getcwd()
        self.folder = tempfile.TemporaryDirectory()
        os.chdir(self.folder.name)

    def tearDown(self):
        os.chdir(self.before)
        self.folder.cleanup()

    def write(self, path, text):
        if os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class CountersDocument(unittest.TestCase):
    def test_page_is_what_the_tables_say(self):
        before = counters_document.PAGE.read_text(encoding="utf-8")
        self.assertEqual(counters_document.page(before), before,
                         "run scripts/counters_document.py")
        self.assertEqual(counters_document.page(counters_document.page("x <!-- end -->")),
                         "x <!-- end -->")

    def test_arguments(self):
        self.assertEqual(counters_document.arguments('kA, "a, b", "c"\n  "d", f(x, y) + {1, 2}'),
                         ["kA", "a, b", "cd", "f(x, y) + {1, 2}"])
        self.assertEqual(counters_document.metric_cell("a.sum/b.sum|c"), "`a.sum`/`b.sum`")
        self.assertEqual(counters_document.metric_cell(""), "–")

    def test_every_entry_is_found(self):
        text = (counters_document.ROOT / "atunner/evidence/counter.def").read_text(encoding="utf-8")
        self.assertEqual(len(counters_document.entries("counter")),
                         text.count("\nATUNNER_COUNTER("))


class Text(InEmptyFolder):
    def test_links_must_lead_somewhere(self):
        self.write("docs/b.md", "# Two words & more\n\n# Twice\n\n# Twice\n")
        page = self.write("a.md", "[b](docs/b.md) [h](docs/b.md#two-words--more) [me](#top)\n"
                          "# Top\n[x](https://example.org) [t](docs/b.md#twice-1)\n"
                          "`[code](none.md)`\n"
                          "```\n[block](none.md)\n```\n")
        self.assertEqual(list(check_text.check_links([page])), [])
        bad = self.write("bad.md", "[a](none.md)\n[b](docs/b.md#three)\n[c](../out.md)\n")
        self.assertEqual([line for _, line, _ in check_text.check_links([bad])], [1, 2, 3])

    def test_comments_must_not_begin_with_of(self):
        bad = self.write("a.h", "/// Of an element.\nint a;  ///< Of it\nint b;  // Off\n// A b.\n")
        self.assertEqual([line for _, line, _ in check_text.check_comments([bad])], [1, 2])

    def test_lines_have_at_most_100_characters(self):
        long = "word " * 21
        page = self.write("a.md", f"{long}\n| {long} |\n```\n{long}\n```\n[a {long}](a.md)\n"
                          + "é" * 99 + " \n")
        self.assertEqual([line for _, line, _ in check_text.check_lines([page])], [1])
        source = self.write("a.cpp", f"// {long}\nauto text = \"{long}\";\n")
        self.assertEqual([line for _, line, _ in check_text.check_lines([source])], [1])


class Measurements(InEmptyFolder):
    def test_folders_and_units_that_include_each_other(self):
        files = {
            "atunner/room/a/x.h": '#include "atunner/room/b/y.h"\n',
            "atunner/room/b/y.h": "\n",
            "atunner/room/b/y.cpp": '#include "atunner/room/a/z.h"\n',
            "atunner/room/a/z.h": '#include "atunner/room/a/x.h"\n#include <vector>\n',
        }
        for path, text in files.items():
            self.write(path, text)
        graph = structure.includes_by_unit({p: t.split("\n") for p, t in files.items()})
        self.assertEqual(structure.mutual_pairs(graph), [])
        self.assertEqual(structure.folder_pairs(graph), [("atunner/room/a", "atunner/room/b")])
        self.assertEqual([len(cycle) for cycle in structure.cycles(graph)], [3])

    def test_lines_are_counted_by_what_they_hold(self):
        lines = structure.Lines()
        lines.add_file(["// a", "", "int b;  // c", 'auto d = "// e";', "/* f", "g */", "h" * 101])
        self.assertEqual((lines.total, lines.blank, lines.comments, lines.trailing, lines.long),
                         (7, 1, 3, 1, 1))

    @unittest.skipUnless(structure.shutil.which("ctags"), "needs universal-ctags")
    def test_functions_methods_and_fields(self):
        self.write("atunner/room/a.h", """
struct A {
  void Declared();
  int Inline() { return 1; }
  int field = 0;
  static int shared;
  int& reference;
};
""")
        self.write("atunner/room/a.cpp", "void A::Declared() {\n  field = 1;\n}\n")
        subprocess.run("git init -q && git add .", shell=True, check=True)
        found = structure.Structure()
        self.assertEqual(sorted(f.length for f in found.tags.functions), [1, 3])
        self.assertEqual((found.tags.methods["A"], found.tags.fields["A"]), (2, 1))
        self.assertEqual(list(found.violations()), [])


class LongestTests(InEmptyFolder):
    def test_the_closing_line_is_that_of_ctest(self):
        self.write("tests.xml", '<testsuite><testcase name="a" time="2" status="run"/>'
                   '<testcase name="b" time="6" status="fail"/></testsuite>')
        sys.argv = ["longest_tests.py", "tests.xml"]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            longest_tests.main()
        lines = printed.getvalue().strip().split("\n")
        self.assertEqual(lines[-1], "50% tests passed, 1 tests failed out of 2")
        self.assertIn("b  (fail)", lines[1])


if __name__ == "__main__":
    unittest.main()
