#!/usr/bin/env python3
"""Prints "PASSED FAILED SKIPPED" over JUnit files (.xml) and outputs of cmocka programs (others), and what failed on
the standard error.

A ctest test case is one program: its own totals count (cmocka's, or Python unittest's); where it has none, because it
crashed or is of another kind, it counts as one.
"""

import re
import sys
import xml.etree.ElementTree as ET

CMOCKA = re.compile(r"^\[\s*(PASSED|FAILED|SKIPPED)\s*\] (\d+) test\(s\)", re.M)
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\n(?:OK|FAILED)(?: \((.*)\))?$", re.M)
FAILURE = re.compile(r"^\[  FAILED  \] (\w+)$|^(?:FAIL|ERROR): (\w+) ", re.M)


def totals(text):
    """(passed, failed, skipped) as the program itself says, all 0 when it says nothing."""
    n = {"PASSED": 0, "FAILED": 0, "SKIPPED": 0}
    for word, number in CMOCKA.findall(text):
        n[word] += int(number)
    for ran, details in UNITTEST.findall(text):
        d = {k: int(v) for k, v in re.findall(r"([a-z ]+)=(\d+)", details)}
        failed = sum(d.get(k, 0) for k in ("failures", "errors", "unexpected successes"))
        n["FAILED"] += failed
        n["SKIPPED"] += d.get("skipped", 0)
        n["PASSED"] += int(ran) - failed - d.get("skipped", 0)
    return n["PASSED"], n["FAILED"], n["SKIPPED"]


def program(name, text, bad):
    passed, failed, skipped = totals(text)
    if bad and failed == 0:
        failed = 1
    elif not bad and passed + failed + skipped == 0:
        passed, skipped = (0, 1) if text.lstrip().startswith("skipped") else (1, 0)
    if failed:
        names = sorted({a or b for a, b in FAILURE.findall(text)}) or ["(crashed, or ended too late)"]
        print(f"failed: {name}: {', '.join(names)}", file=sys.stderr)
    return passed, failed, skipped


def pytest_case(case):
    for tag in ("failure", "error"):
        if case.find(tag) is not None:
            print(f"failed: {case.get('classname')} {case.get('name')}", file=sys.stderr)
            return 0, 1, 0
    return (0, 0, 1) if case.find("skipped") is not None else (1, 0, 0)


def count(path):
    if not path.endswith(".xml"):
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        yield program(path, text, sum(totals(text)) == 0)
        return
    for case in ET.parse(path).getroot().iter("testcase"):
        if case.get("status") is None:
            yield pytest_case(case)
        else:
            bad = case.find("failure") is not None or case.get("status") == "fail"
            yield program(case.get("name"), case.findtext("system-out") or "", bad)


def main():
    total = [0, 0, 0]
    for path in sys.argv[1:]:
        for n in count(path):
            total = [a + b for a, b in zip(total, n)]
    print(*total)


if __name__ == "__main__":
    main()
