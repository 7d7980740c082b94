"""Many at once."""
import asyncio

import pytest

import e2b
from helpers import TAG, eventually, listed, replica_sets

AT_ONCE = 50


@pytest.mark.item("cp:247", "cp:29")
@pytest.mark.timeout(200)
def test_fifty_creates_at_once():
    """The async SDK: fifty ids, all usable, all killed, nothing left."""
    mark = {**TAG, "fifty": "1"}

    async def one():
        sandbox = await e2b.AsyncSandbox.create(metadata=mark, timeout=300, request_timeout=120)
        result = await sandbox.commands.run("echo $E2B_SANDBOX_ID", request_timeout=60)
        return sandbox, result.stdout.strip()

    async def all_of_them():
        made = await asyncio.gather(*(one() for _ in range(AT_ONCE)), return_exceptions=True)
        good = [m for m in made if not isinstance(m, BaseException)]
        killed = await asyncio.gather(*(s.kill() for s, _ in good), return_exceptions=True)
        return made, good, killed

    made, good, killed = asyncio.run(all_of_them())
    assert [m for m in made if isinstance(m, BaseException)] == []
    ids = {s.sandbox_id for s, _ in good}
    assert len(ids) == AT_ONCE and all(s.sandbox_id == said for s, said in good)
    assert killed == [True] * AT_ONCE
    assert not [s for s in listed() if s["sandboxID"] in ids]
    eventually(lambda: not ids & set(replica_sets()), 60, 1)
