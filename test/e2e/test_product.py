"""Data plane §8.1 H and control plane §5.14: whole journeys with the pinned SDK."""
import os
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import e2b
from helpers import CA, TAG, eventually

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def made():
    sandbox = e2b.Sandbox.create(metadata=TAG)
    yield sandbox
    sandbox.kill()


@pytest.mark.item("dp:181", "cp:28")
def test_first_calls_right_after_create():
    for _ in range(3):
        with e2b.Sandbox.create(metadata=TAG) as sandbox:
            sandbox.files.write("a.txt", "1")
            assert sandbox.files.read("a.txt") == "1"


@pytest.mark.item("dp:182", "cp:130")
def test_connect_from_another_process(made):
    """The pinned SDK's connected object sends no routing headers: the host name alone must do."""
    made.files.write("/home/user/shared.txt", "from the first")
    code = ("import sys, e2b; s = e2b.Sandbox.connect(sys.argv[1]); s.files.make_dir('/home/user/second'); "
            "print(s.files.read('/home/user/shared.txt'), s.is_running(), s.commands.run('echo $((6*7))').stdout, end='')")
    done = subprocess.run([sys.executable, "-c", code, made.sandbox_id], capture_output=True, text=True, timeout=60)
    assert done.stdout == "from the first True 42\n", done.stderr
    assert made.files.exists("/home/user/second")


@pytest.mark.item("dp:183", "cp:170")
def test_server_in_the_sandbox_over_https(made):
    made.commands.run("python3 -m http.server 8000 --bind 0.0.0.0", background=True, timeout=0)
    url = f"https://{made.get_host(8000)}/"
    context = ssl.create_default_context(cafile=CA)

    def fetch():
        try:
            return urllib.request.urlopen(url, timeout=10, context=context).status
        except urllib.error.HTTPError as e:
            assert e.code == 502
    assert eventually(fetch, 10) == 200


@pytest.mark.item("dp:185", "cp:120")
@pytest.mark.next("pause")
def test_pause_and_connect(made):
    made.files.write("kept.txt", "kept")
    try:
        made.beta_pause()
    except e2b.SandboxException as e:
        pytest.skip(f"next: pause and resume ({e})")
    assert made.is_running() is False
    made.connect()
    assert made.is_running() is True and made.commands.run("echo awake").stdout == "awake\n"
    if not made.files.exists("kept.txt"):
        pytest.skip("next: files across a pause come with workspaces")
    assert made.files.read("kept.txt") == "kept"


@pytest.mark.item("dp:190")
def test_a_whole_life_is_short():
    began = time.monotonic()
    with e2b.Sandbox.create(metadata=TAG) as sandbox:
        assert sandbox.commands.run("echo hi").stdout == "hi\n"
    assert time.monotonic() - began < 30


@pytest.mark.item("dp:189")
def test_git_against_a_local_daemon(made):
    made.commands.run("git init -q --bare /tmp/srv/repo.git && touch /tmp/srv/repo.git/git-daemon-export-ok && "
                      "git -C /tmp/srv/repo.git config daemon.receivepack true && git -C /tmp/srv/repo.git symbolic-ref HEAD refs/heads/main")
    made.commands.run("git daemon --base-path=/tmp/srv --listen=127.0.0.1 --port=9419 --reuseaddr", background=True, timeout=0)
    made.commands.run("for i in $(seq 50); do ss -Htln sport = :9419 | grep -q . && break; sleep 0.1; done; "
                      "git clone -q git://127.0.0.1:9419/repo.git w && cd w && git checkout -q -B main && "
                      "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git push -q origin main")
    assert made.commands.run("git -C /tmp/srv/repo.git log --oneline main").stdout.strip().endswith("one")


@pytest.mark.item("cp:244")
def test_quickstart_program():
    """examples/quickstart.py as a user runs it."""
    done = subprocess.run([sys.executable, str(EXAMPLES / "quickstart.py")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Hello from inside the sandbox" in done.stdout and "42 from user on Debian" in done.stdout


@pytest.mark.item("cp:244")
def test_pinned_sdk_with_only_the_domain():
    """No E2B_API_URL: the API is found at api.<domain> over trusted TLS."""
    assert "E2B_API_URL" not in os.environ
    with e2b.Sandbox.create(metadata=TAG) as sandbox:
        assert sandbox.commands.run("echo hi").stdout == "hi\n"


def test_templates_of_the_quick_start():
    for name in ("base", "sandbox-base-node"):
        with e2b.Sandbox.create(name, metadata=TAG) as sandbox:
            out = sandbox.commands.run("python3 --version; python --version; node --version; git --version; curl --version").stdout
            assert out.count("Python 3") == 2 and "git version" in out and "curl" in out
            assert sandbox.get_info().template_id == name
