#!/usr/bin/env python3
"""Writes docs/onnx/coverage.md: which ONNX operators are read, and how many of ONNX's backend tests pass.

    scripts/onnx_coverage.py build/facula DIR [--opencl] [--jobs N] [-o docs/onnx/coverage.md]

DIR has backend-test folders, such as those of ONNX's repository.  Cases that the installed package `onnx` generates beyond them,
and its opset-6 folders (pytorch-converted, pytorch-operator), are counted as well; without the package the page says so.
Operators of com.microsoft and ai.onnx.ml, and some others, have no such cases: those of scripts/peers/check_fusions.py, check_ml.py
and check_rare.py, with what ONNX Runtime makes of them, are counted where that is installed.
--opencl takes long; --opencl-from PAGE keeps the column of a page that an earlier run wrote but for our own cases, and says so.
--check PAGE: exit code 1 if a case fails that the page does not name, or if fewer pass than it says."""
import argparse
import collections
import concurrent.futures
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile


def generated(folder, known):
    """Writes the package's own node cases that are not known; returns how many."""
    import numpy as np
    import onnx
    import warnings
    from onnx import numpy_helper
    from onnx.backend.test.case.node import collect_testcases
    warnings.simplefilter("ignore")
    count = 0

    def message(x, info):
        if isinstance(x, onnx.TensorProto):
            return x
        kind = info.type.WhichOneof("value")
        if kind == "optional_type":
            return numpy_helper.from_optional(x)
        if kind == "sequence_type":
            return numpy_helper.from_list(x)
        return numpy_helper.from_array(np.asarray(x))

    for case in collect_testcases():
        if case.name in known or case.model is None:
            continue
        home = os.path.join(folder, case.name)
        os.makedirs(home)
        onnx.save(case.model, os.path.join(home, "model.onnx"))
        for k, (ins, outs) in enumerate(case.data_sets):
            place = os.path.join(home, "test_data_set_%d" % k)
            os.makedirs(place)
            for what, values, infos in (("input", ins, case.model.graph.input), ("output", outs, case.model.graph.output)):
                for i, x in enumerate(values):
                    with open(os.path.join(place, "%s_%d.pb" % (what, i)), "wb") as f:
                        f.write(message(x, infos[i]).SerializeToString())
        count += 1
    return count


def run(binary, folder, jobs, *more):
    """The results of a folder's cases, which `jobs` processes share."""
    with tempfile.TemporaryDirectory() as parts:
        for k, (name, path) in enumerate(models(folder)):
            part = os.path.join(parts, str(k % jobs))
            os.makedirs(part, exist_ok=True)
            os.symlink(os.path.abspath(os.path.dirname(path)), os.path.join(part, name))
        started = [subprocess.Popen([binary, "conformance", os.path.join(parts, part), "--json", *more], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE) for part in sorted(os.listdir(parts))]
        found = {}
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for out, complaint in pool.map(lambda p: p.communicate(), started):
                if not out.strip():
                    sys.exit("facula conformance %s: %s" % (folder, complaint.strip()))
                found.update({c["name"]: c for c in json.loads(out)["cases"]})
    return found


def compared(binary, folder):
    """Cases of our own scripts, with ONNX Runtime's results; how they are run."""
    peers = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
    for script, more in (("check_fusions.py", []), ("check_ml.py", ["--rounds", "2"]), ("check_rare.py", [])):
        made = subprocess.run([sys.executable, os.path.join(peers, script), binary, "--keep", folder, *more],
                              capture_output=True, text=True)
        if made.returncode:
            sys.exit("%s: %s%s" % (script, made.stdout, made.stderr))


def models(folder):
    for home, _, files in os.walk(folder):
        if "model.onnx" in files:
            yield os.path.basename(home), os.path.join(home, "model.onnx")


def operators(path):
    """The operators of a model, with their domains."""
    import onnx
    m = onnx.load(path, load_external_data=False)
    found = set()

    def walk(graph):
        for n in graph.node:
            found.add(("%s." % n.domain if n.domain not in ("", "ai.onnx") else "") + n.op_type)
            for a in n.attribute:
                if a.type == onnx.AttributeProto.GRAPH:
                    walk(a.g)

    walk(m.graph)
    return found - {"Constant"} or found


