"""Single problems that memory limits, and attention: the text that `facula bench` takes, PyTorch's call, what both have to do.
One list for bench/memory_bound.py and bench/cpu_kernels.py; bench/gpu_memory_bound.py makes its own of the same pieces."""
import collections

# rival() makes the call to time; backward() the same of a forward and a backward pass, where there is one.  flops, bytes: of the
# definition, operands read and written once; moved_back: bytes of both passes; computed: no operand is a parameter that may be
# packed.
Row = collections.namedtuple("Row", "group label text rival flops bytes computed backward moved_back",
                             defaults=(0, 0, False, None, 0))


def shape(*s, t="f32"):
    return f"{t}[{','.join(map(str, s))}]"


class Calls:
    """Makes PyTorch's calls on operands of a device.  Results go into tensors that are there already where a call has out=, as
    ours do: fresh ones cost the page faults of new memory."""

    def __init__(self, torch, device="cpu"):
        self.torch, self.f, self.device = torch, torch.nn.functional, device

    def rand(self, *s, t="f32", grad=False):
        x = self.torch.rand(*s, device=self.device).mul_(2).sub_(1)
        return x.to({"f32": self.torch.float32, "bf16": self.torch.bfloat16}[t]).requires_grad_(grad)

    def forward(self, call):
        def run():
            with self.torch.no_grad():
                call()
        return run

    def backward(self, call, *leaves):
        dy = self.torch.ones_like(call())
        return lambda: self.torch.autograd.grad(call(), leaves, dy)

    def on(self, call, *shapes, t="f32"):
        """rival: call(x, ...) on fresh operands."""
        def make():
            xs = [self.rand(*s, t=t) for s in shapes]
            return self.forward(lambda: call(*xs))
        return make

    def back(self, call, *shapes):
        def make():
            xs = [self.rand(*s, grad=True) for s in shapes]
            return self.backward(lambda: call(*xs), *xs)
        return make

    def into(self, call, *shapes, result=None, t="f32", to=None):
        """rival: call(x, ..., y) writes a result as large as the first operand, or of the shape given."""
        def make():
            xs, y = [self.rand(*s, t=t) for s in shapes], self.rand(*(result or shapes[0]), t=to or t)
            return self.forward(lambda: call(*xs, y))
        return make


