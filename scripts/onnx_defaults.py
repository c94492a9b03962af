#!/usr/bin/env python3
"""Writes src/onnx/defaults.c: the attributes of ONNX's own operators with their defaults, from the schemas of the package onnx.

    python3 scripts/onnx_defaults.py > src/onnx/defaults.c
"""
import onnx
from onnx import defs

# What the schemas say in prose only: the value along each axis of the plane.
EACH = {("dilations", "1"), ("strides", "1"), ("pads", "0")}
PLANES = ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool", "LpPool", "MaxUnpool", "DeformConv")


def text(attr):
    value = onnx.helper.get_attribute_value(attr)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        return "%.9g" % value
    if isinstance(value, (list, tuple)):
        return ",".join(str(x.decode() if isinstance(x, bytes) else x) for x in value)
    return str(value)


def rows():
    for s in defs.get_all_schemas_with_history():
        if s.domain in ("", "ai.onnx.ml"):
            found = {}
            for name, a in s.attributes.items():
                if a.default_value.type:
                    found[name] = text(a.default_value)
                elif s.name in PLANES and any(name == n for n, _ in EACH):
                    found[name] = "*" + dict(EACH)[name]
            yield s.domain, s.name, s.since_version, found


def merged():
    """One row for each value of an attribute and the opsets in which it is the default."""
    history = {}
    for domain, op, since, found in rows():
        history.setdefault((domain, op), {})[since] = found
    for (domain, op), versions in sorted(history.items()):
        open_rows = {}
        for since in sorted(versions):
            for name in [n for n in open_rows if versions[since].get(n) != open_rows[n][1]]:
                first, value = open_rows.pop(name)
                yield domain, op, name, value, first, since - 1
            for name, value in versions[since].items():
                open_rows.setdefault(name, (since, value))
        for name, (first, value) in sorted(open_rows.items()):
            yield domain, op, name, value, first, 0


def known():
    return sorted({(s.domain, s.name) for s in defs.get_all_schemas_with_history() if s.domain in ("", "ai.onnx.ml")})


def quote(s):
    return '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'


print("/* The defaults of the attributes of ONNX's operators, %s; made by scripts/onnx_defaults.py." % onnx.__version__)
print(" * A * stands before what holds along each axis of the plane. */")
print('#include "onnx/defaults.h"\n')
print("const fac_onnx_default fac_onnx_defaults[] = {")
for domain, op, name, value, first, last in sorted(merged()):
    print("    { %s, %s, %s, %s, %d, %d }," % (quote(domain), quote(op), quote(name), quote(value), first, last))
print("    { 0 } };\n")
print("const fac_onnx_op_name fac_onnx_op_names[] = {")
line = "   "
for domain, op in known():
    item = " { %s, %s }," % (quote(domain), quote(op))
    if len(line + item) > 100:
        print(line)
        line = "   "
    line += item
print(line)
print("    { 0 } };")
