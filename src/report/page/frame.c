/* The frame of a report: head, the facts that stand first, the foot with style and script.  Nothing
 * is fetched from anywhere, and the policy in the head forbids it: no script runs but the one
 * below, whatever a name in the model may contain. */
#include <stdio.h>
#include <string.h>
#include "facula/op.h"
#include "base/optional.h"
#include "facula/version.h"
#include "report/page/page_internal.h"
#include "page_css.h"
#include "page_js.h"

static const struct {
    const char *id, *name;
} parts[] = { { "graph", "Graph" },       { "modules", "Modules" }, { "operators", "Operators" },
              { "measured", "Measured" }, { "memory", "Memory" },   { "roofline", "Roofline" },
              { "counts", "Counts" },     { "plan", "Plan" } };

void fac_page_start(fac_text *to, const fac_page *r) {
    fac_html(
        to,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>%s - "
        "facula report</title>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<meta "
        "http-equiv=\"Content-Security-Policy\" "
        "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-facula'\">\n"
        "<meta name=\"generator\" content=\"facula " FACULA_VERSION "\">\n<style>\n",
        r->name);
    fac_text_add(to, fac_page_css);
    fac_text_add(
        to, "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n"
            "<nav aria-label=\"Sections\"><div>\n");
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if (r->time || strcmp(parts[k].id, "measured"))
            fac_html(to, "<a href=\"#%s\">%s</a>\n", parts[k].id, parts[k].name);
    fac_text_add(
        to,
        "<label class=\"js search\"><span>Search layers</span><input type=\"search\" id=\"search\" "
        "placeholder=\"Search layers  ( / )\" autocomplete=\"off\" spellcheck=\"false\">"
        "<output id=\"found\" for=\"search\"></output></label>\n</div></nav>\n<main "
        "id=\"main\">\n");
}

void fac_page_end(fac_text *to, const fac_page *r) {
    fac_html(
        to,
        "</main>\n<footer>Made by facula " FACULA_VERSION
        "%s%s.  One multiply-add is two floating-point operations; "
        "1 MB is 1,000,000 bytes.  Memory of results: an ideal allocator, nothing in "
        "place.</footer>\n"
        "<div id=\"tip\" role=\"status\" hidden></div>\n<aside id=\"facts\" aria-live=\"polite\" "
        "hidden></aside>\n"
        "<script nonce=\"facula\">\n",
        fac_text_if(r->stamp, " on "), fac_text_or(r->stamp, ""));
    fac_text_add(to, fac_page_js);
    fac_text_add(to, "</script>\n</body>\n</html>\n");
}

void fac_page_section_start(fac_text *to, const char *id, const char *title, const char *lead) {
    fac_html(to,
             "<section id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">%s</h2>\n<p "
             "class=\"lead\">%s</p>\n",
             id, id, id, title, lead);
}

void fac_page_section_end(fac_text *to) { fac_text_add(to, "</section>\n"); }

void fac_page_cell_number(fac_text *to, double value, const char *text, double share) {
    if (share >= 0)
        fac_html(to, "<td class=\"n bar\" data-v=\"%.17g\" style=\"--w:%.4f\"><span>%s</span></td>",
                 value, share, text);
    else
        fac_html(to, "<td class=\"n\" data-v=\"%.17g\">%s</td>", value, text);
}

const char *fac_page_dims(const fac_graph *g, const fac_type *t, char *to, size_t size) {
    if (t->dtype != FAC_NONE) return fac_dims_text(g, &t->dims, to, size);
    snprintf(to, size, "unknown");
    return to;
}

/* ---- facts ---- */

static void fact(fac_text *to, const char *name, const char *value, const char *more) {
    fac_html(to, "<div><dt>%s</dt><dd>%s</dd><dd class=\"more\">%s</dd></div>\n", name, value,
             more);
}

static void ports(fac_text *to, const fac_page *r, const char *what, int n, bool output) {
    const fac_graph *g = fac_analysis_graph(r->a);
    for (int i = 0; i < n; i++) {
        const fac_value *v = output ? fac_graph_output(g, i) : fac_graph_input(g, i);
        const fac_type t = fac_value_type(v);
        const char *name = output ? fac_graph_output_name(g, i) : fac_value_name(v);
        char dims[256];
        fac_html(to, "<li><span>%s</span> <b>%s</b> <code>%s %s</code></li>\n", what,
                 name ? name : "", fac_dtype_get(t.dtype)->name,
                 fac_dims_text(g, &t.dims, dims, sizeof dims));
    }
}

