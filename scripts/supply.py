#!/usr/bin/env python3
"""What a release binary is made of, from Cargo.lock and `cargo metadata`, with no network.

usage: scripts/supply.py sbom TARGET       a CycloneDX 1.6 software bill of materials, on stdout
       scripts/supply.py licences TARGET   the licence texts that go along with the binary

The same sources and the same toolchain give the same bytes. Whatever is missing of a package, its
checksum, its licence or its text, is an error.
"""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import time

REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
TEXTS = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def main():
    works = {"sbom": sbom, "licences": licences}
    if len(sys.argv) != 3 or sys.argv[1] not in works:
        sys.exit(__doc__)
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    sys.stdout.write(works[sys.argv[1]](sys.argv[2]))


def sbom(target):
    root, packages = linked(target)
    at_build = packages_of(target, "normal,build")
    known = checksums()
    nodes = {node["id"]: node["dependencies"] for node in metadata(target)["resolve"]["nodes"]}
    listed = {package["id"]: purl(package) for package in at_build.values()}
    components = [
        component(package, known, "required" if key in packages else "excluded")
        for key, package in sorted(at_build.items())
        if package["id"] != root["id"]
    ]
    graph = [
        {"ref": ref, "dependsOn": sorted(listed[other] for other in nodes[id] if other in listed)}
        for id, ref in sorted(listed.items(), key=lambda item: item[1])
    ]
    tool = {"type": "application", "name": "rustc", "version": rustc("release")}
    program = {"type": "application", "bom-ref": purl(root), "name": root["name"]}
    program |= {"version": root["version"], "description": root["description"]}
    program["properties"] = [{"name": "cargo:target", "value": target}]
    about = {"tools": {"components": [tool]}, "component": program}
    if "SOURCE_DATE_EPOCH" in os.environ:
        seconds = int(os.environ["SOURCE_DATE_EPOCH"])
        about["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": about,
        "components": components + [standard_library()],
        "dependencies": graph,
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def component(package, known, scope):
    """A package, as the bill has it. What only runs while the binary is built is `excluded`."""
    name, version = package["name"], package["version"]
    if package["source"] != REGISTRY:
        sys.exit(f"{name} {version}: comes from {package['source']}, not from crates.io")
    if not package["license"]:
        sys.exit(f"{name} {version}: names no licence")
    return {
        "type": "library",
        "bom-ref": purl(package),
        "name": name,
        "version": version,
        "purl": purl(package),
        "scope": scope,
        # The slash is how licences were told apart before there were expressions.
        "licenses": [{"expression": package["license"].replace("/", " OR ")}],
        "hashes": [{"alg": "SHA-256", "content": known[name, version]}],
    }


def standard_library():
    """It is in the binary as well, and with it the C library of the musl targets."""
    version = rustc("release")
    ref = f"pkg:github/rust-lang/rust@{rustc('commit-hash')}"
    return {
        "type": "library",
        "bom-ref": ref,
        "name": "rust-std",
        "version": version,
        "purl": ref,
        "scope": "required",
        "description": "The standard library of Rust, as it comes with the toolchain",
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    }


def licences(target):
    root, packages = linked(target)
    name = f"uncut {root['version']} for {target}"
    texts = [f"{name} holds the packages below, and the standard library of Rust.\n"]
    for _, package in sorted(packages.items()):
        if package["id"] == root["id"]:
            continue
        folder = pathlib.Path(package["manifest_path"]).parent
        found = sorted(path for path in folder.iterdir() if TEXTS.match(path.name))
        found = [path for path in found if path.is_file()]
        title = f"{package['name']} {package['version']}"
        if not found:
            sys.exit(f"{title}: has no licence text")
        texts.append(f"\n{'=' * 100}\n{title}: {package['license']}\n")
        for path in found:
            text = "\n".join(read(path).splitlines())
            texts.append(f"\n--- {path.name}\n\n{text}\n")
    return "".join(texts)


def linked(target):
    """Our own package, and all that the binary is linked from."""
    packages = packages_of(target, "normal")
    return packages["uncut", own_version()], packages


def packages_of(target, edges):
    """Name and version to package. `cargo metadata` alone can't say it: it turns on the features
    that only tests want."""
    what = ["--edges", edges, "--target", target, "--prefix", "none", "--format", "{p}"]
    tree = cargo("tree", *what)
    words = [line.split(" ") for line in tree.splitlines()]
    keys = {(name, version.removeprefix("v")) for name, version, *_ in words}
    return {
        (package["name"], package["version"]): package
        for package in metadata(target)["packages"]
        if (package["name"], package["version"]) in keys
    }


@functools.cache
def metadata(target):
    return json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", target))


def own_version():
    return re.search(r'^version = "(.*)"$', read("Cargo.toml"), re.M)[1]


def checksums():
    """Name and version to the SHA-256 of the package's archive."""
    line = r'name = "(.*)"\nversion = "(.*)"\nsource = ".*"\nchecksum = "([0-9a-f]{64})"'
    found = re.findall(line, read("Cargo.lock"))
    return {(name, version): checksum for name, version, checksum in found}


def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def cargo(command, *arguments):
    line = [os.environ.get("CARGO", "cargo"), command, "--locked", *arguments]
    return subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout


def rustc(field):
    told = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.search(rf"^{field}: (.*)$", told, re.M)[1]


if __name__ == "__main__":
    main()
