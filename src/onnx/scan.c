/* Is everything in the file ours?  Asked before anything is built, so that one message can name all
 * that is missing. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "onnx/import.h"

/* ---- tables ---- */

/* The key of an op: its type, with the domain in front unless that is the default one. */
static const char *key_of(fac_arena *arena, const char *domain, const char *type) {
    domain = domain ? fac_import_domain(domain) : "";
    return *domain ? fac_arena_print(arena, "%s:%s", domain, type) : type;
}

/* op NULL: what it is read as belongs to several. */
static fac_status add_spellings(fac_import *im, const fac_op *op, const fac_onnx *how,
                                fac_error *err) {
    for (; how && how->type; how++) {
        const char *key = key_of(&im->arena, how->domain, how->type);
        fac_spelling *s = fac_arena_alloc(&im->arena, 1, sizeof *s);
        if (!key || !s) return fac_raise_memory(err, "the tables of the import");
        *s = (fac_spelling){ op, how, fac_table_get(&im->spellings, key) };
        if (!fac_table_put(&im->spellings, key, s))
            return fac_raise_memory(err, "the tables of the import");
    }
    return FAC_OK;
}

static const char *function_key(fac_arena *arena, const char *domain, const char *name,
                                const char *overload) {
    return fac_arena_print(arena, "%s:%s:%s", fac_import_domain(domain), name, overload);
}

/* Those that are added last are asked first: the caller's own. */
static fac_status add_all(fac_import *im, fac_error *err) {
    for (const fac_op *const *op = fac_ops; *op; op++)
        FAC_TRY(add_spellings(im, *op, (*op)->onnx, err));
    for (const fac_onnx *const *how = fac_onnx_readers; *how; how++)
        FAC_TRY(add_spellings(im, NULL, *how, err));
    for (int k = im->opts ? im->opts->nops - 1 : -1; k >= 0; k--)
        FAC_TRY(add_spellings(im, im->opts->ops[k], im->opts->ops[k]->onnx, err));
    return FAC_OK;
}

fac_status fac_import_tables(fac_import *im, fac_error *err) {
    FAC_TRY(add_all(im, err));
    for (size_t k = 0; k < im->model.functions.n; k++) {
        fac_proto_function *f = &im->model.functions.at[k];
        const char *key = function_key(&im->arena, f->domain, f->name, f->overload);
        if (!key) return fac_raise_memory(err, "the tables of the import");
        if (fac_table_get(&im->functions, key))
            return fac_raise(err, FAC_E_FORMAT, "function \"%s\" is defined twice", f->name);
        if (!fac_table_put(&im->functions, key, f))
            return fac_raise_memory(err, "the tables of the import");
    }
    return FAC_OK;
}

bool fac_onnx_of_qonnx(const char *domain) {
    static const char *const all[] = { "qonnx.custom_op.general", "finn.custom_op.general",
                                       "onnx.brevitas" };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!strcmp(all[k], domain)) return true;
    return false;
}

int64_t fac_import_opset(const fac_import *im, const fac_proto_opsets *opsets, const char *domain) {
    domain = fac_import_domain(domain);
    for (size_t k = 0; k < opsets->n; k++)
        if (!strcmp(fac_import_domain(opsets->at[k].domain), domain)) return opsets->at[k].version;
    if (opsets != &im->model.opsets) return fac_import_opset(im, &im->model.opsets, domain);
    if (*domain)
        return fac_onnx_of_qonnx(domain) ? 1 : 0; /* exporters leave it out; as the qonnx package */
    return im->model.opsets.n ? 0 : 1; /* before IR 3 there was nothing to import: opset 1 */
}

fac_proto_function *fac_import_function(const fac_import *im, const fac_proto_node *n) {
    char key[512];
    if (!im->functions.n) return NULL;
    int length =
        snprintf(key, sizeof key, "%s:%s:%s", fac_import_domain(n->domain), n->type, n->overload);
    return length > 0 && (size_t)length < sizeof key ? fac_table_get(&im->functions, key) : NULL;
}

static const fac_spelling *spellings_of(const fac_import *im, const fac_proto_node *n) {
    char key[512];
    const char *domain = fac_import_domain(n->domain);
    if (!*domain) return fac_table_get(&im->spellings, n->type);
    int length = snprintf(key, sizeof key, "%s:%s", domain, n->type);
    return length > 0 && (size_t)length < sizeof key ? fac_table_get(&im->spellings, key) : NULL;
}

