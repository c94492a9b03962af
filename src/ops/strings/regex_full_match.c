#include "base/error.h"
#include "ops/strings/regex.h"
#include "ops/strings/strings.h"

#if FAC_INTERFACE
/* bool: does the whole text match the regular expression, which is in the syntax of RE2? */
fac_value *fac_regex_full_match(fac_value *x, const char *pattern);
#endif

typedef struct attrs {
    const char *pattern;
} attrs;
static const fac_attr table[] = { { "pattern", FAC_A_TEXT, offsetof(attrs, pattern), 0, 0, 0, 0,
                                    NULL, "a regular expression" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_TEXTS, 0 }, { 0 } };

static const char *pattern_of(const void *a) {
    const char *pattern = ((const attrs *)a)->pattern;
    return pattern ? pattern : "";
}

/* A pattern that is none is refused while the graph is built. */
static bool infer(fac_node *n) {
    fac_arena arena = { 0 };
    fac_regex *r;
    fac_error err = { 0 };
    const fac_status status = fac_regex_new(&arena, pattern_of(n->attrs), &r, &err);
    fac_arena_free(&arena);
    if (status) return fac_fail(n, status, "%s", err.text);
    n->out[0]->type = (fac_type){ FAC_BOOL, n->in[0]->type.dims };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    fac_arena arena = { 0 };
    fac_regex *regex = NULL;
    fac_status status = fac_regex_new(&arena, pattern_of(r->attrs), &regex, err);
    fac_regex_run *run = status ? NULL : fac_regex_begin(&arena, regex);
    if (!status && !run) status = fac_raise_memory(err, "a pattern");
    for (int64_t k = 0; !status && k < fac_dims_count(&r->in[0].type.dims); k++)
        r->out[0].i[k] = fac_regex_full(run, r->in[0].t[k]);
    fac_arena_free(&arena);
    return status;
}

static const fac_onnx onnx[] = { { "", "RegexFullMatch", 20, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = {
    { "regex_full_match(text{\"a1\",\"ab\",\"\"}) pattern=\"[a-z]\\\\d\"", 0, 0, 0 },
    { "regex_full_match(text[0]) pattern=\"x\"", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_regex_full_match;
const fac_op fac_op_regex_full_match = {
    .name = "regex_full_match",
    .doc = "whether whole texts match a regular expression",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD | FAC_OP_TEXTS | FAC_OP_PICKS,
    .infer = infer,
    .ref = ref,
    .onnx = onnx,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_regex_full_match(fac_value *x, const char *pattern) {
    return fac_emit(&fac_op_regex_full_match, &(attrs){ pattern }, 1, &x);
}
