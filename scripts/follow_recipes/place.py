"""What the recipes are followed in: a fresh folder, an endpoint, and the text of each recipe."""

import contextlib
import http.server
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

KEY = "sk-recipes-0123456789"
BINARY = Path(sys.argv[1]).resolve()
SCRIPTS = Path(__file__).resolve().parent.parent
RECIPES = SCRIPTS / "recipes"
CI = ["check-jsonschema", "kubernetes-validate", "yaml module"]

# Names of the recipes that something has taken.
TAKEN = set()


def take(name):
    """The text of a recipe, without the comments at its start."""
    TAKEN.add(name)
    lines = (RECIPES / name).read_text(encoding="utf-8").splitlines(keepends=True)
    while lines and (lines[0].startswith("#") or not lines[0].strip()):
        lines.pop(0)
    return "".join(lines)


def expect(is_so, what):
    if not is_so:
        raise AssertionError(what)


def same(found, expected):
    expect(found == expected, f"found {found!r}, not {expected!r}")


def answer(text):
    return 200, {}, message({"content": text}, "stop")


def call(name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    return 200, {}, message({"content": None, "tool_calls": calls}, "tool_calls")


def message(members, finish_reason):
    choice = {"index": 0, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    return {"choices": [choice | {"message": {"role": "assistant"} | members}], "usage": usage}


def error(status, text, **headers):
    return status, headers, {"error": {"message": text}}


# Asks for more patience than a run has, so that it ends as `transient` at once.
NOT_NOW = error(429, "too many requests", **{"Retry-After": "3600"})
BAD_KEY = error(401, "bad key")


class Endpoint(http.server.ThreadingHTTPServer):
    """Gives its replies one after the other; in place of a list they may be a function."""

    daemon_threads = True

    def __init__(self, replies):
        super().__init__(("127.0.0.1", 0), Exchange)
        self.replies, self.requests, self.keys = replies, [], []
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def reply(self, request, authorization):
        with self.lock:
            self.requests.append(request)
            self.keys.append(authorization)
            if callable(self.replies):
                return self.replies(request)
            return self.replies.pop(0) if self.replies else error(400, "nothing is left to reply")


class Exchange(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, headers, body = self.server.reply(request, self.headers["Authorization"])
        body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def endpoint(*replies):
    server = Endpoint(replies[0] if replies and callable(replies[0]) else list(replies))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
        expect(callable(server.replies) or not server.replies, f"not asked for: {server.replies}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Place:
    """A fresh folder, and a PATH with uncut and with what has to be imitated."""

    def __init__(self, folder):
        self.folder, self.bin, self.images = folder / "home", folder / "bin", folder / "images"
        for path in (self.folder, self.bin, self.images):
            path.mkdir()
        shutil.copy2(BINARY, self.bin / "uncut")
        self.environment = {
            "HOME": str(self.folder),
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "RECIPES": str(folder),
        }

    def program(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def write(self, **files):
        for name, text in files.items():
            self.file(name.replace("__", "."), text)

    def file(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def read(self, name):
        return (self.folder / name).read_text()

    def result(self, name="result.json"):
        return json.loads(self.read(name))

    def run(self, command, server=None, shell=("sh", "-c"), **environment):
        """Exit code, stdout and stderr."""
        environment = self.environment | environment
        if server:
            environment["UNCUT_BASE_URL"] = server.url
        process = subprocess.Popen(
            [*shell, command], cwd=self.folder, env=environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            stdout, stderr = process.communicate(timeout=100)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        expect(KEY not in stdout + stderr, "the key is shown")
        return process.returncode, stdout, stderr


def tool(*command):
    """What a validator has to say; nothing, if it has no objection."""
    done = subprocess.run(command, text=True, capture_output=True, timeout=100)
    expect(done.returncode == 0, done.stdout + done.stderr)
    return done.stdout + done.stderr


FOLLOWED = []


def recipe(name, *needs):
    def add(follow):
        FOLLOWED.append((name, needs, follow))
        return follow
    return add


def missing(need):
    if need == "root":
        return os.geteuid() != 0
    if need == "a static binary":
        return b"/ld-" in BINARY.read_bytes()[:4096]
    if need.endswith(" module"):
        return importlib.util.find_spec(need.split()[0]) is None
    return shutil.which(need) is None