static bool covers(const fac_onnx *how, int64_t opset) {
    return opset >= how->since && (!how->until || opset <= how->until);
}

const fac_spelling *fac_import_spelling(const fac_import *im, const fac_proto_node *n,
                                        int64_t opset) {
    const fac_spelling *s = spellings_of(im, n);
    while (s && !covers(s->how, opset)) s = s->next;
    return s;
}

const char *fac_import_label(const fac_proto_node *n) {
    if (*n->name) return n->name;
    for (size_t k = 0; k < n->out.n; k++)
        if (*n->out.at[k]) return n->out.at[k];
    return n->type;
}

/* ---- what is missing ---- */

typedef struct missing {
    const char *what;
    size_t count;
    struct missing *next;
} missing;
typedef struct scan {
    fac_import *im;
    fac_table seen; /* what -> missing */
    missing *first, **last;
    const char *message; /* of the first    */
    int branches; /* of Ifs around what is looked at: it may be that nothing takes them, so that
                   * what is missing there shows when they are built */
} scan;

static fac_status miss(scan *s, const char *what, const char *message, fac_error *err) {
    if (s->branches) return FAC_OK;
    missing *m = what ? fac_table_get(&s->seen, what) : NULL;
    if (!what || !message) return fac_raise_memory(err, "the tables of the import");
    if (!m) {
        m = fac_arena_alloc(&s->im->arena, 1, sizeof *m);
        if (!m || !fac_table_put(&s->seen, what, m))
            return fac_raise_memory(err, "the tables of the import");
        m->what = what;
        *s->last = m;
        s->last = &m->next;
    }
    if (!s->message) s->message = message;
    m->count++;
    return FAC_OK;
}

/* "opsets 7 to 12": what we have of an op that is not there at the opset of the file. */
static void print_range(const fac_spelling *have, char *to, size_t size) {
    int64_t since = have->how->since, until = have->how->until;
    for (const fac_spelling *k = have; k; k = k->next) {
        if (k->how->since < since) since = k->how->since;
        if (!k->how->until || (until && k->how->until > until)) until = k->how->until;
    }
    if (!until)
        snprintf(to, size, "opset %lld and later", (long long)since);
    else
        snprintf(to, size, "opsets %lld to %lld", (long long)since, (long long)until);
}

fac_status fac_import_unsupported(const fac_import *im, const fac_proto_node *n, int64_t opset,
                                  fac_error *err) {
    const fac_spelling *have = spellings_of(im, n);
    const char *domain = fac_import_domain(n->domain), *shown = *domain ? domain : "ai.onnx";
    char range[64];
    if (opset <= 0)
        return fac_raise(err, FAC_E_FORMAT,
                         "op %s is of domain \"%s\", which the model does not import", n->type,
                         n->domain);
    if (!have)
        return fac_raise(err, FAC_E_UNSUPPORTED, "op %s of domain %s, opset %lld, is not supported",
                         n->type, shown, (long long)opset);
    print_range(have, range, sizeof range);
    return fac_raise(err, FAC_E_UNSUPPORTED,
                     "op %s of domain %s is supported for %s, not for opset %lld", n->type, shown,
                     range, (long long)opset);
}

static fac_status scan_op(scan *s, const fac_proto_node *n, int64_t opset, fac_error *err) {
    if (fac_import_spelling(s->im, n, opset)) return FAC_OK;
    fac_arena *arena = &s->im->arena;
    fac_error first = { 0 };
    const char *what = key_of(arena, n->domain, n->type), *message = s->message;
    if (what && spellings_of(s->im, n))
        what = fac_arena_print(arena, "%s at opset %lld", what, (long long)opset);
    fac_import_unsupported(s->im, n, opset, &first);
    if (!message)
        message = fac_arena_print(arena, "node \"%s\": %s", fac_import_label(n), first.text);
    return miss(s, what, message, err);
}

static bool is_constant(const fac_proto_node *n) {
    return !*fac_import_domain(n->domain) && !strcmp(n->type, "Constant");
}

/* fac_proto_function.mark; LOOKED_AT: from branches only, so that what it lacks was passed over. */
enum { NEW, ACTIVE, LOOKED_AT, DONE };

