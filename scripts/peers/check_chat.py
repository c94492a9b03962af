#!/usr/bin/env python3
"""Chat formats against Jinja: python scripts/peers/check_chat.py build/libfacula.so TEMPLATE.jinja... [--bos TOKEN] [--eos TOKEN]

    pip install jinja2

Each file is a chat template as models have them.  It is rendered as transformers renders it, for conversations with and
without a system text, with one turn and with three, with tools, calls of them and what they gave, and compared with the
tokens that facula makes of them.  Where Jinja refuses a conversation or leaves the system's text out, that text comes with
the question.
"""
import argparse
import ctypes
import datetime
import json
import os
import pathlib
import re
import sys
import tempfile

import jinja2
import jinja2.ext
import jinja2.sandbox

ASK, ANSWER, AGAIN = ("user", "Name three rivers."), ("assistant", "Rhine, Elbe, Oder."), ("user", "And a fourth?")
SYSTEM = ("system", "You are brief.")
TALKS = {"a question": [ASK], "with a system text": [SYSTEM, ASK], "three turns": [ASK, ANSWER, AGAIN],
         "three turns with a system text": [SYSTEM, ASK, ANSWER, AGAIN],
         "thoughts and spaces": [("user", " Name\n\tthree 'rivers' \"quoted\" <b>é</b>  "),
                                 ("assistant", "<think>\nlong\n</think>\n\nRhine. "), AGAIN],
         "an answer last": [ASK, ANSWER]}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The weather of a \"city\": <b>ä</b>", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "Which"}, "days": {"type": "integer", "minimum": 1},
                                     "scale": {"type": "number", "default": 0.5, "enum": [0.5, 1e-7, 20]}}, "required": ["city"]}}},
         {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}}}]


def call(name, of, **arguments):
    return {"id": of, "type": "function", "function": {"name": name, "arguments": arguments}}


CALLS = [ASK, ("assistant", None, {"tool_calls": [call("weather", "abcdefgh1", city="Köln \"süd\"", days=2)]}),
         ("tool", "{\"rain\": true}", {"tool_call_id": "abcdefgh1", "name": "weather"})]
# talk, tools, variables
WITH_TOOLS = {"tools": ([SYSTEM, ASK], TOOLS, {}), "tools alone": ([ASK], TOOLS, {}), "a call": (CALLS, TOOLS, {}),
              "a call with a text": ([SYSTEM, ASK, ("assistant", "Let me see.", CALLS[1][2]), CALLS[2], ANSWER, AGAIN], TOOLS, {}),
              "no thoughts": ([ASK], None, {"enable_thinking": False}), "thoughts": ([ASK, ANSWER, AGAIN], None, {"enable_thinking": True})}
SPECIAL = re.compile(r"<\|[^|<>' ]+\|>|<｜[^｜]+｜>|\[/?(?:INST|SYSTEM_PROMPT)\]|</?(?:start|end)_of_turn>|</?s>|<bos>|<BOS_TOKEN>")


class Message(ctypes.Structure):
    _fields_ = [("role", ctypes.c_char_p), ("text", ctypes.c_char_p)]


class Options(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("tools", ctypes.c_char_p), ("variables", ctypes.c_char_p),
                ("more", ctypes.POINTER(ctypes.c_char_p)), ("answer", ctypes.c_bool)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 508)]


def byte_letters():
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, more = {}, 0
    for b in range(256):
        letters[b] = chr(b) if b in kept else chr(256 + more)
        more += b not in kept
    return letters


