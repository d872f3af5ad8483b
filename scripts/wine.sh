#!/bin/sh
# Runs the Windows binary under wine: it builds it, and prints a line for each thing that it has to be
# able to do, with ok or FAILED in front. It fails if one of them failed.
#
# It needs wine (8 is enough), wineserver, python3, x86_64-w64-mingw32-gcc, and the Rust target
# x86_64-pc-windows-gnu: on Debian `apt-get install wine wine64 mingw-w64 python3` and
# `rustup target add x86_64-pc-windows-gnu`. No display is needed. It takes a minute, and is no part of
# scripts/check.sh. Wine is not Windows: what is ok here has still to be seen there.
set -eu
cd "$(dirname "$0")/.."

for tool in cargo wine wineserver python3 x86_64-w64-mingw32-gcc; do
    command -v "$tool" >/dev/null || { echo "$0: $tool is missing" >&2; exit 1; }
done
cargo build --locked --quiet --release --target x86_64-pc-windows-gnu

folder=$(mktemp -d)
export WINEPREFIX="$folder/prefix" WINEARCH=win64 WINEDEBUG=-all
# No questions about Mono and Gecko, no menu entries.
export WINEDLLOVERRIDES='mscoree,mshtml=;winemenubuilder.exe=d'
trap 'wineserver -k 2>/dev/null || true; wineserver -w 2>/dev/null || true; rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

cp "${CARGO_TARGET_DIR:-target}/x86_64-pc-windows-gnu/release/uncut.exe" "$folder/uncut.exe"
# Wine 8 lacks this library, which std takes random numbers from.
cat >"$folder/stub.c" <<'C'
#include <windows.h>
/* RtlGenRandom by the name that it is exported under. */
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG size);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T size)
{
    return SystemFunction036(buffer, (ULONG)size);
}
C
x86_64-w64-mingw32-gcc -shared -o "$folder/bcryptprimitives.dll" "$folder/stub.c" -ladvapi32
timeout 300 wine wineboot --init >/dev/null 2>&1

FOLDER=$folder python3 - <<'PYTHON'
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time

folder = os.environ["FOLDER"]
work = os.path.join(folder, "work")
os.mkdir(work)
failed = 0


def check(what, right, seen):
    """Prints the line, and behind it what was seen where that is wrong."""
    global failed
    print(("ok      " if right else "FAILED  ") + what, flush=True)
    if not right:
        failed += 1
        print(f"        {seen}", flush=True)


def start(*arguments):
    command = ["wine", os.path.join(folder, "uncut.exe"), *arguments]
    # Not pipes: what wine leaves running would hold them.
    streams = [open(os.path.join(folder, name), "w+b") for name in ("stdout", "stderr")]
    process = subprocess.Popen(command, cwd=work, stdin=subprocess.DEVNULL,
                               stdout=streams[0], stderr=streams[1])
    return process, streams