def spellings(binary):
    """operator -> (opsets, how it is written)"""
    text = subprocess.run([binary, "op", "--onnx"], capture_output=True, text=True, check=True).stdout
    read = {}
    for line in text.splitlines()[1:]:
        m = re.match(r"(.*?)\s{1,}(no|as these|\d+ on.*)$", line.partition(" ")[2].strip())
        if not m or m.group(1).strip() == "-":
            continue
        for one in m.group(1).split(", "):
            op, _, opsets = one.strip().rpartition(" ")
            had = read.get(op)
            read[op] = ("%s, %s" % (opsets, had[0]) if had else opsets, m.group(2))
    return read


def schemas():
    """Every operator that the package knows, with its newest version; functions and all."""
    import onnx
    newest = {}
    for s in onnx.defs.get_all_schemas():
        domain = "" if s.domain in ("", "ai.onnx") else s.domain + "."
        newest[domain + s.name] = max(newest.get(domain + s.name, 0), s.since_version)
    return newest


def share(cases, results):
    got = [results[c] for c in cases if c in results]
    passed = sum(r["result"] == "passed" for r in got)
    failed = sum(r["result"] == "failed" for r in got)
    return "%d of %d%s" % (passed, len(got), ", %d fail" % failed if failed else "") if got else "-"


def refused(cases, results):
    why = collections.Counter()
    for c in cases:
        r = results.get(c)
        if r and r["result"] == "unsupported":
            text = re.sub(r'^.*?model\.onnx: ', "", r["why"])
            text = re.sub(r'^(node|input|output) "[^"]*": ', "", text)
            why[re.sub(r"\s+", " ", text)[:90]] += 1
    return "; ".join("%s (%d)" % (t.replace("|", "\\|"), n) for t, n in why.most_common(2))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("binary")
    p.add_argument("folder")
    p.add_argument("--opencl", action="store_true", help="on the first OpenCL device too")
    p.add_argument("--opencl-from", metavar="PAGE", help="that column as an earlier page has it; only our own cases are run")
    p.add_argument("--jobs", type=int, default=1, help="processes that share the cases")
    p.add_argument("-o", "--output")
    p.add_argument("--check", metavar="PAGE")
    a = p.parse_args()
    ways = [("CPU", []), ("after export", ["--reexport"])] + ([("OpenCL", ["--device", "opencl"])] if a.opencl else [])
    with tempfile.TemporaryDirectory() as scratch:
        folders = [("backend tests of the folder", a.folder)]
        try:
            import onnx
            known = {name for name, _ in models(a.folder)}
            new = os.path.join(scratch, "generated")
            os.mkdir(new)
            folders.append(("cases that onnx %s generates beyond these" % onnx.__version__, new)) if generated(new, known) else None
            data = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
            for name in ("pytorch-converted", "pytorch-operator"):
                if os.path.isdir(os.path.join(data, name)):
                    folders.append((name + " of the package (opset 6)", os.path.join(data, name)))
            if importlib.util.find_spec("onnxruntime"):
                own = os.path.join(scratch, "own")
                compared(a.binary, own)
                folders.append((OWN, own))
        except ImportError:
            sys.exit("the package onnx says which operators there are: pip install onnx")
        results = {way: {} for way, _ in ways}
        totals, by_op = [], collections.defaultdict(list)
        for title, folder in folders:
            row = [title]
            for way, more in ways:
                found = run(a.binary, folder, a.jobs, *more, *(["--atol", "2e-3"] if title == OWN else []))
                results[way].update(found)
                row.append(found)
            totals.append(row)
            for name, path in models(folder):
                for op in operators(path):
                    by_op[op].append(name)
        newer = fresh(a.binary, dict(folders).get(OWN), by_op) if a.opencl_from else {}
    if a.check:
        return check(a.check, results, totals)
    page = page_of(a.binary, totals, ways, results, by_op)
    if a.opencl_from:
        earlier = open(a.opencl_from).read()
        page = with_column(page, {**columns(earlier), **newer}, failures(earlier))
    if a.output:
        with open(a.output, "w") as f:
            f.write(page)
    else:
        print(page, end="")
    return 0


OWN = "ours, against ONNX Runtime (com.microsoft, ai.onnx.ml, rare ones)"
OPENCL = 4      # which column that is, in every table


