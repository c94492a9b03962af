#include <string.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "ops/strings/strings.h"

#if FAC_INTERFACE
fac_value *fac_string_concat(fac_value *a, fac_value *b); /* texts, b after a; NumPy broadcasting */
#endif

static const fac_port in[] = { { "a", FAC_TEXTS, 0 }, { "b", FAC_TEXTS, 0 }, { 0 } };

/* Where element e of the result reads an operand. */
static int64_t place(const fac_dims *d, const fac_dims *out, int64_t e) {
    int64_t at = 0, step = 1;
    for (int k = out->n - 1; k >= 0; k--) {
        const int j = k - (out->n - d->n);
        const int64_t index = e % out->d[k];
        e /= out->d[k];
        if (j < 0) continue;
        if (d->d[j] != 1) at += index * step;
        step *= d->d[j];
    }
    return at;
}

static char *join(fac_arena *arena, const char *a, const char *b) {
    return fac_arena_print(arena, "%s%s", a, b);
}

static bool dims_of(const fac_dims *a, const fac_dims *b, fac_dims *out) {
    const fac_dims *more = a->n > b->n ? a : b;
    const fac_dims *less = a->n > b->n ? b : a;
    *out = *more;
    for (int k = 0; k < less->n; k++) {
        int64_t *to = &out->d[k + more->n - less->n];
        if (*to != less->d[k] && *to != 1 && less->d[k] != 1) return false;
        if (*to == 1) *to = less->d[k];
    }
    return true;
}

static fac_status host(const fac_node *n, fac_tensor *const x[], fac_tensor *out[],
                       fac_error *err) {
    const fac_type a = fac_tensor_type(x[0]), b = fac_tensor_type(x[1]);
    fac_arena arena = { 0 };
    fac_dims d;
    (void)n;
    if (!dims_of(&a.dims, &b.dims, &d))
        return fac_raise(err, FAC_E_SHAPE, "texts whose dims do not broadcast");
    const int64_t count = fac_dims_count(&d);
    char **texts = fac_alloc((size_t)count + 1, sizeof *texts);
    bool room = texts != NULL;
    for (int64_t e = 0; e < count && room; e++) {
        texts[e] = join(&arena, fac_strings_of(x[0])[place(&a.dims, &d, e)],
                        fac_strings_of(x[1])[place(&b.dims, &d, e)]);
        room = texts[e] != NULL;
    }
    fac_status status = room ? fac_strings_tensor(d, texts, out, err)
                             : fac_raise_memory(err, "%lld texts", (long long)count);
    fac_release(texts);
    fac_arena_free(&arena);
    return status;
}

static const fac_onnx onnx[] = { { "", "StringConcat", 20, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "string_concat(text{\"a\",\"\",\"c\"}, text(\"x\"))", 0, 0, 0 },
                                  { "string_concat(text[0], text[1])", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_string_concat;
const fac_op fac_op_string_concat = {
    .name = "string_concat",
    .doc = "texts, one after the other",
    .in = in,
    .out = fac_ports_y,
    .is = FAC_OP_NO_GRAD,
    .infer = fac_infer_broadcast,
    .host = host,
    .onnx = onnx,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_string_concat(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_string_concat, NULL, 2, (fac_value *[]){ a, b });
}
