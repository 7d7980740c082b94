#!/usr/bin/env python3
"""Writes docs/compat.md: every P0 item of the compatibility checklists, with its tests and their last result.

Usage: compat.py [-o docs/compat.md] REPORT.xml…     (JUnit files of pytest runs of this folder)

The items and what they ask are in checklist.txt; which tests concern which item says the marker item("cp:27") at the test.
"""
import argparse
import collections
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

HERE = Path(__file__).parent
DEFAULT = HERE.parents[1] / "docs" / "compat.md"
SDK = {"pinned": "Python 2.21.1", "newest": "newest Python"}
ORDER = {"failed": 0, "passed": 1, "skipped": 2}

Item = collections.namedtuple("Item", "id section text later")


def checklist():
    """Lines: `# section title`, `id text`, `id [later: where it comes] text`."""
    section = ""
    for line in (HERE / "checklist.txt").read_text().splitlines():
        if line.startswith("# "):
            section = line[2:]
        elif line and not line.startswith("#"):
            one, _, text = line.partition(" ")
            later = re.match(r"\[later: ([^]]+)\] ", text)
            yield Item(one, section, text[later.end():] if later else text, later[1] if later else "")


def results(reports):
    """item id → {(test name, who ran it): outcome}; parameters of one test count together, the worst wins."""
    found = collections.defaultdict(dict)
    for report in reports:
        who = next((w for w in SDK if w in Path(report).stem), "pinned")
        for case in xml.parse(report).iter("testcase"):
            outcome = "passed"
            if case.find("failure") is not None or case.find("error") is not None:
                outcome = "failed"
            elif (skipped := case.find("skipped")) is not None:
                outcome = "skipped" + (f" ({skipped.get('message')})" if skipped.get("message") else "")
            name = re.sub(r"\[.*", "", case.get("name"), flags=re.S)
            if name == "test_js":
                name = f"js: {case.get('name')[8:-1].replace('-', ' ')}"
                who_ran = "newest JavaScript"
            else:
                name = f"{case.get('classname').split('.')[-1].removeprefix('test_')}: {name.removeprefix('test_')}"
                who_ran = SDK[who]
            for item in {p.get("value") for p in case.iter("property") if p.get("name") == "item"}:
                known = found[item].get((name, who_ran))
                if known is None or ORDER[outcome.split()[0]] < ORDER[known.split()[0]]:
                    found[item][name, who_ran] = outcome
    return found


def rows(item, tests):
    """One line per item; tests that ran under several SDKs are named once."""
    grouped = collections.OrderedDict()
    for (name, who), outcome in sorted(tests.items(), key=lambda t: (t[0][0], t[0][1])):
        grouped.setdefault((name, outcome), []).append(who)
    names = "<br>".join(f"`{n}`" + (f" ({', '.join(w)})" if w != [SDK["pinned"]] else "") for (n, _), w in grouped.items())
    outcomes = [o.split()[0] for o in tests.values()]
    if "failed" in outcomes:
        result = "**failed**"
    elif item.later and "passed" not in outcomes:
        result = f"next: {item.later}"
    elif "passed" in outcomes:
        skipped = [o for o in tests.values() if o.startswith("skipped")]
        result = "passed" + (f"; {skipped[0]}" if skipped else "") + (f"; rest next: {item.later}" if item.later else "")
    elif tests:
        result = next(iter(tests.values()))
    else:
        result = f"next: {item.later}" if item.later else "**no test**"
    return f"| {item.id} | {item.text} | {names} | {result} |", result


def page(items, found):
    lines, counts = [], collections.Counter()
    for section in dict.fromkeys(i.section for i in items):
        lines += ["", f"## {section}", "", "| item | what | test | result |", "|---|---|---|---|"]
        for item in (i for i in items if i.section == section):
            line, result = rows(item, found.get(item.id, {}))
            lines.append(line)
            counts[re.split(r"[:;]", result.strip("*"))[0].split(" (")[0]] += 1
    extra = sorted((k for k in found if k not in {i.id for i in items}), key=lambda k: (k[:2], int(k[3:])))
    head = [
        "# Compatibility with E2B",
        "",
        "Every item of our checklists that ordinary use of the SDKs needs (P0), the tests that hold it, and their last result.",
        "`cp` = control plane (the API), `dp` = data plane (gateway and the daemon in the sandbox). The tests are in `test/e2e`;",
        "a test without a name in brackets runs with Python 2.21.1 or in raw HTTP. This page is written by `test/e2e/compat.py`.",
        "",
        "Items: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())) + f"; {len(items)} in all.",
        "`next` = comes with a later part of the system, and why stands behind it.",
    ]
    tail = ["", "## Beyond", "", "Less common items (P1, P2) that have a test already:", ""]
    for key in extra:
        outcomes = {o.split()[0] for o in found[key].values()}
        result = "failed" if "failed" in outcomes else "passed" if "passed" in outcomes else "skipped"
        tail.append(f"- {key} {result}: " + ", ".join(f"`{n}`" for n in sorted({n for n, _ in found[key]})))
    return "\n".join(head + lines + (tail if extra else [])) + "\n", counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=DEFAULT)
    parser.add_argument("reports", nargs="+")
    args = parser.parse_args()
    text, counts = page(list(checklist()), results(args.reports))
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(text)
    print(f"{args.output}: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return 1 if counts["failed"] or counts["no test"] else 0


if __name__ == "__main__":
    sys.exit(main())
