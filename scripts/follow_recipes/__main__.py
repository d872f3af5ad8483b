"""Follows the recipes of scripts/recipes: runs each, or has it validated. See scripts/recipes.sh."""

import contextlib
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import containers  # noqa: F401  each of these adds its recipes to FOLLOWED
import forges  # noqa: F401
import shells  # noqa: F401
import timers  # noqa: F401
from place import FOLLOWED, RECIPES, TAKEN, Place, missing, same


def left_behind(folder):
    """Processes that a recipe has started and not ended."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"RECIPES={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def follow_all():
    is_well = True
    for name, needs, follow in FOLLOWED:
        lacking = [need for need in needs if missing(need)]
        if lacking:
            print(f"{name}: skipped: missing {', '.join(lacking)}", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="uncut-recipes-") as folder:
            try:
                follow(Place(Path(folder)))
                same(left_behind(folder), [])
                print(f"{name}: ok", flush=True)
            except Exception as problem:
                is_well = False
                what = " ".join(f"{type(problem).__name__}: {problem}".split())
                print(f"{name}: FAILED: {what[:500]}", flush=True)
                if "TRACE" in os.environ:
                    traceback.print_exc()
    whole = not any(missing(need) for _, needs, _ in FOLLOWED for need in needs)
    for name in sorted({path.name for path in RECIPES.iterdir()} - TAKEN):
        if whole:
            is_well = False
            print(f"{name}: FAILED: nothing follows it")
    return is_well


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
sys.exit(0 if follow_all() else 1)
