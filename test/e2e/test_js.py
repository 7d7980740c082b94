"""The newest JavaScript SDK: js/*.test.mjs by Node's own test runner.

E2E_JAVASCRIPT = a folder with the SDK in its node_modules, E2E_NODE = the program, if it is not the first in PATH.
"""
import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "js"
MODULES = os.environ.get("E2E_JAVASCRIPT")


def cases():
    """Names of the tests and the items in the comment above each: // item cp:60 dp:99"""
    for file in sorted(HERE.glob("*.test.mjs")):
        items = []
        for line in file.read_text().splitlines():
            if line.startswith("// item "):
                items = line.split()[2:]
            elif found := re.match(r'test\("([^"]+)"', line):
                yield found[1], items
                items = []


@pytest.fixture(scope="module")
def results():
    if not MODULES:
        pytest.skip("E2E_JAVASCRIPT is not set")
    files = [str(f) for f in sorted(HERE.glob("*.test.mjs"))]
    done = subprocess.run([os.environ.get("E2E_NODE", "node"), "--test", "--test-reporter=tap", *files], capture_output=True, text=True, timeout=230)
    found = {}
    lines = done.stdout.splitlines()
    for i, line in enumerate(lines):
        if tap := re.match(r"\s*(not )?ok \d+ - (.*?)( # SKIP.*)?$", line):
            detail = []
            for more in lines[i + 1:]:
                detail.append(more)
                if more.strip() == "...":
                    break
            found[tap[2]] = ("skipped" if tap[3] else "failed" if tap[1] else "passed", "\n".join(detail))
    assert found, done.stdout + done.stderr
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.item(*i), id=n.replace(" ", "-")) for n, i in cases()])
def test_js(results, name):
    outcome, text = results.get(name, ("failed", "it did not run"))
    if outcome == "skipped":
        pytest.skip(text)
    assert outcome == "passed", text