def finish(started):
    process, streams = started
    try:
        process.wait(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    texts = []
    for stream in streams:
        stream.seek(0)
        texts.append(stream.read())
        stream.close()
    return process.returncode, texts[0], texts[1].decode()


def uncut(*arguments):
    return finish(start(*arguments))


def call(name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    message = {"role": "assistant", "content": None}
    message["tool_calls"] = [{"id": "call", "type": "function", "function": function}]
    return {"choices": [{"finish_reason": "tool_calls", "message": message}]}


def answer(text, finish_reason="stop"):
    message = {"role": "assistant", "content": text}
    return {"choices": [{"finish_reason": finish_reason, "message": message}]}


def record(*completions):
    with open(os.path.join(work, "replay.jsonl"), "w") as file:
        for completion in completions:
            print(json.dumps(completion), file=file)


def replay(*completions, flags=()):
    """A run with these completions: its exit code, and what the tools told."""
    log = os.path.join(work, "log.jsonl")
    if os.path.exists(log):
        os.remove(log)
    record(*completions)
    code, stdout, stderr = uncut("--replay", "replay.jsonl", "--session", "log.jsonl", *flags, "go")
    with open(log, "rb") as file:
        lines = [json.loads(line) for line in file]
    told = [line["message"]["content"] for line in lines if line["message"]["role"] == "tool"]
    return code, told, stdout, stderr


def alive(word):
    """Whether a ping of ours has the word in its command line; one that has ended has none."""
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/cmdline", "rb") as file:
                command = file.read()
            with open(f"/proc/{number}/environ", "rb") as file:
                ours = folder.encode() in file.read()
        except OSError:
            continue
        if ours and command.startswith(b"ping") and word.encode() in command:
            return True
    return False


def within(seconds, condition):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Refuses every key but one, and answers; for one model it takes its time."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if request["model"] == "slow":
            time.sleep(20)
        good = self.headers["Authorization"] == "Bearer sk-TESTKEY-1"
        body = answer("over HTTP") if good else {"error": {"message": "wrong key"}}
        body = json.dumps(body).encode()
        self.send_response(200 if good else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


seen = uncut("--version")
check("--version", seen[0] == 0 and seen[1].startswith(b"uncut "), seen)

seen = replay(answer("one\r\ntwo"))
check("an answer with CRLF is printed as it came", (seen[0], seen[2]) == (0, b"one\r\ntwo\n"), seen)

seen = replay(call("shell", command='echo "a b"& exit 3'), answer("done"))
right = (seen[0], seen[1]) == (0, ['"a b"\r\n[exit 3]'])
check("a command: quotes as they are, CRLF, exit code", right, seen)

seen = replay(call("shell", command="echo out& echo err>&2& cd& set UNCUT"), answer("done"))
right = seen[1][0].startswith("out\r\nerr") and "work\r\n" in seen[1][0] and "UNCUT=1\r\n" in seen[1][0]
check("a command: one stream in true order, directory, environment", right, seen)

seen = replay(call("shell", command="echo one\necho two"), answer("done"))
check("a command of two lines is refused with advice", "first line only" in seen[1][0], seen)

seen = replay(call("shell", command="echo gr\u00fc\u00df"), answer("done"))
right = seen[1] == ["gr\ufffd\ufffd\r\n[exit 0]\n[2 bytes were not UTF-8 and are shown as U+FFFD]"]
check("a command: what the code page made of letters is told", right, seen)

line = "x" * 1000
seen = replay(call("shell", command=f"for /l %i in (1,1,90) do @echo {line}"), answer("done"))
places = [os.path.join(top, name) for top, _, names in os.walk(work + "/../prefix/drive_c")
          for name in names if "uncut-output-" in top]
right = "bytes of output left out here; all of it is in " in seen[1][0] and places == []
check("a command: long output is cut, and its file gone at the end", right, (seen, places))

path = "sub\\deep\\f.txt"
seen = replay(call("write_file", path=path, content="a\r\nb\r\n"),
              call("edit_file", path=path, old_string="a\nb", new_string="a\nc"),
              call("read_file", path=path), answer("done"))
with open(os.path.join(work, "sub/deep/f.txt"), "rb") as file:
    content = file.read()
right = seen[0] == 0 and content == b"a\r\nc\r\n" and "c" in seen[1][2]
check("the tools for files: backslashes, CRLF", right, (seen, content))

tree = 'start /b cmd /c "ping -n 91 127.0.0.1 >nul"& ping -n 92 127.0.0.1'
begun = time.monotonic()
seen = replay(call("shell", command=tree, timeout=3), call("shell", command="echo next"), answer("done"))
right = "timed out after 3s; killed" in seen[1][0] and seen[1][1].startswith("next")
right = right and time.monotonic() - begun < 60 and within(10, lambda: not alive("9"))
check("a time-out ends the whole tree, and the run goes on", right, seen)

seen = replay(call("shell", command="start /b ping -n 93 127.0.0.1 >nul"), answer("done"))
right = "a background process is still running" in seen[1][0] and within(10, lambda: not alive("93"))
check("a background process is told, and ends with the run", right, seen)

record(call("shell", command="ping -n 94 127.0.0.1"), answer("done"))
started = start("--replay", "replay.jsonl", "go")
right = within(30, lambda: alive("94"))
started[0].kill()
finish(started)
check("a killed run takes its command along", right and within(10, lambda: not alive("94")), "")

started = start("--replay", "replay.jsonl", "go")
right = within(30, lambda: alive("94"))
started[0].send_signal(signal.SIGINT)
seen = finish(started)
right = right and (seen[0], seen[1]) == (130, b"") and within(10, lambda: not alive("94"))
check("Ctrl-C: exit code 130, and the command is dead", right, seen)

seen = uncut("--max-steps", "0", "-m", "m", "go")
check("exit code 2", seen[0] == 2 and seen[1] == b"", seen)
seen = replay(answer("cut", "length"))
check("exit code 12", (seen[0], seen[2]) == (12, b""), seen)

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1"
seen = uncut("--base-url", url, "-m", "m", "--api-key", "sk-TESTKEY-1", "go")
check("an answer from an endpoint", (seen[0], seen[1]) == (0, b"over HTTP\n"), seen)
seen = uncut("--base-url", url, "-m", "m", "--api-key", "sk-TESTKEY-2", "go")
check("exit code 10 from an endpoint", (seen[0], seen[1]) == (10, b""), seen)
seen = uncut("--base-url", url, "-m", "slow", "--timeout", "2s", "go")
check("the deadline: exit code 124", (seen[0], seen[1]) == (124, b""), seen)

log = os.path.join(work, "session.jsonl")
flags = ("--base-url", url, "-m", "m", "--api-key", "sk-TESTKEY-1", "--session", "session.jsonl")
codes = [uncut(*flags, "go")[0] for _ in range(2)]
with open(log, "rb") as file:
    content = file.read()
roles = [json.loads(line)["message"]["role"] for line in content.splitlines()]
right = codes == [0, 0] and roles == ["user", "assistant"] * 2 and b"\r" not in content
check("a session is logged and resumed", right, (codes, content))
with open(log, "ab") as file:
    file.write(b'{"v":1,')
seen = uncut(*flags, "go")
check("a damaged session: exit code 30", seen[0] == 30, seen)

print(f"{failed} failed")
sys.exit(failed != 0)
PYTHON
