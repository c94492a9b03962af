#!/usr/bin/env python3
"""Counts what the style of the house forbids, and fails where there is more of it than scripts/style_limits.txt allows:

    long     lines over 100 columns of C sources and kernels, over 120 of CHANGELOG.md
    joined   statements that assign twice, with a comma between
    nested   a second `?:` in a line
    words    comments, messages and documents: "behind" for "after", "dear" for "expensive", and "nobody" or
             "somebody" for code, which is no person: "nothing reads it"
    files    C sources of more than 400 lines
    rates    seconds and rates of a machine as numbers in a solver or the planner, instead of fields of a speed.c
    paths    comments and documents that name a file of this repository which is not there
    merges   lines that a merge left where two sides disagreed
    folders  more than 40 files in one folder, but for src/ops, where each file is a noun
    restrict `restrict` in a function that a kernel calls: inlined, it leaves a mark that the simulator of OpenCL cannot run;
             the kernel's own parameters carry it.  Files for NVIDIA alone are never simulated

    python3 scripts/check_style.py [--list KIND] [--update]

--list KIND shows the places of one kind; --update writes the limits of today, which only go down.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMITS = ROOT / "scripts" / "style_limits.txt"
FOLDERS = ["src", "cli", "include", "tests", "bench", "examples", "python", "docs", "scripts"]
EXCEPT = ("tests/golden/", "tests/fuzz/corpus/", "scripts/check_style.py")
DATA = ("_tables.h", "op_list.h")         # made by scripts
MOST, MOST_OF_CHANGES = 100, 120
ASSIGNS = re.compile(r"(?<![=<>!])(?:<<|>>|[-+*/%&|^])?=(?!=)")
WORDS = re.compile(r"\bbehind\b|\bdear(?:er|est)?\b|\b(?:no|some|every)body (?:else )?(?:reads|uses|needs|wants|writes|holds|has read)\b", re.I)
# things may be left behind, hide behind others, and lie behind a door
IDIOMS = re.compile(r"\b(?:left|leaves?|leaving)\b[\w\s,]*\bbehind|hides? behind|behind (?:OpenAI|a path|paths|void)|is behind", re.I)
PROSE = (".md", ".sh", ".py", ".rules", ".js", ".pyi")
CODE = (".c", ".h", ".cl")
LINES = 400
FILES = 40
# 5e-6, 1.2e12: not beside < and >, where it is a limit, and not where a field is given its value
RATE = re.compile(r"(?<![\w.])(?<![<>] )(?<![<>]= )\d[\d.]*e(?:-(?:[5-9]|1\d)|9|1\d)\b")
FIELD = re.compile(r"^\s*(?:\{ )?\.\w+ = |^#define|static const double \w+\[")
RATES_IN = "src/backends/"
SECONDS = re.compile(r"(?<![\w.])\d[\d.]*e-?\d+.*seconds|seconds.*(?<![\w.])\d[\d.]*e-?\d")
# src/base/file/read.c, nvidia/relay/relay.h: from the root or from a folder of PLACES
PATH = re.compile(r"(?<![\w/.~$<{-])((?:%s)/[\w/-]*\w\.(?:c|h|cl|py|sh|cmake|md|js))(?![\w.])" % "|".join(
    ["src", "tests", "scripts", "bench", "cli", "docs", "examples", "include", "cmake", "base", "graph", "ops", "passes", "plan",
     "run", "cpu", "opencl", "nvidia", "simd", "report", "studio"]))
NAME = re.compile(r"`(\w+\.(?:c|h|cl))`")                  # of a page: some file has it
NAMES = {p.name for folder in FOLDERS for p in (ROOT / folder).rglob("*.*")}
PLACES = ["", "src/", "src/backends/", "src/backends/cpu/", "src/backends/opencl/", "python/"]
DECLARES = re.compile(
    r"^(?:return|typedef|enum|struct|union|static|const|volatile|unsigned|local|global|private)\b|^(?:\w+|\w+\([^()]*\))(?: \w+)??(?:\s*\*+\s*|\s+)"
    r"(?:(?:const|restrict)\s+)*\**\s*[A-Za-z_]\w*\s*(?:\[[^\]]*\]\s*)*(?:=|,|;|$|:)")
BODY = re.compile(r"^\s*(?:else\b|do\b|UNROLL\b|case\b[^:?]*:|default:|(?:if|for|while|switch)\s*(?=\())")


def plain(line):
    """The line without strings, characters and comments."""
    if line.lstrip().startswith("* "):         # inside of a comment
        return ""
    line = re.sub(r'"(?:\\.|[^"\\])*"', '""', line)
    line = re.sub(r"'(?:\\.|[^'\\])+'", "' '", line)
    return re.sub(r"/\*.*?(?:\*/|$)|//.*", "", line)


def prose(text):
    """The text's strings and comments alone, line by line."""
    keep = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.S)
    out, at = [], 0
    for m in keep.finditer(text):
        out.append(re.sub(r"[^\n]", " ", text[at:m.start()]) + m.group())
        at = m.end()
    return "".join(out).split("\n")


def wrong_words(text, is_code):
    lines = prose(text) if is_code else text.split("\n")
    return [i for i, line in enumerate(lines, 1) if WORDS.search(line) and not IDIOMS.search(line)]


def lost_paths(name, text, is_code):
    lines = prose(re.sub(r"#include.*", "", text)) if is_code else text.split("\n")
    places = PLACES + [str(pathlib.PurePath(name).parent) + "/"]
    return [i for i, line in enumerate(lines, 1)
            if any(not any((ROOT / (place + path)).exists() for place in places) for path in PATH.findall(line))
            or name.endswith(".md") and not NAMES.issuperset(NAME.findall(line))]


