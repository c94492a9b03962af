/* Texts without stop words, and in small or capital letters.  How many are left is data: it runs at
 * a cut. */
#include <string.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/unicode/unicode.h"
#include "graph/onnx_write.h"
#include "ops/ml/ml.h"
#include "ops/shape.h"
#include "ops/strings/strings.h"
#include "tensor/utf.h"

#if FAC_INTERFACE
/* x, text[n] or text[1,n], without those that are among stopwords (text[m], or NULL); with
 * ignore_case letters of both cases are one.  What is left is put into the given case.  Where
 * nothing is left, one empty text is. */
typedef enum fac_letters { FAC_LETTERS_NONE, FAC_LETTERS_LOWER, FAC_LETTERS_UPPER } fac_letters;
fac_value *fac_string_normalizer(fac_value *x, fac_value *stopwords, bool ignore_case,
                                 fac_letters letters);
#endif

typedef struct attrs {
    bool ignore_case;
    int letters;
} attrs;
static const char *const choices[] = { "NONE", "LOWER", "UPPER", NULL };
static const fac_attr table[] = { { "ignore_case", FAC_A_FLAG, offsetof(attrs, ignore_case), 0, 0,
                                    0, 0, NULL, "of stop words letters of both cases are one" },
                                  { "letters", FAC_A_ENUM, offsetof(attrs, letters), 0, 0, 0, 0,
                                    choices, "the case of what is left" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_TEXTS, 0 },
                               { "stopwords", FAC_TEXTS, FAC_OPTIONAL },
                               { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    if (x->n != 1 && (x->n != 2 || (x->d[0] >= 0 && x->d[0] != 1)))
        return fac_fail(n, FAC_E_SHAPE, "x must be a list of texts, or a row of them");
    if (n->in[1] && n->in[1]->type.dims.n != 1)
        return fac_fail(n, FAC_E_SHAPE, "stopwords must be a list");
    const int64_t left = fac_symbol(n->graph, NULL);
    n->out[0]->type = (fac_type){ FAC_TEXT, x->n == 1 ? fac_shape(left) : fac_shape(1, left) };
    return true;
}

static uint32_t in_case(uint32_t c, int letters) {
    return letters == FAC_LETTERS_LOWER   ? fac_unicode_lower(c)
           : letters == FAC_LETTERS_UPPER ? fac_unicode_upper(c)
                                          : c;
}

/* NULL without memory. */
static char *changed(fac_arena *arena, const char *s, int letters) {
    const unsigned char *from = (const unsigned char *)s;
    char *text = fac_arena_alloc(arena, 4 * strlen(s) + 1, 1), *to = text;
    while (text && *from) to = fac_utf8_put(to, in_case(fac_utf8_next(&from), letters));
    return text;
}

typedef struct stops {
    char *const *words;
    char **lower;
    int64_t n;
} stops;

static bool is_stop(const stops *s, const char *text, const char *lower) {
    for (int64_t k = 0; k < s->n; k++)
        if (s->lower ? !strcmp(s->lower[k], lower) : !strcmp(s->words[k], text)) return true;
    return false;
}

static bool read_stops(stops *s, fac_arena *arena, const fac_tensor *t, bool ignore_case) {
    *s = (stops){ fac_strings_of(t), NULL, fac_strings_count(t) };
    if (!ignore_case || !s->n) return true;
    if (!(s->lower = fac_arena_alloc(arena, (size_t)s->n, sizeof *s->lower))) return false;
    for (int64_t k = 0; k < s->n; k++)
        if (!(s->lower[k] = changed(arena, s->words[k], FAC_LETTERS_LOWER))) return false;
    return true;
}

/* to[]: what is left; -1 without memory. */
static int64_t keep(const attrs *a, const fac_tensor *x, const fac_tensor *words, fac_arena *arena,
                    char **to) {
    stops s;
    int64_t n = 0;
    if (!read_stops(&s, arena, words, a->ignore_case)) return -1;
    for (int64_t k = 0; k < fac_strings_count(x); k++) {
        char *text = fac_strings_of(x)[k];
        char *lower = s.lower ? changed(arena, text, FAC_LETTERS_LOWER) : text;
        if (!lower) return -1;
        if (is_stop(&s, text, lower)) continue;
        if (!(to[n++] = changed(arena, text, a->letters))) return -1;
    }
    static char empty[1];
    if (!n) to[n++] = empty;
    return n;
}

static fac_status host(const fac_node *node, fac_tensor *const x[], fac_tensor *y[],
                       fac_error *err) {
    fac_arena arena = { 0 };
    char **to = fac_alloc((size_t)fac_strings_count(x[0]) + 1, sizeof *to);
    const int64_t n = to ? keep(node->attrs, x[0], x[1], &arena, to) : -1;
    const fac_dims d = fac_tensor_type(x[0]).dims.n == 1 ? fac_shape(n) : fac_shape(1, n);
    fac_status status = n < 0 ? fac_raise_memory(err, "texts") : fac_strings_tensor(d, to, y, err);
    fac_release(to);
    fac_arena_free(&arena);
    return status;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const fac_ml_texts words = fac_ml_texts_of(n, g, "stopwords");
    const char *letters = fac_onnx_text(n, "case_change_action", "NONE");
    const bool ignore = !fac_onnx_int(n, "is_case_sensitive", 0);
    int k = 0;
    while (choices[k] && strcmp(choices[k], letters)) k++;
    if (!choices[k])
        fac_fail_graph(g, FAC_E_FORMAT, "case_change_action is \"%s\"", letters);
    else
        y[0] = fac_string_normalizer(
            x[0], words.n > 0 ? fac_ml_const(g, FAC_TEXT, words.n, words.v) : NULL, ignore,
            (fac_letters)k);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const char *x = fac_onnx_name(w, n->in[0]);
    fac_onnx_put(w, "StringNormalizer", 1, &x, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "is_case_sensitive", !a->ignore_case);
    fac_onnx_put_text(w, "case_change_action", choices[a->letters]);
    return !n->in[1] || fac_strings_put(w, "stopwords", n->in[1]);
}

static const fac_onnx_attr names[] = { { "locale", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "StringNormalizer", 10, 0, names, load, 0 }, { 0 } };
static const fac_case cases[] = {
    { "string_normalizer(text{\"Ab\",\"the\",\"c\"}, text{\"The\"}) ignore_case letters=UPPER", 0,
      0, 0 },
    { "string_normalizer(text{\"a\"}, text{\"a\"})", 0, 0, 0 },
    { "string_normalizer(text[0], -) letters=LOWER", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_string_normalizer;
const fac_op fac_op_string_normalizer = {
    .name = "string_normalizer",
    .doc = "texts without stop words, in letters of one case",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD | FAC_OP_DYNAMIC,
    .infer = infer,
    .host = host,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_string_normalizer(fac_value *x, fac_value *stopwords, bool ignore_case,
                                 fac_letters letters) {
    return fac_emit(&fac_op_string_normalizer, &(attrs){ ignore_case, (int)letters }, 2,
                    (fac_value *[]){ x, stopwords });
}
