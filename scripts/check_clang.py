#!/usr/bin/env python3
"""The second compiler's warnings, without its code: clang reads every source of a build made by gcc.
usage: check_clang.py BUILD [PART...]    parts of paths, such as src/ops; without them library and command"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

build, parts = sys.argv[1], sys.argv[2:] or ["/src/", "/cli/", "/gen/simd/"]
NOT_CLANGS = ("-fno-predictive-commoning", "-fno-tree-pre", "-fno-tree-slp-vectorize")


def arguments(entry):
    """gcc's arguments without its output and the options that are its own."""
    words = [w for w in shlex.split(entry["command"]) if w not in NOT_CLANGS]
    while not words[0].startswith("-"):     # the compiler, and what may stand before it
        words.pop(0)
    at = words.index("-o")
    return [w for w in words[:at] + words[at + 2:] if w != "-c"]


def look(entry):
    command = ["clang", "-fsyntax-only", "-Werror", "-Wno-pass-failed", *arguments(entry)]
    run = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
    return run.returncode, run.stderr


with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
    entries = [e for e in json.load(f) if any(p in e["file"] for p in parts)]
seen = {e["file"]: e for e in entries}      # one target's way to compile a file is enough
failed = 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for code, said in pool.map(look, seen.values()):
        if code:
            failed += 1
            print(said)
print(f"clang: {len(seen)} files, {failed} with warnings")
sys.exit(failed > 0 or not seen)
