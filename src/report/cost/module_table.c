/* The table that torchinfo 1.8 prints, line by line. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "report/cost/modules.h"

enum { NAME_WIDTH = 40, COLUMN = 25, INDENT = 5, USUAL_DEPTH = 3 };

typedef struct sheet {
    const fac_analysis *a;
    const fac_module_rows *rows;
    int depth, width;
    bool names;
    fac_text line;
    fac_table_line *put;
    void *self;
    fac_error *err;
} sheet;

/* ---- texts ---- */

/* "6,624,904" */
static const char *digits(double x, char to[40]) {
    char plain[32];
    const int n = snprintf(plain, sizeof plain, "%.0f", x);
    int at = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0 && plain[i - 1] != '-') to[at++] = ',';
        to[at++] = plain[i];
    }
    to[at] = 0;
    return to;
}

/* "Conv2d (conv): 2-1"; what has no class has its name in brackets. */
static void title(const sheet *s, const fac_module_row *r, char *to, size_t size) {
    if (!r->class)
        snprintf(to, size, "(%s): %d-%d", r->name, r->depth, r->index);
    else if (s->names)
        snprintf(to, size, "%s (%s): %d-%d", r->class, r->name, r->depth, r->index);
    else
        snprintf(to, size, "%s: %d-%d", r->class, r->depth, r->index);
}

static void shape(const sheet *s, const fac_type *t, char *to, size_t size) {
    size_t n = 0;
    if (t->dtype == FAC_NONE) {
        snprintf(to, size, "unknown");
        return;
    }
    n += (size_t)snprintf(to, size, "[");
    for (int k = 0; k < t->dims.n && n < size; k++) {
        const int64_t d = t->dims.d[k];
        const char *comma = k ? ", " : "";
        const char *name = d < 0 ? fac_symbol_name(s->a->graph, d) : NULL;
        if (d < 0)
            n += (size_t)snprintf(to + n, size - n, "%s%s", comma, name ? name : "?");
        else
            n += (size_t)snprintf(to + n, size - n, "%s%lld", comma, (long long)d);
    }
    if (n < size) snprintf(to + n, size - n, "]");
}