void fac_page_facts(fac_text *to, const fac_page *r) {
    const fac_totals *t = &r->t;
    const fac_layer *top = fac_analysis_layer(r->a, t->peak_layer);
    const fac_graph *g = fac_analysis_graph(r->a);
    char x[64], y[64], z[64], more[320];
    fac_html(to, "<header>\n<p class=\"brand\">facula report</p>\n<h1>%s</h1>\n", r->name);
    if (r->about) fac_html(to, "<p class=\"lead\">%s</p>\n", r->about);
    fac_text_add(to, "<ul class=\"ports\">\n");
    ports(to, r, "input", fac_graph_inputs(g), false);
    ports(to, r, "output", fac_graph_outputs(g), true);
    fac_text_add(to, "</ul>\n<dl class=\"facts\">\n");
    snprintf(more, sizeof more, "%s; buffers %s", fac_digits_text(t->params, x, sizeof x),
             fac_digits_text(t->buffers, y, sizeof y));
    fact(to, "Parameters", fac_count_text(t->params, z, sizeof z), more);
    snprintf(more, sizeof more, "%s; %s FLOP", fac_digits_text(t->macs, x, sizeof x),
             fac_count_text(2 * t->macs, y, sizeof y));
    fact(to, "Multiply-adds", fac_count_text(t->macs, z, sizeof z), more);
    const double few = t->binary_macs + t->integer_macs;
    if (few > 0) {
        snprintf(z, sizeof z, "%.1f %%", 100 * fac_page_ratio(few, t->macs));
        fact(to, "Few bits", z, fac_totals_products(t, more, sizeof more));
    }
    snprintf(more, sizeof more, "%s bytes of parameters and buffers",
             fac_digits_text(t->weights, x, sizeof x));
    fact(to, "Weights", fac_bytes_text(t->weights, z, sizeof z), more);
    snprintf(more, sizeof more, "results alive at once%s%s", top ? ", in " : "",
             top ? fac_page_layer_name(top) : "");
    fact(to, "Peak memory", fac_bytes_text(t->peak, z, sizeof z), more);
    snprintf(more, sizeof more, "%s of results in all",
             fac_bytes_text(t->activations, x, sizeof x));
    snprintf(z, sizeof z, "%d", t->layers);
    fact(to, "Layers", z, more);
    if (r->time) {
        snprintf(z, sizeof z, "%.3g ms", 1e3 * r->time->median);
        snprintf(more, sizeof more, "%.1f GFLOP/s; median of %d runs",
                 2e-9 * fac_page_ratio(r->time->macs, r->time->median), r->time->runs);
        fact(to, "Time of a run", z, more);
    }
    fac_text_add(to, "</dl>\n");
    if (fac_analysis_open(r->a))
        fac_html(to, "<p class=\"note\">Sizes are unknown, and count 0: %s</p>\n",
                 fac_analysis_open(r->a));
    fac_text_add(to, "</header>\n");
}

/* ---- layers ---- */

/* An op of one expression an element is at least one operation for each. */
static double elementwise(const fac_layer *l) {
    const fac_op *op = l->other > 0 ? NULL : fac_op_find(l->op);
    const int64_t n = op && op->map ? fac_dims_count(&l->out.dims) : 0;
    return n > 0 ? (double)n : 0;
}

double fac_page_layer_flops(const fac_layer *l) { return 2 * l->macs + l->other + elementwise(l); }
double fac_page_layer_bytes(const fac_layer *l) { return l->read + l->written + l->weights; }

const char *fac_page_layer_class(const fac_layer *l) {
    static const char *const classes[][2] = {
        { "norm", "norm" }, { "lrn", "norm" },    { "pool", "pool" }, { "mean", "pool" },
        { "relu", "act" },  { "elu", "act" },     { "clip", "act" },  { "sigmoid", "act" },
        { "tanh", "act" },  { "softmax", "act" }, { "swish", "act" }, { "silu", "act" },
        { "soft", "act" },  { "mish", "act" },    { "erf", "act" }
    };
    if (l->macs > 0) return "mac";
    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++)
        if (strstr(l->op, classes[k][0])) return classes[k][1];
    return l->other > 0 || elementwise(l) > 0 ? "other" : "move";
}
