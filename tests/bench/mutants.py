#!/usr/bin/env python3
"""Changes one line of the product at a time and counts what the tests notice.

usage: mutants.py TREE WORK [options]

Builds the source tree TREE below the empty folder WORK, runs its tests once, and
then N times with a line changed at random: a comparison, an operator, a number,
a truth value or a condition is replaced, or a statement is removed. A change that
does not compile, or that does not alter the object file, is replaced by another. A
change is caught if a test fails, crashes, or takes ten times as long as without it.
Every job has a copy of the build, mounted where it was built; this needs Linux,
unshare and some 300 MB per job.

  --n N          changes (300)
  --seed S       seed of the draw (1)
  --jobs J       number of copies that work at a time (all processors)
  --slowest T    leave out tests that take longer than T seconds (5)
  --only REGEX   change files whose path matches (all C sources and headers of
                 algs, driver and flatten)
  --options ...  options of cmake, in one word (-DOGRJOIN_CUDA=OFF)

Prints a line for each change, and how many of them were caught.
"""

import argparse
import concurrent.futures as futures
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time

SKIPPED = 77  # exit code of a test that cannot run here

# (pattern in a line, replacement)
CHANGES = (
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
    (r" == ", " != "), (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "),
    (r" \+ ", " - "), (r" - ", " + "), (r" \* (?=[\w(])", " + "),
    (r" / ", " * "), (r" \+= ", " -= "), (r" -= ", " += "), (r"\+\+", "--"),
    (r"--", "++"), (r" & ", " | "), (r" \| ", " & "), (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"), (r"(?<=[ (&|])!(?=[\w(])", ""),
    (r"(?<![\w.])\d+(?![\w.])", lambda m: str(int(m.group()) + 1)),
    (r"^(\s*(?:else )?(?:if|while) \()(.*)\)$", r"\1!(\2))"),
    (r"^(\s+)(?:[\w>.\[\]*-]+ [-+|&*]?= .*|\w+\(.*\));$", r"\1;"),
)  # fmt: skip


def code_lines(path):
    """Yields number and text of each line of a file that may be changed."""
    is_comment = False
    for number, text in enumerate(open(path, encoding="utf-8")):
        text = text.rstrip("\n")
        starts = text.lstrip().startswith("/*")
        if is_comment or starts:
            is_comment = "*/" not in text
        elif '"' not in text and text[:1] == " " and "//" not in text:
            yield number, re.sub(r"\s*/\*.*", "", text)


def all_mutants(tree, only, seed):
    """Yields one random change of each line that can be changed, as (path, number of
    the line, old text, new text). The seed determines the order and the changes."""
    lines = []
    for room in ("algs", "driver", "flatten"):
        for path in glob.glob(f"{tree}/{room}/**/*.[ch]", recursive=True):
            path = os.path.relpath(path, tree)
            if re.search(only, path):
                lines += [(path, *line) for line in code_lines(f"{tree}/{path}")]
    lines.sort()
    draw = random.Random(seed)
    draw.shuffle(lines)
    for path, number, text in lines:
        changed = []
        for pattern, new in CHANGES:
            for match in re.finditer(pattern, text):
                end = match.expand(new) if isinstance(new, str) else new(match)
                changed.append(text[: match.start()] + end + text[match.end() :])
        if changed:
            yield path, number, text, draw.choice(changed)


def run_quietly(command, **options):
    return subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL, check=False, **options,
    ).returncode  # fmt: skip


def list_tests(build):
    """Returns the tests of a build that do not need other tests to run first."""
    listed = json.loads(
        subprocess.check_output(
            ["ctest", "--test-dir", build, "--show-only=json-v1"]
        )
    )
    tests = []
    for test in listed["tests"]:
        has = {p["name"]: p["value"] for p in test.get("properties", [])}
        if "command" in test and not has.get("DISABLED") \
                and "FIXTURES_REQUIRED" not in has:  # fmt: skip
            tests.append(
                {
                    "name": test["name"],
                    "command": test["command"],
                    "folder": has.get("WORKING_DIRECTORY", build),
                    "environment": has.get("ENVIRONMENT", []),
                }
            )
    return tests


def run_test(test, limit):
    """Runs a test. Returns its exit code, or None if it takes more than limit
    seconds."""
    environment = dict(os.environ)
    environment.update(v.split("=", 1) for v in test["environment"])
    process = subprocess.Popen(
        test["command"], cwd=test["folder"], env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        # each test program of Check is a process group of its own
        run_quietly(["pkill", "-9", "-s", str(process.pid)])
        process.wait()
        return None


def object_bytes(build, path):
    """Returns the bytes of the object files of a source, or [] if the source is not
    built."""
    names = glob.glob(f"{build}/**/{path}.o", recursive=True)
    return [open(name, "rb").read() for name in sorted(names)]


def try_mutant(here, tests, mutant):
    """Returns the name of a test that fails with the change, or "" if none fails.
    Returns None if the change does not compile, or does not alter the object file."""
    path, number, old, new = mutant
    source, build = f"{here}/source", f"{here}/build"
    name = f"{source}/{path}"
    before = open(name, encoding="utf-8").read()
    objects = object_bytes(build, path)
    lines = before.split("\n")
    lines[number] = lines[number].replace(old, new, 1)
    try:
        with open(name, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        if run_quietly(["cmake", "--build", build, "-j", "4"]) != 0:
            return None
        if path.endswith(".c") and object_bytes(build, path) == objects:
            return None
        for test in tests:
            limit = 10 * max(1.0, test["seconds"])
            if run_test(test, limit) not in (0, SKIPPED):
                return test["name"]
        return ""
    finally:
        with open(name, "w", encoding="utf-8") as file:
            file.write(before)


def be_worker(here):
    """Tests mutants that it reads from stdin, one per line, in the copy that is mounted
    at `here`."""
    tests = json.load(open(f"{here}/tests.json", encoding="utf-8"))
    for line in sys.stdin:
        print(json.dumps(try_mutant(here, tests, json.loads(line))), flush=True)


class Draw:
    """Hands out mutants in order, until n of them were tested."""

    def __init__(self, mutants, n):
        self.mutants, self.n = mutants, n
        self.n_used = self.n_out = self.n_caught = 0
        self.changed = threading.Condition()

    def take(self):
        with self.changed:
            while self.n_used + self.n_out >= self.n and self.n_out > 0:
                self.changed.wait()
            mutant = next(self.mutants, None) if self.n_used < self.n else None
            self.n_out += mutant is not None
            return mutant

    def report(self, mutant, test):
        path, number, old, new = mutant
        with self.changed:
            self.n_out -= 1
            self.n_used += test is not None
            self.n_caught += bool(test)
            if test is not None:
                print(
                    f"{test or 'SURVIVED'}: {path}:{number + 1}: "
                    f"{old.strip()} -> {new.strip()}",
                    flush=True,
                )
            self.changed.notify_all()


def feed_worker(here, job, draw):
    worker = subprocess.Popen(
        ["unshare", "--map-root-user", "--mount", "sh", "-c",
         'mount --bind "$1" "$2" && cd "$2" && exec "$3" "$4" --worker "$2"',
         "sh", job, here, sys.executable, os.path.abspath(__file__)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=dict(os.environ, TMPDIR=f"{here}/tmp"),
    )  # fmt: skip
    while (mutant := draw.take()) is not None:
        worker.stdin.write(json.dumps(mutant) + "\n")
        worker.stdin.flush()
        draw.report(mutant, json.loads(worker.stdout.readline()))
    worker.stdin.close()
    worker.wait()


def prepare(tree, here, options, slowest, jobs):
    """Builds the tree. Returns the tests that pass within the limit, the fastest
    first."""
    source, build = f"{here}/source", f"{here}/build"
    shutil.copytree(
        tree, source, symlinks=True,
        ignore=shutil.ignore_patterns(".git", "build", "out"),
    )  # fmt: skip
    os.mkdir(f"{here}/tmp")
    made = ["cmake", "-G", "Ninja", "-S", source, "-B", build, *options]
    if run_quietly(made) or run_quietly(
        ["cmake", "--build", build, "-j", str(jobs)]
    ):
        sys.exit(f"mutants.py: {tree} does not build")
    tests = []

    def try_test(test):
        start = time.monotonic()
        code = run_test(test, slowest)
        test["seconds"] = time.monotonic() - start
        if code == 0:
            tests.append(test)
        elif code not in (None, SKIPPED):
            print(f"left out, fails without a change: {test['name']}")

    with futures.ThreadPoolExecutor(max(1, jobs // 2)) as pool:
        list(pool.map(try_test, list_tests(build)))
    tests.sort(key=lambda t: t["seconds"])
    total = sum(t["seconds"] for t in tests)
    print(f"{len(tests)} tests of at most {slowest} s, {total:.0f} s in all")
    return tests


def main():
    if sys.argv[1:2] == ["--worker"]:
        return be_worker(sys.argv[2])
    parser = argparse.ArgumentParser(add_help=False, usage=__doc__)
    parser.add_argument("tree")
    parser.add_argument("work")
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--slowest", type=float, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--options", default="-DOGRJOIN_CUDA=OFF")
    args = parser.parse_args()
    here = f"{os.path.realpath(args.work)}/here"
    os.makedirs(here)
    tests = prepare(
        args.tree, here, args.options.split(), args.slowest, args.jobs
    )
    json.dump(tests, open(f"{here}/tests.json", "w", encoding="utf-8"))
    draw = Draw(all_mutants(f"{here}/source", args.only, args.seed), args.n)
    threads = []
    for k in range(args.jobs):
        job = f"{args.work}/job_{k}"
        shutil.copytree(here, job, symlinks=True)
        thread = threading.Thread(target=feed_worker, args=(here, job, draw))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    share = draw.n_caught / max(draw.n_used, 1)
    print(f"{draw.n_used} changes, {draw.n_caught} caught: {share:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
