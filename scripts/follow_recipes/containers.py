"""The recipes for containers: images, and a job on a cluster."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

from place import (
    BINARY, CI, KEY, NOT_NOW, SCRIPTS, answer, call, endpoint, expect, recipe, same, take, tool)


CONTAINER = ["a static binary", "root", "unshare", "chroot"]


def image(place, kind, name):
    docker = Path(__file__).with_name("docker.py").read_text()
    place.program("docker", f"#!{sys.executable}\n{docker}")
    folder = place.folder.parent / f"image-{kind}"
    folder.mkdir()
    (folder / "Dockerfile").write_text(take(f"{kind}.Dockerfile"))
    shutil.copy2(BINARY, folder / "uncut")
    same(place.run(f"docker build -t {name} {folder}"), (0, "", ""))


def tools_of(server):
    return {tool["function"]["name"] for tool in server.requests[0]["tools"]}


def follow_container(place, kind, *calls):
    image(place, kind, "uncut")
    build, run = take("container.sh").split("\n", 1)
    place.folder.parent.chmod(0o755)
    # Somebody without a name.
    run = run.replace("$(id -u)", "65500").replace("$(id -g)", "65500")
    os.chown(place.folder, 65500, 65500)
    shutil.copy2(place.folder.parent / f"image-{kind}/Dockerfile", place.folder)
    shutil.copy2(BINARY, place.folder / "uncut")
    same(place.run(build), (0, "", ""))
    with endpoint(*calls, answer("None.")) as server:
        code, stdout, stderr = place.run(run, server, UNCUT_API_KEY=KEY)
    same((code, stdout), (0, "None.\n"))
    same(server.keys[0], f"Bearer {KEY}")
    same((place.folder / "notes").stat().st_uid, 65500)
    return server, [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "tool"]


@recipe("an image from scratch", *CONTAINER)
def from_scratch(place):
    write = call("write_file", path="notes", content="x")
    outside = call("write_file", path="/bin/notes", content="x")
    server, results = follow_container(place, "scratch", write, outside)
    same(tools_of(server), {"read_file", "write_file", "edit_file"})
    expect("ead-only" in results[1], results)


@recipe("an image with busybox", *CONTAINER, "busybox")
def from_busybox(place):
    shell = call("shell", command="id -u; echo $$; touch notes /tmp/notes; touch /notes")
    server, results = follow_container(place, "busybox", shell)
    expect("shell" in tools_of(server), tools_of(server))
    expect(results[0].startswith("65500\n") and "ead-only" in results[0], results)


@recipe("Kubernetes", *CI, *CONTAINER, "busybox")
def kubernetes(place):
    import yaml
    text = take("kubernetes.yaml")
    file = place.file("job.yaml", text)
    tool("kubernetes-validate", "--strict", str(file))
    spec = yaml.safe_load(text)["spec"]
    pod = spec["template"]["spec"]
    readme = (SCRIPTS.parent / "README.md").read_text(encoding="utf-8")
    codes = set(map(int, re.findall(r"^\| (\d+) \| `\w+` \|", readme, re.M))) - {0}
    expect(len(codes) == 20, codes)
    same({code for code in codes if policy(spec, code) != "FailJob"}, {75})
    same(policy(spec, 143, ["DisruptionTarget"]), "Ignore")

    container, = pod["containers"]
    image(place, "busybox", container["image"])
    place.folder.parent.chmod(0o755)
    user, group = (pod["securityContext"][name] for name in ("runAsUser", "fsGroup"))
    volumes = {}
    for volume in pod["volumes"]:
        folder = volumes[volume["name"]] = place.folder / volume["name"]
        folder.mkdir()
        if "secret" in volume:
            (folder / "key").write_text(KEY)
            (folder / "key").chmod(volume["secret"]["defaultMode"])
            os.chown(folder / "key", 0, group)
        else:
            os.chown(folder, 0, group)
            folder.chmod(0o2777)
    # What the checkout would leave.
    (volumes["work"] / "app").mkdir()
    os.chown(volumes["work"] / "app", user, group)
    same(pod["initContainers"][0]["args"][-1], "/work/app")
    expect(container["securityContext"]["readOnlyRootFilesystem"], "a root that can be written")
    command = ["docker", "run", "--read-only", "-u", f"{user}:{group}"]
    for mount in container["volumeMounts"]:
        mode = "ro" if mount.get("readOnly") else "rw"
        command += ["-v", f"{volumes[mount['name']]}:{mount['mountPath']}:{mode}"]
    command += [container["image"], *container["args"]]
    command = " ".join(f"'{word}'" for word in command)
    shell = call("shell", command="pwd; id -u; yes | head -c 100000; cat /etc/passwd; touch x")
    for replies, outcome in [([shell, answer("None.")], "ok"), ([NOT_NOW], "transient")]:
        with endpoint(*replies) as server:
            code, stdout, stderr = place.run(command, server)
        logs = [line for line in (stdout + stderr).splitlines() if line.startswith("{")]
        same([json.loads(line)["outcome"] for line in logs], [outcome])
        same(server.keys[0], f"Bearer {KEY}")
        if outcome == "ok":
            same(code, 0)
            said = server.requests[-1]["messages"][-1]["content"]
            expect(said.startswith("/work/app\n65532\n") and "/tmp/" in said, said)
    same(code, 75)
    expect(re.search("^uncut: transient: .*$", stderr.splitlines()[-1]), stderr)


def policy(spec, code, conditions=()):
    """What the first rule that matches says; a failure that none matches counts."""
    for rule in spec["podFailurePolicy"]["rules"]:
        if "onExitCodes" in rule:
            is_in = code in rule["onExitCodes"]["values"]
            if is_in == (rule["onExitCodes"]["operator"] == "In"):
                return rule["action"]
        elif any(condition["type"] in conditions for condition in rule["onPodConditions"]):
            return rule["action"]
    return "Count"
