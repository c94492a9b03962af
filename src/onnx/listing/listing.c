/* The operators of a file as it spells them: the main graph, then subgraphs and functions.  See
 * facula/onnx.h. */
#include "onnx/listing/listing.h"
#include "base/error.h"
#include "base/memory.h"

const char *fac_onnx_role_name(fac_onnx_role role) {
    static const char *const names[] = { "data", "weight", "bias", "stored" };
    return names[role];
}

const char *fac_onnx_whose_name(fac_onnx_whose w) {
    static const char *const names[] = { "known", "function", "not ours", "unknown" };
    return names[w];
}

/* ---- whose ---- */

static bool is_onnx(const char *domain, const char *type) {
    for (const fac_onnx_op_name *k = fac_onnx_op_names; k->type; k++)
        if (!strcmp(k->type, type) && !strcmp(k->domain, domain)) return true;
    return false;
}

static fac_onnx_whose whose(const fac_listing_place *at, const fac_proto_node *n, int64_t opset) {
    const char *domain = fac_import_domain(n->domain);
    if (fac_import_function(at->im, n)) return FAC_ONNX_FUNCTION;
    const bool constant = !*domain && !strcmp(n->type, "Constant");
    if ((constant || fac_import_spelling(at->im, n, opset)) && fac_listing_built(at, n))
        return FAC_ONNX_KNOWN;
    return constant || fac_import_spelling(at->im, n, opset) || is_onnx(domain, n->type)
               ? FAC_ONNX_NOT_OURS
               : FAC_ONNX_UNKNOWN;
}

/* ---- the walk ---- */

static fac_status list_nodes(fac_onnx_listing *l, const fac_listing_place *at,
                             const fac_proto_nodes *nodes, fac_error *err);

static fac_status list_node(fac_onnx_listing *l, const fac_listing_place *at,
                            const fac_proto_node *n, fac_error *err) {
    fac_onnx_listed one = { .opset = fac_import_opset(at->im, at->opsets, n->domain) };
    one.name = fac_arena_text(&l->arena, n->name);
    one.type = fac_arena_text(&l->arena, n->type);
    one.domain = fac_arena_text(&l->arena, fac_import_domain(n->domain));
    one.inside = at->inside;
    one.whose = whose(at, n, one.opset);
    if (!one.name || !one.type || !one.domain) return fac_raise_memory(err, "the list of nodes");
    FAC_TRY(fac_listing_args(l, at, n, &one, err));
    FAC_TRY(fac_listing_attrs(l, at, n, &one, err));
    if (!fac_reserve(&l->nodes, &l->room, l->n + 1, sizeof *l->nodes))
        return fac_raise_memory(err, "the list of nodes");
    l->nodes[l->n++] = one;
    return FAC_OK;
}

/* Graphs among its attributes: read by the importer's scan. */
static fac_status list_inner(fac_onnx_listing *l, const fac_listing_place *at,
                             const fac_proto_node *n, fac_error *err) {
    for (size_t k = 0; k < n->attrs.n; k++) {
        const fac_proto_attr *a = &n->attrs.at[k];
        if (!a->graph) continue;
        fac_listing_place inner = { at->im, NULL, a->graph, at->opsets, NULL };
        inner.inside = fac_arena_print(&l->arena, "%s%s%s.%s", at->inside, *at->inside ? "/" : "",
                                       fac_import_label(n), a->name);
        if (!inner.inside) return fac_raise_memory(err, "the list of nodes");
        FAC_TRY(list_nodes(l, &inner, &a->graph->nodes, err));
    }
    return FAC_OK;
}

static fac_status list_nodes(fac_onnx_listing *l, const fac_listing_place *at,
                             const fac_proto_nodes *nodes, fac_error *err) {
    for (size_t k = 0; k < nodes->n; k++) {
        FAC_TRY(list_node(l, at, &nodes->at[k], err));
        FAC_TRY(list_inner(l, at, &nodes->at[k], err));
    }
    return FAC_OK;
}

static fac_status look(void *self, fac_body *main, fac_error *err) {
    fac_onnx_listing *l = self;
    const fac_proto_model *m = &main->im->model;
    FAC_TRY(fac_listing_leaves(l, main, err));
    FAC_TRY(list_nodes(l, &(fac_listing_place){ main->im, main, NULL, &m->opsets, "" },
                       &m->graph.nodes, err));
    for (size_t k = 0; k < m->functions.n; k++) {
        const fac_proto_function *f = &m->functions.at[k];
        fac_listing_place at = { main->im, NULL, NULL, &f->opsets, NULL };
        at.inside = fac_arena_print(&l->arena, "%s%s%s", f->domain, *f->domain ? ":" : "", f->name);
        if (!at.inside) return fac_raise_memory(err, "the list of nodes");
        FAC_TRY(list_nodes(l, &at, &f->nodes, err));
    }
    return FAC_OK;
}

/* ---- the calls ---- */

fac_status fac_onnx_list_nodes(const char *path, fac_onnx_listing **out, fac_error *err) {
    fac_import im = { .opts = &(fac_onnx_opts){ .opaque = true }, .look = look };
    fac_graph *g = NULL;
    fac_onnx_listing *l = fac_alloc(1, sizeof *l);
    if (!l) return fac_raise_memory(err, "the list of nodes");
    im.look_self = l;
    fac_status status = fac_source_open(path, &im.files, err);
    if (status) {
        fac_release(l);
        return status;
    }
    status = fac_import_run(&im, &g, err);
    if (status) {
        fac_onnx_listing_free(l);
        return fac_raise_in(err, status, "%s", path);
    }
    fac_graph_free(g);
    *out = l;
    return FAC_OK;
}

void fac_onnx_listing_free(fac_onnx_listing *l) {
    if (!l) return;
    fac_release(l->nodes);
    fac_arena_free(&l->arena);
    fac_release(l);
}

int fac_onnx_listing_count(const fac_onnx_listing *l) { return (int)l->n; }
fac_onnx_sums fac_onnx_listing_sums(const fac_onnx_listing *l) { return l->sums; }
const fac_onnx_listed *fac_onnx_listing_node(const fac_onnx_listing *l, int i) {
    return i >= 0 && (size_t)i < l->n ? &l->nodes[i] : NULL;
}
