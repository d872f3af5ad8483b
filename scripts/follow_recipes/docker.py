"""A stand-in for docker: it knows what the recipes need of it, by mounts and chroot, and nothing else."""

import ctypes, json, os, shutil, subprocess, sys
from pathlib import Path

images = Path(os.environ["RECIPES"]) / "images"


def build(name, folder):
    image = {"root": str(images / name.replace("/", "_") / "root"), "user": "0:0"}
    root = Path(image["root"])
    for line in (Path(folder) / "Dockerfile").read_text().splitlines():
        word, rest = line.split(None, 1)
        if word == "FROM":
            shutil.rmtree(root, ignore_errors=True)
            (root / "bin").mkdir(parents=True)
            if rest != "scratch":
                assert rest.startswith("busybox:"), rest
                shutil.copy2(shutil.which("busybox"), root / "bin/busybox")
                for name in subprocess.check_output(["busybox", "--list"], text=True).split():
                    if name != "busybox":
                        (root / "bin" / name).symlink_to("busybox")
        elif word == "COPY":
            source, to = rest.split()
            shutil.copy2(Path(folder) / source, root / to.lstrip("/"))
        elif word == "USER":
            image["user"] = rest
        elif word == "WORKDIR":
            (root / rest.lstrip("/")).mkdir(parents=True)
            image["directory"] = rest
        elif word == "ENTRYPOINT":
            image["entrypoint"] = json.loads(rest)
        else:
            raise SystemExit(f"docker: {line}")
    (root.parent / "image.json").write_text(json.dumps(image))


def run(words):
    mounts, environment, read_only, user = [], {"PATH": "/usr/local/bin:/usr/bin:/bin"}, False, None
    environment |= {n: v for n, v in os.environ.items() if n == "UNCUT_BASE_URL"}
    while words[0].startswith("-"):
        word = words.pop(0)
        if word in ("--rm", "-i"):
            pass
        elif word == "--read-only":
            read_only = True
        elif word in ("--cap-drop", "--security-opt"):
            words.pop(0)
        elif word == "--tmpfs":
            mounts.append([None, words.pop(0), "rw"])
        elif word == "-v":
            mounts.append((words.pop(0) + ":rw").split(":")[:3])
        elif word == "-u":
            user = words.pop(0)
        elif word == "-e":
            name = words.pop(0)
            environment |= {n: v for n, v in os.environ.items() if n == name}
        else:
            raise SystemExit(f"docker: {word}")
    name = words.pop(0)
    image = json.loads((images / name.replace("/", "_") / "image.json").read_text())
    image |= {"user": user or image["user"], "mounts": mounts, "read_only": read_only}
    image |= {"environment": environment, "arguments": image["entrypoint"] + words}
    own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    os.execvp(own[0], own + [sys.executable, __file__, "inside", json.dumps(image)])


def inside(image):
    root = Path(image["root"])

    def mount(*words):
        subprocess.run(["mount", *map(str, words)], check=True)

    def point(path, is_folder):
        point = root / path.lstrip("/")
        point.parent.mkdir(parents=True, exist_ok=True)
        point.mkdir(exist_ok=True) if is_folder else point.touch()
        return point

    mount("--bind", root, root)
    mount("-t", "proc", "proc", point("/proc", True))
    mount("--bind", "/dev/null", point("/dev/null", False))
    for source, path, mode in image["mounts"]:
        to = point(path, source is None or Path(source).is_dir())
        if source is None:
            mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", to)
        else:
            mount("--bind", source, to)
            if mode == "ro":
                mount("-o", "remount,bind,ro", to)
    if image["read_only"]:
        mount("-o", "remount,bind,ro", root)
    os.chroot(root)
    os.chdir(image["directory"])
    user, group = map(int, image["user"].split(":"))
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0, "no_new_privs"
    os.execve(image["arguments"][0], image["arguments"], image["environment"])


match sys.argv[1:]:
    case ["build", "-t", name, folder]:
        build(name, folder)
    case ["run", *words]:
        run(words)
    case ["inside", image]:
        inside(json.loads(image))
    case words:
        raise SystemExit(f"docker: {words}")
