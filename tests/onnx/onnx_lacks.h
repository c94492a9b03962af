/* What the tests of incomplete nodes share: ONNX files rewritten field by field, and what may
 * become of any of them. */
#ifndef FACULA_TESTS_ONNX_LACKS_H
#define FACULA_TESTS_ONNX_LACKS_H
#include "onnx_check.h"
#include "facula/backend.h"
#include "facula/facula.h"

/* ---- reading and rewriting messages ---- */

typedef struct span {
    const uint8_t *p;
    size_t n;
} span;
typedef struct field {
    int number, wire;
    span whole, inside;
} field;

static inline uint64_t take_varint(span *s) {
    uint64_t x = 0;
    for (int shift = 0; s->n; shift += 7) {
        const uint8_t byte = *s->p++;
        s->n--;
        x |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return x;
}

/* Only of files that are well-formed. */
static inline bool next_field(span *s, field *f) {
    const uint8_t *from = s->p;
    if (!s->n) return false;
    const uint64_t tag = take_varint(s);
    f->number = (int)(tag >> 3);
    f->wire = (int)(tag & 7);
    static const size_t sizes[8] = { [1] = 8, [5] = 4 };
    size_t n = sizes[f->wire];
    if (f->wire == 2) n = (size_t)take_varint(s);
    if (f->wire == 0) take_varint(s);
    assert_true(n <= s->n);
    f->inside = (span){ s->p, n };
    s->p += n;
    s->n -= n;
    f->whole = (span){ from, (size_t)(s->p - from) };
    return true;
}

/* One thing that is different in node `node`: its input `at` is "", the inputs from `at` on are
 * gone, its attribute `at` is gone or says that it is of another kind. */
typedef enum lack { LACK_INPUT, LACK_INPUTS, LACK_ATTRIBUTE, OTHER_KIND, LACKS } lack;
typedef struct change {
    int node;
    lack what;
    int at, kind;
    bool done;
} change;

static inline bytes rekinded(span from, int kind) {
    bytes b = { 0 };
    field f;
    while (next_field(&from, &f))
        if (f.number != 20) w_raw(&b, f.whole.p, f.whole.n);
    w_int(&b, 20, kind);
    return b;
}

static inline bytes changed_node(span from, change *c) {
    bytes b = { 0 };
    field f;
    int inputs = 0, attributes = 0;
    while (next_field(&from, &f)) {
        const bool input = f.number == 1, attribute = f.number == 5;
        int at = -1;
        if (input) at = inputs++;
        if (attribute) at = attributes++;
        const bool hit = input ? (c->what == LACK_INPUT && at == c->at) ||
                                     (c->what == LACK_INPUTS && at >= c->at)
                               : attribute && c->what >= LACK_ATTRIBUTE && at == c->at;
        c->done |= hit;
        if (!hit)
            w_raw(&b, f.whole.p, f.whole.n);
        else if (c->what == LACK_INPUT)
            w_text(&b, 1, "");
        else if (c->what == OTHER_KIND)
            w_sub(&b, 5, rekinded(f.inside, c->kind));
    }
    return b;
}

static inline bytes changed_graph(span from, change *c) {
    bytes b = { 0 };
    field f;
    int nodes = 0;
    while (next_field(&from, &f)) {
        if (f.number == NODE && nodes++ == c->node)
            w_sub(&b, NODE, changed_node(f.inside, c));
        else
            w_raw(&b, f.whole.p, f.whole.n);
    }
    return b;
}

static inline bytes changed_model(span from, change *c) {
    bytes b = { 0 };
    field f;
    c->done = false;
    while (next_field(&from, &f)) {
        if (f.number == 7)
            w_sub(&b, 7, changed_graph(f.inside, c));
        else
            w_raw(&b, f.whole.p, f.whole.n);
    }
    return b;
}

/* ---- what may become of it ---- */

static fac_device *device;
static long graphs_made, errors_said, runs_done;

/* An error that says something, and is the file's fault, not ours. */
static inline void is_fair(const fac_error *err, const char *what) {
    if (!err->status || !err->text[0] || err->status == FAC_E_INTERNAL)
        fail_msg("%s: %s: \"%s\"", what, fac_status_name(err->status), err->text);
    errors_said++;
}

static inline bool settled(const fac_graph *g) {
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        const fac_type t = fac_value_type(fac_graph_input(g, i));
        if (t.dtype == FAC_TEXT) return false;
        for (int k = 0; k < t.dims.n; k++)
            if (t.dims.d[k] < 0 || t.dims.d[k] > 64) return false;
    }
    return true;
}

/* Zeros in, anything out. */
static inline void run_any(const fac_graph *g, const char *what) {
    enum { MOST = 64 };
    fac_tensor *in[MOST] = { NULL }, *out[MOST] = { NULL };
    fac_program *p = NULL;
    fac_error err = { 0 };
    const int n = fac_graph_inputs(g);
    if (n > MOST || fac_graph_outputs(g) > MOST || !settled(g)) return;
    fac_status s = fac_program_new(g, device, NULL, &p, &err);
    for (int i = 0; i < n && !s; i++) {
        const fac_type t = fac_value_type(fac_graph_input(g, i));
        s = fac_tensor_new(NULL, t.dtype, t.dims, &in[i], &err);
    }
    if (!s) s = fac_program_run(p, in, out, &err);
    if (s) is_fair(&err, what);
    runs_done += !s;
    for (int i = 0; i < n; i++) fac_tensor_free(in[i]);
    for (int k = 0; k < fac_graph_outputs(g) && !s; k++) fac_tensor_free(out[k]);
    fac_program_free(p);
}

/* Loads and, if that works, runs it.  Frees the model. */
static inline void take_any(bytes model, const char *what) {
    fac_graph *g = NULL;
    fac_error err = { 0 };
    if (try_bytes(model.p, model.n, NULL, &g, &err))
        is_fair(&err, what);
    else {
        graphs_made++;
        run_any(g, what);
        fac_graph_free(g);
    }
    free(model.p);
}
#endif