def restricted_helpers(text):
    """The lines of kernels' source where a function that is no kernel says `restrict`; macros make kernels."""
    text = re.sub(r"/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S | re.M)
    return [text.count("\n", 0, m.start()) + 1 for m in re.finditer(r"\brestrict\b", text)
            if not re.search(r"\bkernel\b", re.split(r"[;{}]", text[:m.start()])[-1])]


def kinds(line):
    code = plain(line)
    if len(line) > MOST:
        yield "long"
    if len(re.findall(r"[^?]\?[^?]", " " + code + " ")) > 1:
        yield "nested"


def statements(lines):
    """The number of its last line and the text of each statement that a semicolon ends."""
    depth, text = 0, ""
    comment = False
    for number, line in enumerate(lines, 1):
        if comment:
            line = line.split("*/", 1)[1] if "*/" in line else "* "
            comment = line == "* "
        code = plain(line).rstrip("\\").rstrip()
        comment = comment or "/*" in line and "*/" not in line[line.rindex("/*"):]
        if code.lstrip().startswith("#"):
            text = ""
            continue
        for c in code + " ":
            depth += (c in "([") - (c in ")]")
            if depth > 0 or c not in ";{}":
                text += c
                continue
            if c == ";":
                yield number, " ".join(text.split())
            depth, text = 0, ""


def outside(text):
    """The text without what stands in brackets."""
    while "(" in text or "[" in text:
        less = re.sub(r"\([^()\[\]]*\)|\[[^()\[\]]*\]", "", text)
        if less == text:
            break
        text = less
    return text


def is_joined(text):
    """Whether one statement assigns twice; declarations do, and so may the head of a loop."""
    while True:
        m = BODY.match(text)
        if not m:
            break
        text = text[m.end():]
        depth = 0
        for i, c in enumerate(text):
            if depth == 0 and c != "(":
                break
            depth += (c == "(") - (c == ")")
            if depth == 0:
                text = text[i + 1:].lstrip()
                break
        text = text.lstrip()
    after_macros = re.sub(r"^(?:[A-Z][A-Z_0-9]{2,}(?:\((?:[^()]|\([^()]*\))*\))? )+(?=[a-z])", "", text)
    if text.startswith((".", ",")) or DECLARES.match(text) or DECLARES.match(after_macros):
        return False
    parts = outside(text).split(",")
    return len(parts) > 1 and sum(bool(ASSIGNS.search(p)) for p in parts) > 1


def is_solver(name):
    """Of a folder of solvers; what tells of devices converts units, and kernels hold coefficients."""
    folders = name.split("/")[3:-1]
    return name.startswith(RATES_IN) and bool(folders) and not {"device", "simd"} & set(folders) and not name.endswith("/speed.c")


def main():
    show = sys.argv[sys.argv.index("--list") + 1] if "--list" in sys.argv else None
    counts = dict.fromkeys(["long", "joined", "nested", "words", "files", "rates", "paths", "merges", "folders", "restrict"], 0)

    def found(kind, name, number, line):
        counts[kind] += 1
        if kind == show:
            print(f"{name}:{number}: {line.strip()}")

    names = sorted(str(p.relative_to(ROOT)) for folder in FOLDERS for p in (ROOT / folder).rglob("*.*"))
    folders = collections.Counter(str(pathlib.PurePath(name).parent) for name in names)
    for folder, count in folders.items():
        if count > FILES and folder != "src/ops" and "__pycache__" not in folder and not folder.startswith(EXCEPT):
            found("folders", folder, count, f"{count} files")
    for number, line in enumerate((ROOT / "CHANGELOG.md").read_text().split("\n"), 1):
        if len(line) > MOST_OF_CHANGES:
            found("long", "CHANGELOG.md", number, line)
    names += ["CONTRIBUTING.md", "README.md"]
    for name in names:
        if not name.endswith(CODE + PROSE) or name.startswith(EXCEPT):
            continue
        text = (ROOT / name).read_text()
        lines = text.rstrip("\n").split("\n")
        for number, line in enumerate(lines, 1):
            if line.startswith(("<<<<<<< ", ">>>>>>> ")):
                found("merges", name, number, line)
        for number in wrong_words(text, name.endswith(CODE)):
            found("words", name, number, lines[number - 1])
        for number in [] if name.startswith("python/tests/") else lost_paths(name, text, name.endswith(CODE)):
            found("paths", name, number, lines[number - 1])
        if not name.endswith(CODE):
            continue
        if len(lines) > LINES and not name.endswith(DATA):
            found("files", name, len(lines), f"{len(lines)} lines")
        for number in restricted_helpers(text) if name.endswith(".cl") and "/nvidia/" not in name else []:
            found("restrict", name, number, lines[number - 1])
        for number, statement in statements(lines):
            if is_joined(statement):
                found("joined", name, number, statement)
        for number, line in enumerate(lines, 1):
            for kind in kinds(line):
                found(kind, name, number, line)
            if name.startswith(("src/plan/", "src/ref/", "src/run/")) and SECONDS.search(line):
                found("rates", name, number, line)
            if is_solver(name) and RATE.search(plain(line)) and not FIELD.match(line):
                found("rates", name, number, line)
    if show:
        return 0
    if "--update" in sys.argv:
        LIMITS.write_text("".join(f"{kind} {count}\n" for kind, count in counts.items()))
    limits = dict(line.split() for line in LIMITS.read_text().split("\n") if line)
    bad = [kind for kind, count in counts.items() if count > int(limits[kind])]
    print("style: " + ", ".join(f"{kind} {count} of {limits[kind]}" for kind, count in counts.items()))
    for kind in bad:
        print(f"more lines of the kind '{kind}' than before: python3 scripts/check_style.py --list {kind}")
    return 1 if bad else 0


sys.exit(main())