class Facula:
    """A tokenizer of single bytes, with the template's control tokens."""

    def __init__(self, library, template, bos, eos):
        self.lib = ctypes.CDLL(library)
        self.lib.fac_tokenizer_decode.restype = ctypes.c_size_t
        self.error, self.t = Error(), ctypes.c_void_p()
        special = sorted(set(SPECIAL.findall(template)) | {bos, eos} - {""})
        letters = byte_letters()
        with tempfile.TemporaryDirectory() as folder:
            added = [{"id": 256 + k, "content": s, "special": True} for k, s in enumerate(special)]
            model = {"type": "BPE", "vocab": {letters[b]: b for b in range(256)}, "merges": []}
            files = {"tokenizer.json": {"added_tokens": added, "model": model, "decoder": {"type": "ByteLevel"},
                                        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}},
                     "tokenizer_config.json": {"chat_template": template, "bos_token": bos, "eos_token": eos}}
            for name, value in files.items():
                pathlib.Path(folder, name).write_text(json.dumps(value), encoding="utf-8")
            if self.lib.fac_tokenizer_load(folder.encode(), ctypes.byref(self.t), ctypes.byref(self.error)):
                sys.exit(self.error.text.decode())

    def render(self, talk, tools=None, variables=None):
        """Its text, or None where it is refused."""
        def as_json(x):
            return json.dumps(x).encode() if x else None

        ids, count = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_int64()
        messages = (Message * len(talk))(*((m[0].encode(), None if m[1] is None else m[1].encode()) for m in talk))
        more = (ctypes.c_char_p * len(talk))(*(as_json(m[2]) if len(m) > 2 else None for m in talk))
        how = Options(None, as_json(tools), as_json(variables), more, True)
        if self.lib.fac_chat_encode_with(self.t, ctypes.byref(how), len(talk), messages, ctypes.byref(ids), ctypes.byref(count),
                                         ctypes.byref(self.error)):
            return None
        text = ctypes.create_string_buffer(1 << 16)
        n = self.lib.fac_tokenizer_decode(self.t, ids, count, 1, text, ctypes.c_size_t(len(text)))
        self.lib.fac_chat_free(ids)
        return text.raw[:n].decode()


def rendered(template, talk, bos, eos, tools=None, variables=None):
    """As transformers does it; None where the template refuses the conversation."""
    def refuse(why):
        raise jinja2.TemplateError(why)

    def tojson(x, ensure_ascii=False, indent=None):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent)

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            next(parser.stream)
            return jinja2.nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True))

    extensions = [jinja2.ext.loopcontrols, Generation]
    e = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=extensions)
    e.filters["tojson"] = tojson
    e.globals.update(raise_exception=refuse, strftime_now=lambda f: datetime.datetime.now().strftime(f))
    try:
        messages = [{"role": m[0], "content": m[1], **(m[2] if len(m) > 2 else {})} for m in talk]
        return e.from_string(template).render(messages=messages, bos_token=bos, eos_token=eos, tools=tools, documents=None,
                                              add_generation_prompt=True, **(variables or {}))
    except (jinja2.TemplateError, TypeError, ValueError):
        return None


def expected(template, talk, bos, eos, tools=None, variables=None):
    """The system's text comes with the question where the template has no place for it."""
    text = rendered(template, talk, bos, eos, tools, variables)
    if talk[0][0] != "system" or (text is not None and SYSTEM[1] in text):
        return text
    return rendered(template, [("user", talk[0][1] + "\n\n" + talk[1][1]), *talk[2:]], bos, eos, tools, variables)


def main():
    p = argparse.ArgumentParser(description=__doc__.split(":")[0])
    p.add_argument("library", type=os.path.abspath)
    p.add_argument("templates", nargs="+", metavar="TEMPLATE")
    p.add_argument("--bos", default="<s>")
    p.add_argument("--eos", default="</s>")
    a = p.parse_args()
    differ = 0
    for path in a.templates:
        template = pathlib.Path(path).read_text(encoding="utf-8")
        facula = Facula(a.library, template, a.bos, a.eos)
        known = {name: (talk, None, {}) for name, talk in TALKS.items()}
        for name, (talk, tools, variables) in {**known, **WITH_TOOLS}.items():
            if tools and "tools" not in template:
                continue  # facula says so
            want, have = expected(template, talk, a.bos, a.eos, tools, variables), facula.render(talk, tools, variables)
            if have is None and want is not None:
                differ += 1
                print(f"refused {path}, {name}: {facula.error.text.decode()}")
                continue
            if want != have:
                differ += 1
                print(f"differs {path}, {name}:\n    jinja  {want!r}\n    facula {have!r}")
            else:
                print(f"{'ok     ' if want is not None else 'neither'} {path}, {name}")
    sys.exit(differ > 0)


main()