def attention(c):
    kinds = [(s, 64, {}) for s in (128, 512, 1024, 2048)] + [(s, 64, dict(causal=True)) for s in (128, 512, 2048)]
    kinds += [(512, 64, dict(mask=True)), (512, 64, dict(groups=4)), (512, 32, {}), (512, 128, {})]
    for s, d, more in kinds:
        g, causal = more.get("groups") or 12, "causal" in more
        q, kv, m = (1, 12, s, d), (1, g, s, d), ((s, s),) if "mask" in more else ()
        text = f"attention({', '.join(shape(*x) for x in (q, kv, kv) + m)})" + (" causal" if causal else "")

        def call(q, k, v, mask=None, causal=causal, gqa=g != 12):
            return c.f.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=gqa)
        yield Row("attention", f"attention 12 x {s} x {d} {' '.join(more)}".strip(), text, c.on(call, q, kv, kv, *m),
                  4 * 12 * s * s * d // (2 if causal else 1), backward=None if more else c.back(call, q, kv, kv))


def rows(c):
    """Lines of neighbours: norms, softmax, activations; with their gradients."""
    f = c.f
    for r, w in ((16, 1024), (512, 768), (4096, 768), (16384, 1024)):
        x, a, count = shape(r, w), shape(w), r * w
        norm, rms = lambda x, a, b, w=w: f.layer_norm(x, (w,), a, b), lambda x, a, w=w: f.rms_norm(x, (w,), a)
        for group, name, text, call, operands in (
                ("norm", "layer norm", f"layer_norm({x}, {a}, {a}) axis=-1", norm, ((r, w), (w,), (w,))),
                ("norm", "rms norm", f"rms_norm({x}, {a}) axis=-1", rms, ((r, w), (w,))),
                ("softmax", "softmax", f"softmax({x}) axis=-1", lambda x: f.softmax(x, -1), ((r, w),)),
                ("softmax", "log-softmax", f"log_softmax({x}) axis=-1", lambda x: f.log_softmax(x, -1), ((r, w),)),
                ("pointwise", "gelu", f"gelu({x})", f.gelu, ((r, w),)),
                ("pointwise", "gelu tanh", f"gelu_tanh({x})", lambda x: f.gelu(x, approximate="tanh"), ((r, w),)),
                ("pointwise", "silu", f"silu({x})", f.silu, ((r, w),))):
            yield Row(group, f"{name} {r}x{w}", text, c.on(call, *operands), 0, 8 * count, False, c.back(call, *operands),
                      20 * count)


def planes(c):
    x, count = (8, 256, 56, 56), 8 * 256 * 3136
    text, p = shape(*x), shape(256)
    yield Row("norm", "group norm 8x256x56x56", f"group_norm({text}, {p}, {p}) groups=32",
              c.on(lambda x, a, b: c.f.group_norm(x, 32, a, b), x, (256,), (256,)), 0, 8 * count)
    yield Row("norm", "instance norm 8x256x56x56", f"instance_norm({text}, {p}, {p})",
              c.on(lambda x, a, b: c.f.instance_norm(x, weight=a, bias=b), x, (256,), (256,)), 0, 8 * count)


def large(c):
    """Single passes over 64 MB."""
    t, s = c.torch, (4096, 4096)
    big, count = shape(*s), 4096 * 4096
    yield Row("pointwise", "add 64 MB", f"add({big}, {big})", c.into(lambda a, b, y: t.add(a, b, out=y), s, s), 0, 12 * count,
              True)
    yield Row("pointwise", "relu 64 MB", f"relu({big})", c.into(lambda a, y: t.clamp_min(a, 0, out=y), s), 0, 8 * count)
    for axes in ((0,), (1,), (0, 1)):
        name = ",".join(map(str, axes))
        call = lambda x, axes=axes: x.sum(axes)
        yield Row("reduce", f"sum over {name}, 64 MB", f"sum({big}, i64{{{name}}})", c.on(call, s), 0, 4 * count)
    for k in (0, 1):
        call = lambda x, k=k: x.amax(k)
        yield Row("reduce", f"max over {k}, 64 MB", f"reduce_max({big}, i64{{{k}}})", c.on(call, s), 0, 4 * count)
    yield Row("reduce", "arg max over 1, 64 MB", f"arg_max({big}) axis=1", c.on(lambda x: x.argmax(1), s), 0, 4 * count)
    yield Row("reduce", "sum over a last axis of 16, 64 MB", f"sum({shape(count // 16, 16)}, i64{{1}})",
              c.on(lambda x: x.sum(1), (count // 16, 16)), 0, 4 * count + count // 4)
    yield Row("move", "transpose 4096x4096", f"transpose({big}) perm=1,0", c.into(lambda x, y: y.copy_(x.t()), s), 0, 8 * count)
    cube = (64, 512, 512)
    for perm in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
        result = [cube[k] for k in perm]
        yield Row("move", f"transpose 64x512x512 to {perm}", f"transpose({shape(*cube)}) perm={','.join(map(str, perm))}",
                  c.into(lambda x, y, perm=perm: y.copy_(x.permute(perm)), cube, result=result), 0, 8 * count)
    half = (4096, 2048)
    yield Row("move", "concat 2 x 32 MB", f"concat({shape(*half)}, {shape(*half)}) axis=1",
              c.into(lambda a, b, y: t.cat((a, b), 1, out=y), half, half, result=s), 0, 8 * count, True)


def cpu(torch):
    c = Calls(torch)
    return [*attention(c), *rows(c), *planes(c), *large(c)]
