"""The recipes for a shell: by exit code, by result, many repositories."""

import json
import re

from place import BAD_KEY, KEY, NOT_NOW, RECIPES, answer, call, endpoint, expect, recipe, same, take


@recipe("by exit code, in a shell", "jq")
def next_in_a_shell(place):
    script = take("next.sh")
    place.program("sleep", '#!/bin/sh\necho "$@" >>"$HOME/slept"\n')
    cases = [
        ([answer("Mended.")], 0, "Mended.", ""),
        ([BAD_KEY], 10, "bad key", ""),
        ([NOT_NOW, answer("Mended.")], 0, "Mended.", "60\n"),
        ([NOT_NOW, NOT_NOW, NOT_NOW], 75, "too many requests", "60\n600\n0\n"),
        # A second step is not allowed here, so the model sums up, and goes on in the next run.
        ([call("shell", command="true"), answer("Half."), answer("Whole.")], 0, "Whole.", ""),
        ([call("shell", command="true"), answer("Half.")] * 3, 20, "Half.", ""),
    ]
    for replies, code, said, slept in cases:
        for name in ("s.jsonl", "result.json", "slept"):
            (place.folder / name).unlink(missing_ok=True)
        with endpoint(*replies) as server:
            done = place.run(script, server, UNCUT_API_KEY=KEY, UNCUT_MAX_STEPS="1")
        same(done[0], code)
        expect(said in done[1], f"{said!r} is not in {done}")
        same(place.result()["exit_code"], code)
        same(place.read("slept") if (place.folder / "slept").exists() else "", slept)
        asked = [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "user"]
        same(asked.count("The test suite fails. Mend it."), 1)


@recipe("by result, with jq", "jq")
def next_by_result(place):
    script = take("result.sh")
    place.file("completions.jsonl", json.dumps(answer("Mended.")[2]) + "\n")
    uncut = "uncut -q --replay completions.jsonl --output json -o result.json Mend >/dev/null"
    same(place.run(uncut), (0, "", ""))
    with endpoint(call("shell", command="exit 3"), answer("None.")) as server:
        code, stdout, stderr = place.run(script, server)
    expect(re.fullmatch(r"ok\t1\t10\t2\t\nshell took \d+ ms: exit 3\n", stdout), stdout)
    same((code, stderr), (0, ""))
    with endpoint(BAD_KEY, answer("None.")) as server:
        place.run("uncut -q -m any --output json -o result.json Mend", server)
        code, stdout, stderr = place.run(script, server)
    expect(stdout.startswith("no answer\nrejected\t"), stdout)


def repositories(place):
    place.write(task__md="Mend it.\n", repos__txt="repos/a\nrepos/b c\nrepos/d\n")
    for name in ("a", "b c", "d"):
        place.file(f"repos/{name}/AGENTS.md", f"This is {name}.\n")
    asked = []

    def reply(request):
        name = re.search(r"This is (.+)\.", request["messages"][0]["content"])[1]
        asked.append(name)
        first = {"b c": NOT_NOW, "d": BAD_KEY}.get(name, answer("Mended."))
        return first if asked.count(name) == 1 else answer("Mended later.")

    return asked, reply


@recipe("many repositories, with parallel", "parallel", "jq")
def many(place):
    asked, reply = repositories(place)
    with endpoint(reply) as server:
        code, stdout, stderr = place.run(take("many.sh"), server)
    same(sorted(asked), ["a", "b c", "b c", "d"])
    rows = [row.split("\t")[0] for row in stdout.splitlines()]
    same((code, rows), (0, ["ok", "ok", "rejected"]))
    same(place.result("out/b c.json")["answer"], "Mended later.")
    same(place.read("out/b c.jsonl").count("Mend it."), 1)


@recipe("many repositories, with xargs", "xargs")
def many_plainly(place):
    asked, reply = repositories(place)
    line = re.search(r"^# .*: (xargs .*)$", (RECIPES / "many.sh").read_text(), re.M)[1]
    make = take("many.sh").split("parallel", 1)[0]
    with endpoint(reply) as server:
        code, stdout, stderr = place.run(make + line, server)
    same((sorted(asked), code), (["a", "b c", "d"], 123))
    same(place.result("out/b c.json")["outcome"], "transient")
