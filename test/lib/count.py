#!/usr/bin/env python3
"""Prints "PASSED FAILED SKIPPED" over JUnit files, and what failed on the standard error.

A ctest test case is one cmocka program: its own totals count; where it has none (it crashed), it counts as one.
"""

import re
import sys
import xml.etree.ElementTree as ET

TOTAL = re.compile(r"^\[\s*(PASSED|FAILED|SKIPPED)\s*\] (\d+) test\(s\)", re.M)


def cmocka(case, text):
    n = {"PASSED": 0, "FAILED": 0, "SKIPPED": 0}
    for word, number in TOTAL.findall(text):
        n[word] += int(number)
    bad = case.find("failure") is not None or case.get("status") == "fail"
    if bad and n["FAILED"] == 0:
        n["FAILED"] = 1
    elif not bad and sum(n.values()) == 0:
        n["PASSED"] = 1
    for line in re.findall(r"^\[  FAILED  \] (\w+)$", text, re.M) or ([""] if bad else []):
        print(f"failed: {case.get('name')} {line}".rstrip(), file=sys.stderr)
    return n["PASSED"], n["FAILED"], n["SKIPPED"]


def plain(case):
    for tag in ("failure", "error"):
        if case.find(tag) is not None:
            print(f"failed: {case.get('classname')} {case.get('name')}", file=sys.stderr)
            return 0, 1, 0
    if case.find("skipped") is not None:
        return 0, 0, 1
    return 1, 0, 0


def main():
    total = [0, 0, 0]
    for path in sys.argv[1:]:
        for case in ET.parse(path).getroot().iter("testcase"):
            out = case.findtext("system-out") or ""
            ctest = case.get("status") is not None
            total = [a + b for a, b in zip(total, cmocka(case, out) if ctest else plain(case))]
    print(*total)


if __name__ == "__main__":
    main()
