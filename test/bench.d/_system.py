"""The installed system that some benchmarks need: brings it up by test/run and speaks to it."""
import http.client
import json
import os
import pathlib
import subprocess
import sys

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "agent-sandbox"
HTTP_PORT = int(os.environ.get("TEST_HTTP_PORT", 11000))
NAMESPACE = "agent-sandbox"


class System:
    def __init__(self, root):
        self.root = root
        self.env = {**os.environ, "AGENT_SANDBOX_STATE": os.environ.get("AGENT_SANDBOX_STATE", str(CACHE / "test"))}
        subprocess.run([root / "test" / "run", "packages", "kubernetes", "cluster", "images", "install"],
                       check=True, env=self.env, stdout=sys.stderr, stdin=subprocess.DEVNULL)
        key = self.kubectl("get", "secret", "agent-sandbox-admin", "-o", "jsonpath={.data.api-key}")
        self.key = subprocess.run(["base64", "-d"], input=key, capture_output=True, text=True, check=True).stdout
        self.http = http.client.HTTPConnection("127.0.0.1", HTTP_PORT, timeout=120)

    def inside(self, *command, **kw):
        """Runs a command on the node; its output as text."""
        return subprocess.run([self.root / "local" / "cluster", "exec", *command], check=True, env=self.env,
                              text=True, stdout=subprocess.PIPE, **kw).stdout

    def kubectl(self, *arguments, **kw):
        return self.inside("kubectl", "-n", NAMESPACE, *arguments, **kw)

    def api(self, method, path, body=None):
        """(status, parsed body) on a connection that is kept."""
        self.http.request(method, path, json.dumps(body) if body is not None else None,
                          {"X-API-Key": self.key, "Content-Type": "application/json"})
        answer = self.http.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
