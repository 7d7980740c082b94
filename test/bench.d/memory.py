"""Resident memory of the idle programs, as deployed."""
import time

from _system import System

LIMIT_MIB = 8
SETTLED = 25  # seconds; the programs give back what only their start needed


def run(bench):
    system = System(bench.root)
    time.sleep(SETTLED)
    for program in ("apiserver", "controller"):
        pids = system.inside("pgrep", "-x", program).split()
        worst = 0
        for pid in pids:
            status = system.inside("cat", f"/proc/{pid}/status")
            kib = int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1])
            worst = max(worst, kib / 1024)
        bench.emit(f"idle_memory_{program}", worst, "MiB", LIMIT_MIB, False)
