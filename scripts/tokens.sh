#!/bin/sh
# Prints how many tokens the system prompt and the tool schemas take, as they are sent. It asks a
# llama.cpp server for the count where TOKENIZER (http://127.0.0.1:8181 unless set) is one: the
# tokens of its model then. Otherwise it estimates 3.5 bytes a token, and says so.
# It needs python3.
set -eu
cd "$(dirname "$0")/.."
cargo build --locked --quiet
target=${CARGO_TARGET_DIR:-target}
uncut=$(cd "$target/debug" && pwd)/uncut
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

UNCUT=$uncut FOLDER=$folder TOKENIZER=${TOKENIZER:-http://127.0.0.1:8181} python3 - <<'PYTHON'
import http.server
import json
import os
import subprocess
import threading
import urllib.request

requests = []


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Keeps the request, and answers."""

    def do_POST(self):
        requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        message = {"role": "assistant", "content": "done"}
        body = json.dumps({"choices": [{"finish_reason": "stop", "message": message}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Endpoint)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1"
command = [os.environ["UNCUT"], "-q", "-m", "m", "--base-url", url, "--no-agents-md", "go"]
subprocess.run(command, cwd=os.environ["FOLDER"], check=True, stdout=subprocess.DEVNULL)


def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["TOKENIZER"] + path, data, headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def name():
    try:
        return "the tokenizer of " + ask("/v1/models")["data"][0]["id"].rsplit("/", 1)[-1]
    except (OSError, ValueError, LookupError):
        return None


tokenizer = name()
print("counted by", tokenizer or "an estimate of 3.5 bytes a token: no tokenizer answers")
prompt = requests[0]["messages"][0]["content"]
schemas = json.dumps(requests[0]["tools"], separators=(",", ":"))
total = 0
for what, text in [("system prompt", prompt), ("tool schemas", schemas)]:
    size = len(text.encode())
    tokens = len(ask("/tokenize", {"content": text})["tokens"]) if tokenizer else round(size / 3.5)
    total += tokens
    print(f"{what}\t{size} bytes\t{tokens} tokens")
print(f"together\t{total} tokens, of 900")
PYTHON
