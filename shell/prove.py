# Says which files the packages of an image lead to, seen as a program sees them that begins in the same place. Runs in
# the candidate's container under any Python from 3.6 on; argv: the packages as JSON, then the directory that the program
# is looked up from, if there is one.
import sys

if sys.path and sys.path[0] == "":
    del sys.path[0]  # the modules that are needed here are Python's own

import base64, csv, hashlib, json, os
from importlib.util import find_spec

packages = json.loads(sys.argv[1])
sys.path[:0] = sys.argv[2:3]
modules, problems = {}, []


def digest(name, algorithm="sha256"):
    with open(name, "rb") as f:
        return hashlib.new(algorithm, f.read())


def same(name, expected):
    try:
        got = digest(name).digest()
    except OSError:
        return False
    return base64.urlsafe_b64encode(got).rstrip(b"=").decode() == expected[7:]


def look(name, site, path, expected):
    try:
        spec = find_spec(name)
    except Exception as e:
        return problems.append("%s cannot be looked up: %r" % (name, e))
    if spec is None:
        return problems.append("%s is not found; expected %s" % (name, os.path.join(site, path)))
    if not expected and spec.origin in (None, "namespace"):  # a package without a file of its own
        found = [os.path.realpath(p) for p in spec.submodule_search_locations or []]
        if found != [os.path.realpath(os.path.join(site, name))]:
            problems.append("%s is found in %s; expected %s" % (name, ", ".join(found) or "nothing", os.path.join(site, name)))
        return
    origin, want = spec.origin or "", os.path.realpath(os.path.join(site, path))
    if os.path.realpath(origin) != want:
        return problems.append("%s is found in %s; expected %s" % (name, origin or "no file", want))
    if expected.startswith("sha256="):
        if not same(want, expected):
            return problems.append("%s is not the file that was installed" % want)
    modules[name] = want


for p in packages:
    info = p["info"]
    site, record = os.path.dirname(info), os.path.join(info, "RECORD")
    title = "%s %s" % (p["name"], p["version"])
    try:
        if digest(record).hexdigest() != p["record"]:
            problems.append("%s: %s is another one than when it was installed" % (title, record))
            continue
    except OSError as e:
        problems.append("%s is not there: %s" % (title, e))
        continue
    tops, patched = {}, p.get("patched") or []
    with open(record, newline="", encoding="utf-8") as f:
        for row in csv.reader(f):
            if len(row) < 2:
                continue
            if os.path.join(site, row[0]) in patched:  # by a fix, on purpose
                row[1] = ""
            if p.get("whole") and row[1] and not same(os.path.join(site, row[0]), row[1]):
                problems.append("%s is not the file that was installed" % os.path.join(site, row[0]))
            parts = row[0].split("/")
            name, rest = parts[0], parts[1:]
            if not rest:  # a module of one file
                stem, dot, kind = name.partition(".")
                if kind == "py" or name.endswith(".so"):
                    tops[stem] = (row[0], row[1])
            elif name.isidentifier() and name != "__pycache__":
                known = tops.setdefault(name, (name, ""))
                if len(rest) == 1 and rest[0].partition(".")[0] == "__init__" and (rest[0].endswith(".py") or rest[0].endswith(".so")):
                    tops[name] = (row[0], row[1])
    for name in sorted(tops):
        if name.isidentifier():
            look(name, site, *tops[name])

json.dump({"modules": modules, "problems": problems}, sys.stdout)
