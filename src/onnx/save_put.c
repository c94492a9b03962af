/* Records of ONNX nodes and their attributes: what the save() of an op calls. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/onnx_write.h"
#include "onnx/export.h"
#include "onnx/source.h"
#include "op_list.h"

/* ---- nodes ---- */

/* The version of a domain's operators that is written: that of the op's own spelling. */
static int64_t version_of(const fac_op *op, const char *domain) {
    enum { ML = 4 };
    for (const fac_onnx *how = op ? op->onnx : NULL; how && how->type; how++)
        if (!strcmp(how->domain, domain)) return how->since;
    return strcmp(domain, "ai.onnx.ml") ? 1 : ML;
}

static void use_domain(fac_export *ex, const char *domain) {
    const int64_t version = version_of(ex->node->op, domain);
    for (int k = 0; k < ex->ndomains; k++) {
        if (strcmp(ex->domains[k].name, domain)) continue;
        if (version > ex->domains[k].version) ex->domains[k].version = version;
        return;
    }
    ex->impossible |= ex->ndomains == (int)(sizeof ex->domains / sizeof *ex->domains);
    if (!ex->impossible) ex->domains[ex->ndomains++] = (fac_record_domain){ domain, version };
}

/* "ai.onnx.ml:Scaler": what stands before the colon; NULL: nothing does. */
static const char *domain_in(fac_export *ex, const char **type) {
    const char *colon = strrchr(*type, ':');
    if (!colon) return NULL;
    char *domain = fac_export_get(ex, (size_t)(colon - *type) + 1, 1);
    if (domain) memcpy(domain, *type, (size_t)(colon - *type));
    *type = colon + 1;
    if (domain) use_domain(ex, domain);
    return domain;
}

const char *fac_onnx_put(const fac_onnx_writer *w, const char *type, int n, const char *const in[],
                         const char *out) {
    fac_export *ex = fac_export_of(w);
    if (ex->dry && !fac_export_takes(type, ex->opset, ex->node)) ex->lacking = type;
    if (ex->dry) return "";
    while (n && !in[n - 1]) n--;
    const char *domain = domain_in(ex, &type);
    fac_record_node *r = fac_export_get(ex, 1, sizeof *r);
    const char **names = fac_export_get(ex, (size_t)n, sizeof *names),
               *label = fac_export_label(ex, ex->node);
    if (out != fac_onnx_name(w, ex->node->out[0]))
        label = fac_arena_print(&ex->arena, "%s.%s", label, type);
    if (!out) out = fac_export_fresh(ex, &ex->values, label ? label : "");
    if (!r || !names || !label) {
        ex->failed = true;
        return "";
    }
    for (int k = 0; k < n; k++) names[k] = in[k] ? in[k] : "";
    *r = (fac_record_node){ .type = type,
                            .domain = domain,
                            .name = fac_export_fresh(ex, &ex->labels, label),
                            .in = names,
                            .nin = n,
                            .out = { .name = out } };
    r->last_out = &r->out;
    r->last_attr = &r->attrs;
    *ex->last_node = ex->at = r;
    ex->last_node = &r->next;
    ex->nnodes++;
    return out;
}

void fac_onnx_put_out(const fac_onnx_writer *w, const char *out) {
    fac_export *ex = fac_export_of(w);
    fac_record_out *o = ex->dry || !ex->at ? NULL : fac_export_get(ex, 1, sizeof *o);
    if (!o) return;
    o->name = out ? out : "";
    ex->at->last_out->next = o;
    ex->at->last_out = o;
}

/* ---- attributes ---- */

static void put_attr(const fac_onnx_writer *w, fac_record_attr a) {
    fac_export *ex = fac_export_of(w);
    fac_record_attr *r = ex->dry || !ex->at ? NULL : fac_export_get(ex, 1, sizeof *r);
    if (!r) return;
    *r = a;
    *ex->at->last_attr = r;
    ex->at->last_attr = &r->next;
}

void fac_onnx_put_int(const fac_onnx_writer *w, const char *attr, int64_t x) {
    put_attr(w, (fac_record_attr){ .name = attr, .kind = FAC_PROTO_INT, .i = x });
}

void fac_onnx_put_real(const fac_onnx_writer *w, const char *attr, double x) {
    put_attr(w, (fac_record_attr){ .name = attr, .kind = FAC_PROTO_FLOAT, .f = x });
}

void fac_onnx_put_text(const fac_onnx_writer *w, const char *attr, const char *text) {
    put_attr(w, (fac_record_attr){ .name = attr, .kind = FAC_PROTO_STRING, .text = text });
}

void fac_onnx_put_dtype(const fac_onnx_writer *w, const char *attr, fac_dtype dtype) {
    fac_export_of(w)->impossible |= !fac_proto_dtype_number(dtype);
    fac_onnx_put_int(w, attr, fac_proto_dtype_number(dtype));
}

static void *copied(const fac_onnx_writer *w, int n, size_t size, const void *from) {
    fac_export *ex = fac_export_of(w);
    void *to = ex->dry ? NULL : fac_export_get(ex, (size_t)n, size);
    if (to && n) memcpy(to, from, (size_t)n * size);
    return to;
}

void fac_onnx_put_ints(const fac_onnx_writer *w, const char *attr, int n, const int64_t *numbers) {
    int64_t *copy = copied(w, n, sizeof *copy, numbers);
    if (copy)
        put_attr(w,
                 (fac_record_attr){ .name = attr, .kind = FAC_PROTO_INTS, .ints = copy, .n = n });
}

void fac_onnx_put_reals(const fac_onnx_writer *w, const char *attr, int n, const double *numbers) {
    double *copy = copied(w, n, sizeof *copy, numbers);
    if (copy)
        put_attr(
            w, (fac_record_attr){ .name = attr, .kind = FAC_PROTO_FLOATS, .reals = copy, .n = n });
}

void fac_onnx_put_texts(const fac_onnx_writer *w, const char *attr, int n,
                        const char *const *texts) {
    const char **copy = copied(w, n, sizeof *copy, texts);
    if (copy)
        put_attr(
            w, (fac_record_attr){ .name = attr, .kind = FAC_PROTO_STRINGS, .texts = copy, .n = n });
}

void fac_onnx_put_tensor(const fac_onnx_writer *w, const char *attr, fac_tensor *t) {
    fac_export *ex = fac_export_of(w);
    ex->failed |= !t;
    if (!t) return;
    if (ex->dry || !fac_reserve(&ex->owned, &ex->room_owned, ex->nowned + 1, sizeof *ex->owned)) {
        ex->failed |= !ex->dry;
        fac_tensor_free(t);
        return;
    }
    ex->owned[ex->nowned++] = t;
    put_attr(w, (fac_record_attr){ .name = attr, .kind = FAC_PROTO_TENSOR, .tensor = t });
}
