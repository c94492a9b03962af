"""Memory while a text is written: python3 lm_memory.py FACULA.  Weights stay in the mapped file, in their blocks, so a process has
at most half as much again as the file and the caches."""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

LAYERS, WIDTH, HIDDEN, HEADS, CONTEXT = 12, 512, 1376, 8, 2048
Q8_0, F32 = 8, 0


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def key(name, kind, value):
    if kind == "text":
        return text(name) + struct.pack("<I", 8) + text(value)
    if kind == "texts":
        return text(name) + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(text(s) for s in value)
    if kind == "ints":
        return text(name) + struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
    return text(name) + struct.pack("<If" if kind == "real" else "<II", 6 if kind == "real" else 4, value)


def tokens():
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return [chr(b if b in plain else 256 + rest.index(b)) for b in range(256)]


def tensors():
    yield "token_embd.weight", (WIDTH, 256), Q8_0
    yield "output_norm.weight", (WIDTH,), F32
    for k in range(LAYERS):
        for name, dims in (("attn_q", (WIDTH, WIDTH)), ("attn_k", (WIDTH, WIDTH)), ("attn_v", (WIDTH, WIDTH)),
                           ("attn_output", (WIDTH, WIDTH)), ("ffn_up", (WIDTH, HIDDEN)), ("ffn_gate", (WIDTH, HIDDEN)),
                           ("ffn_down", (HIDDEN, WIDTH))):
            yield f"blk.{k}.{name}.weight", dims, Q8_0
        yield f"blk.{k}.attn_norm.weight", (WIDTH,), F32
        yield f"blk.{k}.ffn_norm.weight", (WIDTH,), F32


def write(path):
    keys = [key("general.architecture", "text", "llama"), key("llama.block_count", "int", LAYERS),
            key("llama.embedding_length", "int", WIDTH), key("llama.feed_forward_length", "int", HIDDEN),
            key("llama.attention.head_count", "int", HEADS), key("llama.context_length", "int", CONTEXT),
            key("llama.attention.layer_norm_rms_epsilon", "real", 1e-5), key("tokenizer.ggml.model", "text", "gpt2"),
            key("tokenizer.ggml.pre", "text", "gpt-2"), key("tokenizer.ggml.tokens", "texts", tokens()),
            key("tokenizer.ggml.token_type", "ints", [1] * 256), key("tokenizer.ggml.merges", "texts", [])]
    block = struct.pack("<e", 0.002) + random.Random(1).randbytes(32)  # a scale and 32 numbers
    described, data, at = [], [], 0
    for name, dims, kind in tensors():
        n = dims[0] * (dims[1] if len(dims) > 1 else 1)
        part = block * (n // 32) if kind == Q8_0 else struct.pack("<f", 1) * n
        described.append(text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, at))
        data.append(part + bytes(-len(part) % 32))
        at += len(data[-1])
    head = b"GGUF" + struct.pack("<IQQ", 3, len(described), len(keys)) + b"".join(keys) + b"".join(described)
    pathlib.Path(path).write_bytes(head + bytes(-len(head) % 32) + b"".join(data))


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder, "model.gguf"))
        # by a process of its own: what this one has counts as the most memory of whom it starts
        subprocess.run([sys.executable, __file__, "--write", path], check=True)
        command = [sys.argv[1], "generate", path, "a text", "-n", "400", "--temp", "0", "--ignore-eos", "--threads", "1",
                   "--ctx-size", str(CONTEXT), "--json"]
        with open(pathlib.Path(folder, "said"), "w+", encoding="utf-8") as out:
            process = subprocess.Popen(command, stdout=out)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            said = json.loads(out.read()) if not process.returncode else sys.exit(f"exit code {process.returncode}")
        most = used.ru_maxrss << 10
        both = said["weight_bytes"] + said["cache_bytes"]
        print(f"{most / 1e6:.1f} MB with {said['weight_bytes'] / 1e6:.1f} of weights and {said['cache_bytes'] / 1e6:.1f} of caches")
        if most > 1.5 * both:
            sys.exit(f"more than half as much again: {most / both:.2f}")


if sys.argv[1] == "--write":
    write(sys.argv[2])
else:
    main()