static bool is_branch(const fac_proto_node *n) {
    return !*fac_import_domain(n->domain) && !strcmp(n->type, "If");
}

static fac_status scan_graph(scan *s, const fac_proto_graph *g, const fac_proto_opsets *opsets,
                             int depth, fac_error *err);

/* Graphs among the attributes of a node are read, and looked through as well. */
static fac_status scan_subgraphs(scan *s, fac_proto_node *n, const fac_proto_opsets *opsets,
                                 int depth, fac_error *err) {
    for (size_t k = 0; k < n->attrs.n; k++) {
        fac_proto_attr *a = &n->attrs.at[k];
        if (!a->g.p) continue;
        if (!(a->graph = fac_arena_alloc(&s->im->arena, 1, sizeof *a->graph)))
            return fac_raise_memory(err, "the tables of the import");
        FAC_TRY(fac_proto_read_graph(a->g, &s->im->arena, a->graph, err));
        s->im->budget += a->graph->nodes.n;
        s->branches += is_branch(n);
        fac_status status = scan_graph(s, a->graph, opsets, depth + 1, err);
        s->branches -= is_branch(n);
        if (status) return status;
    }
    return fac_import_reads(s->im, n, err);
}

static fac_status scan_nodes(scan *s, const fac_proto_nodes *nodes, const fac_proto_opsets *opsets,
                             int depth, fac_error *err) {
    if (depth > FAC_FUNCTION_DEPTH)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "functions and subgraphs are nested more than %d deep",
                         FAC_FUNCTION_DEPTH);
    for (size_t k = 0; k < nodes->n; k++) {
        fac_proto_node *n = &nodes->at[k];
        if (!*n->type)
            return fac_raise(err, FAC_E_FORMAT, "node \"%s\" has no op type", fac_import_label(n));
        if (n->attrs.n > FAC_MANY)
            return fac_raise(err, FAC_E_FORMAT, "node \"%s\" has %zu attributes",
                             fac_import_label(n), n->attrs.n);
        FAC_TRY(scan_subgraphs(s, n, opsets, depth, err));
        fac_proto_function *f = fac_import_function(s->im, n);
        if (f) {
            if (f->mark == ACTIVE)
                return fac_raise(err, FAC_E_FORMAT, "function \"%s\" calls itself", f->name);
            if (f->mark == DONE || (f->mark == LOOKED_AT && s->branches)) continue;
            if (f->defaults.n > FAC_MANY || f->opsets.n > FAC_MANY)
                return fac_raise(err, FAC_E_FORMAT,
                                 "function \"%s\" has %zu attributes and imports %zu opsets",
                                 f->name, f->defaults.n, f->opsets.n);
            f->mark = ACTIVE;
            FAC_TRY(scan_nodes(s, &f->nodes, &f->opsets, depth + 1, err));
            f->mark = s->branches ? LOOKED_AT : DONE;
            continue;
        }
        int64_t opset = fac_import_opset(s->im, opsets, n->domain);
        if (opset <= 0 && !s->branches && !fac_import_lenient(s->im))
            return fac_raise_in(err, fac_import_unsupported(s->im, n, opset, err), "node \"%s\"",
                                fac_import_label(n));
        if (!is_constant(n)) FAC_TRY(scan_op(s, n, opset, err));
    }
    return FAC_OK;
}

static fac_status scan_dtype(scan *s, const char *kind, const char *name, int64_t type,
                             fac_error *err) {
    if (type == 0 || fac_proto_dtype(type) != FAC_NONE) return FAC_OK;
    fac_arena *arena = &s->im->arena;
    const char *known = fac_proto_dtype_name(type);
    return miss(s, fac_arena_print(arena, "element type %s", known),
                fac_arena_print(arena, "%s \"%s\": element type %s (%lld) is not supported", kind,
                                name, known, (long long)type),
                err);
}

static bool is_listed(const fac_onnx_opts *o, const char *name) {
    for (int k = 0; o && k < o->nlists; k++)
        if (!strcmp(o->lists[k].name, name)) return true;
    return false;
}

