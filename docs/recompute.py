#!/usr/bin/env python3
"""Recomputes the figures of a bundle of `benchgraph report -bundle` from the raw outputs in it, with nothing of benchgraph.

    python3 recompute.py BUNDLE REGEXP
    python3 recompute.py BUNDLE BENCHMARK=REGEXP ...

REGEXP is the match of the primary metric, as the project's file in the bundle has it; its group is the number, and its last match in an
output counts. A bundle with several benchmarks needs the REGEXP of each. Of every row with at least two blocks, the effect, the t interval,
p (sign flips) and p_t (the t test that decides), both after Holm within the commit, are held against those of the report. Where running first in a block, or the speed of the machine as its canary tells it, changes samples
beyond doubt, that is removed first, as docs/statistics.md says. It needs Python's standard library alone.
"""
import itertools
import json
import math
import re
import statistics
import sys
import tarfile

TOLERANCE = 1e-7


def incomplete_beta(a, b, x):
    """The regularised incomplete beta function, by the continued fraction of Lentz."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)) / a
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d or 1e-300)
    value = d
    for m in range(1, 500):
        for step in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                     -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 / ((1 + step * d) or 1e-300)
            c = (1 + step / c) or 1e-300
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * value


def t_quantile(p, freedom):
    """The t of Student's distribution below which lies a share of p > 0.5, by bisection."""
    low, high = 0.0, 1e6
    for _ in range(200):
        t = (low + high) / 2
        below = 1 - incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
        low, high = (t, high) if below < p else (low, t)
    return (low + high) / 2


def t_test(mean, error, freedom):
    """The two-sided p of a mean."""
    if mean == 0 or error == 0:
        return 1.0 if mean == 0 else 0.0
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + (mean / error) ** 2))


def solve(rows, values):
    """Least squares of values on the columns of rows: the coefficients, their standard errors and the degrees of freedom."""
    k = len(rows[0])
    matrix = [[math.fsum(r[i] * r[j] for r in rows) for j in range(k)] + [math.fsum(r[i] * v for r, v in zip(rows, values))]
              + [float(i == j) for j in range(k)] for i in range(k)]
    for i in range(k):
        for j in range(k):
            if i != j:
                factor = matrix[j][i] / matrix[i][i]
                matrix[j] = [a - factor * b for a, b in zip(matrix[j], matrix[i])]
    found = [matrix[i][k] / matrix[i][i] for i in range(k)]
    rest = math.fsum((v - math.fsum(c * x for c, x in zip(found, r))) ** 2 for r, v in zip(rows, values))
    freedom = len(rows) - k
    return found, [math.sqrt(rest / freedom * matrix[i][k + 1 + i] / matrix[i][i]) for i in range(k)], freedom


def without_covariates(ratios, lead, speed):
    """Differences without the effect of running first, by least squares with lead, which is 1 where the candidate ran first, -1 where
    the baseline did, and 0 elsewhere, and without that of the canary, by least squares with speed, the ln ratios of its numbers. A
    covariate stays where its effect may be chance, where there are too few blocks, and where it says too little."""
    n = len(ratios)

    def fit(use):
        found, errors, freedom = solve([[1.0] + [columns[name][i] for name in use] for i in range(n)], ratios)
        ps = {name: t_test(c, e, freedom) if abs(c) > 1e-9 else 1.0 for name, c, e in zip(use, found[1:], errors[1:])}
        return found, errors[0], freedom, ps

    columns = {}
    if n >= 6 and min(lead.count(1), lead.count(-1)) >= 2:
        columns["first"] = lead
    if n >= 6 and None not in speed:
        middle = sum(speed) / n
        squares = [(z - middle) ** 2 for z in speed]
        if max(squares) < sum(squares) / 2:
            columns["canary"] = speed
    use = list(columns)
    if len(use) == 2 and n < 8:
        use = [min(use, key=lambda name: fit([name])[3][name])]
    while True:
        found, error, freedom, ps = fit(use)
        if all(p < 0.002 for p in ps.values()):
            break
        use.remove(max(use, key=ps.get))
    slopes = dict(zip(use, found[1:]))
    clean = [d - math.fsum(slopes[name] * columns[name][i] for name in use) for i, d in enumerate(ratios)]
    return clean, found[0], error, freedom, slopes


def sign_flip(ratios):
    """The share of all choices of signs whose sum is at least as far from 0 as the sum seen."""
    seen = abs(sum(ratios)) - 1e-12 * sum(map(abs, ratios))
    sums = [sum(s * r for s, r in zip(signs, ratios)) for signs in itertools.product((1, -1), repeat=len(ratios))]
    return sum(abs(s) >= seen for s in sums) / len(sums)


def holm(ps):
    corrected, worst = [0.0] * len(ps), 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        worst = max(worst, min(1.0, ps[i] * (len(ps) - rank)))
        corrected[i] = worst
    return corrected