/* Columns on a terminal: bytes that begin a character. */
static int columns(const char *s) {
    int n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

/* ---- lines ---- */

static fac_status finish(sheet *s) {
    fac_text *t = &s->line;
    if (t->failed || !t->s) return fac_raise_memory(s->err, "a line of a table");
    size_t n = strlen(t->s);
    while (n && t->s[n - 1] == ' ') t->s[--n] = 0;
    const fac_status status = s->put(s->self, t->s, s->err);
    fac_text_free(t);
    *t = (fac_text){ 0 };
    return status;
}

static fac_status divide(sheet *s) {
    for (int k = 0; k < s->width + 2 * COLUMN; k++) fac_text_add(&s->line, "=");
    return finish(s);
}

static fac_status row(sheet *s, const char *name, const char *out, const char *params) {
    fac_text_print(&s->line, "%s%*s %-*s %s", name, s->width - columns(name), "", COLUMN, out,
                   params);
    return finish(s);
}

static void params_text(const sheet *s, const fac_module_row *r, char to[40]) {
    const bool whole = r->leaf || r->depth == s->depth;
    const double n = whole ? r->params : r->left;
    if (r->params <= 0)
        snprintf(to, 40, "--");
    else if (r->again)
        snprintf(to, 40, "(recursive)");
    else if (n <= 0)
        snprintf(to, 40, "--");
    else
        digits(n, to);
}

static fac_status module_row(sheet *s, const fac_module_row *r) {
    char text[600], out[256], params[40];
    size_t n = 0;
    for (int k = 1; k < r->depth; k++) n += (size_t)snprintf(text + n, sizeof text - n, "│    ");
    n += (size_t)snprintf(text + n, sizeof text - n, r->depth == 1 ? "├─" : "└─");
    title(s, r, text + n, sizeof text - n);
    shape(s, &r->out, out, sizeof out);
    params_text(s, r, params);
    return row(s, text, out, params);
}

static void find_width(sheet *s) {
    int most = 0;
    char text[256];
    for (size_t k = 0; k < s->rows->n; k++) {
        title(s, &s->rows->at[k], text, sizeof text);
        const int n = columns(text) + s->rows->at[k].depth * INDENT + 1;
        if (n > most) most = n;
    }
    s->width = most >= NAME_WIDTH ? (most + INDENT - 1) / INDENT * INDENT : NAME_WIDTH;
}

/* ---- totals ---- */

typedef struct sums {
    double params, bytes, results;
} sums;

/* torchinfo counts the results of modules with parameters, twice: forward and backward. */
static sums add_up(const sheet *s) {
    sums t = { .params = s->rows->left };
    for (size_t k = 0; k < s->rows->n; k++) {
        const fac_module_row *r = &s->rows->at[k];
        const size_t bytes = fac_type_bytes(&r->out);
        if (!r->leaf || r->params <= 0) continue;
        if (!r->again) t.params += r->params;
        if (bytes != SIZE_MAX) t.results += 2 * (double)bytes;
    }
    const fac_totals all = fac_analysis_totals(s->a);
    t.bytes = all.params > 0 ? t.params * all.param_bytes / all.params : 0;
    return t;
}

static fac_status total(sheet *s, const char *what, double x) {
    char text[40];
    fac_text_print(&s->line, "%s: %s", what, digits(x, text));
    return finish(s);
}

static fac_status megabytes(sheet *s, const char *what, double bytes) {
    fac_text_print(&s->line, "%s (MB): %.2f", what, bytes / 1e6);
    return finish(s);
}

static fac_status mult_adds(sheet *s) {
    static const struct {
        double unit;
        const char *name;
    } units[] = { { 1e12, "TERABYTES" }, { 1e9, "GIGABYTES" }, { 1e6, "MEGABYTES" } };
    const double n = fac_analysis_count(s->a, FAC_COUNT_TORCHINFO);
    int k = 0;
    while (k < 2 && n < units[k].unit) k++;
    fac_text_print(&s->line, "Total mult-adds (Units.%s): %.2f", units[k].name, n / units[k].unit);
    return finish(s);
}

static fac_status totals(sheet *s) {
    const fac_totals all = fac_analysis_totals(s->a);
    const sums t = add_up(s);
    FAC_TRY(divide(s));
    FAC_TRY(total(s, "Total params", t.params));
    FAC_TRY(total(s, "Trainable params", t.params));
    FAC_TRY(total(s, "Non-trainable params", 0));
    FAC_TRY(mult_adds(s));
    FAC_TRY(divide(s));
    FAC_TRY(megabytes(s, "Input size", all.inputs));
    FAC_TRY(megabytes(s, "Forward/backward pass size", t.results));
    FAC_TRY(megabytes(s, "Params size", t.bytes));
    FAC_TRY(megabytes(s, "Estimated Total Size", all.inputs + t.results + t.bytes));
    FAC_TRY(divide(s));
    FAC_TRY(total(s, "Params size (bytes)", t.bytes));
    FAC_TRY(total(s, "Buffers", all.buffers));
    return total(s, "Buffers size (bytes)", all.buffer_bytes);
}

/* ---- the table ---- */

static fac_status table(sheet *s) {
    const fac_graph *g = s->a->graph;
    const char *class = fac_graph_class(g, "");
    char out[256] = "--";
    find_width(s);
    FAC_TRY(divide(s));
    FAC_TRY(row(s, s->names ? "Layer (type (var_name):depth-idx)" : "Layer (type:depth-idx)",
                "Output Shape", "Param #"));
    FAC_TRY(divide(s));
    if (g->noutputs) shape(s, &g->outputs[0].value->type, out, sizeof out);
    FAC_TRY(row(s, class ? class : "(model)", out, "--"));
    for (size_t k = 0; k < s->rows->n; k++)
        if (s->rows->at[k].depth <= s->depth) FAC_TRY(module_row(s, &s->rows->at[k]));
    return totals(s);
}

fac_status fac_analysis_table(const fac_analysis *a, int depth, bool names, fac_table_line *put,
                              void *self, fac_error *err) {
    fac_module_rows rows;
    FAC_TRY(fac_module_rows_find(a, &rows, err));
    sheet s = { .a = a,
                .rows = &rows,
                .depth = depth > 0 ? depth : USUAL_DEPTH,
                .names = names,
                .put = put,
                .self = self,
                .err = err };
    const fac_status status = table(&s);
    fac_text_free(&s.line);
    fac_module_rows_free(&rows);
    return status;
}