/* inside: an input of a subgraph, which gets its sequences from around it. */
static fac_status scan_input(scan *s, const fac_proto_value *v, bool inside, fac_error *err) {
    static const struct {
        int field;
        const char *name;
        bool handed;
    } kinds[] = { { FAC_PROTO_TYPE_SEQUENCE, "sequence", true },
                  { FAC_PROTO_TYPE_MAP, "map", false },
                  { FAC_PROTO_TYPE_OPAQUE, "opaque", false },
                  { FAC_PROTO_TYPE_SPARSE, "sparse tensor", false },
                  { FAC_PROTO_TYPE_OPTIONAL, "optional", true } };
    if (is_listed(s->im->opts, v->name)) return FAC_OK;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (fac_proto_has(v->type.has, kinds[k].field) && !(inside && kinds[k].handed)) {
            fac_arena *arena = &s->im->arena;
            return miss(
                s, fac_arena_print(arena, "type %s", kinds[k].name),
                fac_arena_print(arena, "input \"%s\": type %s is not supported%s", v->name,
                                kinds[k].name,
                                kinds[k].handed ? " without its length (fac_onnx_opts.lists)" : ""),
                err);
        }
    return scan_dtype(s, "input", v->name, v->type.dense.type, err);
}

/* Versions of one domain must agree, and none may be later than those facula knows. */
static fac_status scan_opsets(const fac_import *im, fac_error *err) {
    const fac_proto_opsets *all = &im->model.opsets;
    if (all->n > FAC_MANY)
        return fac_raise(err, FAC_E_FORMAT, "the model imports %zu opsets", all->n);
    for (size_t k = 0; k < all->n; k++) {
        const char *domain = fac_import_domain(all->at[k].domain),
                   *shown = *domain ? domain : "ai.onnx";
        const int64_t version = all->at[k].version, first = fac_import_opset(im, all, domain);
        if (first != version)
            return fac_raise(err, FAC_E_FORMAT,
                             "the model imports opset %lld and opset %lld of domain %s",
                             (long long)first, (long long)version, shown);
        if (!*domain && version > FAC_ONNX_LATEST && !fac_import_lenient(im))
            return fac_raise(err, FAC_E_UNSUPPORTED,
                             "opset %lld of domain %s: %d is the newest one that is supported",
                             (long long)version, shown, FAC_ONNX_LATEST);
    }
    return FAC_OK;
}

static fac_status scan_all(scan *s, fac_error *err) {
    FAC_TRY(scan_opsets(s->im, err));
    return scan_graph(s, &s->im->model.graph, &s->im->model.opsets, 0, err);
}

static fac_status scan_graph(scan *s, const fac_proto_graph *g, const fac_proto_opsets *opsets,
                             int depth, fac_error *err) {
    if (g->out.n > FAC_MANY)
        return fac_raise(err, FAC_E_FORMAT, "a graph with %zu outputs", g->out.n);
    FAC_TRY(scan_nodes(s, &g->nodes, opsets, depth, err));
    for (size_t k = 0; k < g->in.n; k++) FAC_TRY(scan_input(s, &g->in.at[k], depth > 0, err));
    for (size_t k = 0; k < g->tensors.n; k++)
        FAC_TRY(scan_dtype(s, "initializer", g->tensors.at[k].name, g->tensors.at[k].type, err));
    if (fac_proto_has(g->has, FAC_PROTO_GRAPH_SPARSE))
        FAC_TRY(miss(s, "sparse initializer", "sparse initializers are not supported", err));
    return FAC_OK;
}

static fac_status report(const scan *s, fac_error *err) {
    if (!s->first) return FAC_OK;
    fac_text t = { 0 };
    fac_text_add(&t, s->message);
    if (s->first->count > 1) fac_text_print(&t, " (%zu times)", s->first->count);
    for (const missing *m = s->first->next; m; m = m->next)
        fac_text_print(&t, "%s%s (%zu)", m == s->first->next ? "; also missing: " : ", ", m->what,
                       m->count);
    fac_raise(err, FAC_E_UNSUPPORTED, "%s", t.failed ? s->message : t.s);
    fac_text_free(&t);
    return FAC_E_UNSUPPORTED;
}

fac_status fac_import_scan(fac_import *im, fac_error *err) {
    scan s = { .im = im };
    s.last = &s.first;
    fac_status status = scan_all(&s, err);
    if (!status && !fac_import_lenient(im)) status = report(&s, err);
    fac_table_free(&s.seen);
    return status;
}