def main(bundle, *patterns):
    with tarfile.open(bundle) as tar:
        files = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
    known, report = json.loads(files["bundle.json"]), json.loads(files["report.json"])
    benchmarks = {r["benchmark"] for r in report["comparisons"]}
    named = dict(p.split("=", 1) for p in patterns if p.split("=", 1)[0] in benchmarks)
    others = [p for p in patterns if p.split("=", 1)[0] not in benchmarks]
    if len(others) > 1:
        sys.exit(f"{others[1]}: no benchmark has this name. The benchmarks are {', '.join(sorted(benchmarks))}")
    results = {n["address"]: n["result"]["key"] for n in known["nodes"] if n.get("result")}
    aside = {(s["benchmark"], s["candidate"], s["block"]) for s in report["samples"] if s.get("phase")}  # burn-in, which is not judged
    series = {}  # benchmark, candidate -> block -> number
    canaries = {}  # benchmark, candidate -> block -> number of the canary before it
    leads = {}  # benchmark, commit, block -> the candidate that ran first of those with a number
    for group in known["groups"]:
        for block in group["blocks"]:
            key = results.get(block["trial"])
            record = json.loads(files.get(f"results/{key}/record.json", b"null"))
            ran = {}
            for m in group["members"] if record else []:
                own = record["members"].get(m["name"])
                output = files.get(f"results/{key}/{m['name']}/stdout")
                if own is None or own.get("failure") or own.get("skipped") or output is None:
                    continue
                earlier = re.compile(re.escape(f"results/{key}/{m['name']}/") + "pass-[0-9]+/stdout")  # of the same sample, with repeat
                passes = [text for name, text in files.items() if earlier.fullmatch(name)] + [output]
                name = m["benchmark"].split(".", 1)[1].split("[", 1)[0]
                pattern = named.get(name, *others)
                if pattern is None:
                    sys.exit(f"the REGEXP of benchmark {name} is missing: {name}=REGEXP")
                numbers = [re.findall(pattern, text.decode("utf-8", "replace"))[-1:] for text in passes]
                if all(numbers) and (name, m["candidate"], record["block"]) not in aside:
                    series.setdefault((name, m["candidate"]), {})[record["block"]] = statistics.mean(float(n) for [n] in numbers)
                    ran[m["name"]] = (name, m["candidate"])
                    told = record.get("canary") or {}
                    for r in [told.get("before", {})] + (told.get("between") or []):
                        if r.get("member") == m["name"]:
                            canaries.setdefault((name, m["candidate"]), {})[record["block"]] = r["value"]
            ran = [ran[name] for name in record["order"] if name in ran] if record else []
            if ran:
                leads[ran[0][0], ran[0][1].split("/")[0], record["block"]] = ran[0][1]
    rows = [r for r in report["comparisons"] if r["primary"] and r["effect"] is not None and r["blocks"] > 1]
    wrong, raw, raw_t = [], [], []
    for r in rows:
        one, other = (series.get((r["benchmark"], r[side]), {}) for side in ("candidate", "against"))
        sign = -1 if r["better"] == "lower" else 1
        ratios = [sign * math.log(one[b] / other[b]) for b in sorted(one) if b in other]
        if len(ratios) != r["blocks"]:
            sys.exit(f"{r['candidate']}: {len(ratios)} blocks of {r['benchmark']} have a number, and the report has {r['blocks']}: "
                     f"REGEXP must be the match of {r['metric']}")
        who = [leads.get((r["benchmark"], r["commit"], b)) for b in sorted(one) if b in other]
        before = [[canaries.get((r["benchmark"], r[side]), {}).get(b) for side in ("candidate", "against")] for b in sorted(one) if b in other]
        speed = [math.log(own / its) if own and its else None for own, its in before]
        ratios, mean, error, freedom, slopes = without_covariates(ratios, [(w == r["candidate"]) - (w == r["against"]) for w in who], speed)
        t = t_quantile(1 - (1 - r["confidence"]) / 2, freedom)
        figures = {"effect": math.expm1(mean), "low": math.expm1(mean - t * error), "high": math.expm1(mean + t * error),
                   "first": math.expm1(slopes.get("first", 0)), "canary": slopes.get("canary", 0)}
        for name, value in figures.items():
            if abs(value - r.get(name, 0)) > TOLERANCE:
                wrong.append(f"{r['candidate']}: {name} is {value:.12g}, and the report says {r.get(name, 0):.12g}")
        raw.append(sign_flip(ratios))
        raw_t.append(max(t_test(mean, error, freedom), 1e-15))
    together = {}
    for i, r in enumerate(rows):
        together.setdefault((r["compare"], r["benchmark"], r["commit"]), []).append(i)
    for indices in together.values():
        for name, ps in (("p", raw), ("p_t", raw_t)):
            for i, p in zip(indices, holm([ps[i] for i in indices])):
                if name in rows[i] and abs(p - rows[i][name]) > TOLERANCE:
                    wrong.append(f"{rows[i]['candidate']}: {name} is {p:.12g}, and the report says {rows[i][name]:.12g}")
    print("\n".join(wrong) or f"{len(rows)} rows agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