def cells_of(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def columns(page):
    """operator, or the title of a sum -> its column OpenCL"""
    had, domain = {}, ""
    for line in page.splitlines():
        if line.startswith("## "): domain = "" if line == "## ai.onnx" else line[3:] + "."
        if line.startswith("| "):
            cells = cells_of(line)
            had[domain + cells[0]] = cells[OPENCL]
    return had


def fresh(binary, folder, by_op):
    """The column OpenCL of our own cases, which are few, and of operators that have no others."""
    found = run(binary, folder, 1, "--device", "opencl", "--atol", "2e-3") if folder else {}
    own = {op: share(cases, found) for op, cases in by_op.items() if all(c in found for c in cases)}
    return {**own, OWN: str(sum(c["result"] == "passed" for c in found.values()))} if folder else {}


def failures(page):
    return re.findall(r"`(test_\w+)`", re.search(r"^Failed: .*$", page, re.M).group(0))


def with_column(page, had, failed):
    """The page with the column OpenCL of an earlier one, in which these failed, and of runs since."""
    domain, lines = "", []
    for line in page.splitlines():
        if line.startswith("## "): domain = "" if line == "## ai.onnx" else line[3:] + "."
        if line.startswith("Failed: "):
            names = ", ".join("`%s`" % c for c in failed) or "nothing"
            line += " The column OpenCL is that of an earlier run, in which %s failed, but for our own cases." % names
        if line.startswith("| "):
            cells = cells_of(line)
            cells.insert(OPENCL, {"operator": "OpenCL", "---": "---"}.get(cells[0]) or had.get(domain + cells[0], "-"))
            line = "| %s |" % " | ".join(cells)
        lines.append(line)
    return "\n".join(lines) + "\n"


def check(path, results, totals):
    page = open(path).read()
    known = set(failures(page))
    said = int(re.search(r"\| all[^|]*\| \d+ \| (\d+)", page).group(1))
    failed = {c for r in results.values() for c, x in r.items() if x["result"] == "failed"}
    failed = sorted(failed - known)
    passed = sum(r["result"] == "passed" for title, cpu, *_ in totals if title != OWN for r in cpu.values())
    print("%d cases pass, the page says %d; %d fail that it does not name"
          % (passed, said, len(failed)), *failed[:9])
    return 1 if failed or passed < said else 0


def page_of(binary, totals, ways, results, by_op):
    out = ["# ONNX operators", "",
           "Made by `scripts/onnx_coverage.py` from a run; not kept by hand. [ONNX.md](../ONNX.md) explains.", "",
           "| cases | in all | " + " | ".join(way for way, _ in ways) + " |",
           "| --- | --- |" + " --- |" * len(ways)]
    sums = [0] * (len(ways) + 1)
    for title, *runs in totals:
        counts = [len(runs[0])] + [sum(c["result"] == "passed" for c in r.values()) for r in runs]
        if title == OWN:
            out.append("| all of ONNX's | %s |" % " | ".join(map(str, sums)))
        sums = [x + y for x, y in zip(sums, counts)]
        out.append("| %s | %s |" % (title, " | ".join(map(str, counts))))
    if totals[-1][0] != OWN:
        out.append("| all of ONNX's | %s |" % " | ".join(map(str, sums)))
    failed = sorted({c for r in results.values() for c, x in r.items() if x["result"] == "failed"})
    out += ["", "Failed: %s." % (", ".join("`%s`" % c for c in failed) if failed else "none"), "",
            "Opsets: those from which on an operator is read, `a-b` up to b; `-`: it is not. Cases: those in which it is.", ""]
    read, newest = spellings(binary), schemas()
    for domain in sorted({op.rpartition(".")[0] for op in set(read) | set(newest)}):
        ops = sorted(op for op in set(read) | set(newest) if op.rpartition(".")[0] == domain)
        out += ["## %s" % (domain or "ai.onnx"), "",
                "| operator | opsets | " + " | ".join(way for way, _ in ways) + " | refused |",
                "| --- | --- |" + " --- |" * (len(ways) + 1)]
        for op in ops:
            cases = by_op.get(op, [])
            out.append("| %s | %s | %s | %s |" % (op.rpartition(".")[2], read.get(op, ("-", ""))[0],
                                                 " | ".join(share(cases, results[way]) for way, _ in ways),
                                                 refused(cases, results["CPU"])))
        out.append("")
    return "\n".join(out[:-1]) + "\n"


sys.exit(main())
