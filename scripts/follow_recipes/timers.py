"""The recipes for timers: cron and systemd."""

import contextlib
import datetime
import os
import re

from place import BAD_KEY, KEY, NOT_NOW, answer, call, endpoint, expect, recipe, same, take, tool


@recipe("cron", "flock")
def cron(place):
    *settings, line = take("crontab").splitlines()
    place.environment["PATH"] = f"{place.bin}:{dict(s.split('=') for s in settings)['PATH']}"
    # As cron does: five fields, and a bare % would be the end of the line.
    command = line.split(None, 5)[5]
    expect(not re.search(r"(?<!\\)%", command), "a % without backslash")
    command = command.replace(r"\%", "%")
    place.write(uncut__key=KEY, nightly__md="Mend it.\n")
    (place.folder / "app").mkdir()
    (place.folder / "uncut.key").chmod(0o600)
    with endpoint(call("shell", command="pwd"), answer("Mended.")) as server:
        same(place.run(command, server), (0, "", ""))
    same(place.read("answer.txt"), "Mended.\n")
    same(set(server.keys), {f"Bearer {KEY}"})
    session = place.folder / f"uncut-{datetime.date.today().isoformat()}.jsonl"
    expect(str(place.folder / "app") in session.read_text(), "not in the working directory")
    with endpoint(BAD_KEY) as server:
        code, stdout, stderr = place.run(command, server)
    same((code, stdout, place.read("answer.txt")), (10, "", ""))
    expect(re.fullmatch("uncut: rejected: .*\n", stderr), stderr)
    # A second run while the first one waits for the endpoint: nothing is asked, nothing is said.
    seen = []
    with endpoint(lambda _: seen.append(place.run(command, server)) or answer("Mended.")) as server:
        server.lock = contextlib.nullcontext()
        same(place.run(command, server), (0, "", ""))
    same(seen, [(1, "", "")])


@recipe("systemd", "systemd-analyze", "setpriv", "root")
def systemd(place):
    units = place.folder.parent / "units"
    units.mkdir()
    for name in ("uncut.service", "uncut.timer"):
        (units / name).write_text(take(name))
    same(tool("systemd-analyze", "verify", *map(str, sorted(units.iterdir()))), "")
    service = dict(line.split("=", 1) for line in (units / "uncut.service").read_text().splitlines()
                   if "=" in line)
    # What the manager would make of the line, with folders of this place.
    folders = {"/srv/app": "app", "/etc/uncut": "etc", "%d": "credentials", "%S/uncut": "state"}
    line = service["ExecStart"]
    for name, folder in folders.items():
        (place.folder / folder).mkdir()
        line = line.replace(name, str(place.folder / folder))
    line = line.replace("%%", "%").replace("$$", "$")
    place.file("credentials/key", KEY)
    place.file("etc/nightly.md", "Mend it.\n")
    for path in [place.folder.parent, *place.folder.rglob("*"), place.folder]:
        os.chown(path, 65532, 65532)
    start = (f"cd app && exec setpriv --reuid 65532 --regid 65532 --clear-groups --no-new-privs "
             f"--bounding-set -all {line}")
    edit = call("shell", command="echo mended >work && id -u")
    for replies, code in [([edit, NOT_NOW], 75), ([answer("Mended.")], 0)]:
        with endpoint(*replies) as server:
            done = place.run(start, server)
        same(done[0], code)
        same(str(code) in service["RestartForceExitStatus"].split(), code == 75)
    same(done[1], "Mended.\n")
    same(place.read("app/work"), "mended\n")
    roles = [m["role"] for m in server.requests[0]["messages"]]
    same(roles, ["system", "user", "assistant", "tool"])
    # What stopping the service does: TERM for uncut alone.
    stop = call("shell", command="kill -TERM $(cat uncut.pid); sleep 100")
    with endpoint(stop) as server:
        code, _, _ = place.run(start.replace("exec setpriv", "echo $$ >uncut.pid; exec setpriv"),
                               server)
    same(str(code), service["SuccessExitStatus"])
