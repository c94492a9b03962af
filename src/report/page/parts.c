/* See parts.h. */
#include "report/page/parts.h"
#include <stdio.h>
#include <string.h>
#include "base/memory.h"

/* ---- parts ---- */

/* Component k of a path of modules; NULL: it has fewer. */
static const char *component(const char *path, int k, size_t *length) {
    for (; *path; path += *path == '.') {
        *length = strcspn(path, ".");
        if (!k--) return path;
        path += *length;
    }
    return NULL;
}

static bool same_component(const char *x, const char *y, int k) {
    size_t n = 0, m = 0;
    const char *a = component(x, k, &n), *b = component(y, k, &m);
    return a && b && n == m && !memcmp(a, b, n);
}

/* After the stretch that begins at layer i and stands in one module of this depth; one layer where
 * it stands in none. */
static int stretch(const fac_analysis *a, int i, int last, int depth) {
    int end = i + 1;
    while (end <= last && same_component(fac_analysis_layer(a, i)->module,
                                         fac_analysis_layer(a, end)->module, depth))
        end++;
    return end;
}

static char *copy_of(const char *text, size_t n) {
    char *copy = fac_alloc(n + 1, 1);
    if (copy) memcpy(copy, text, n);
    return copy;
}

static bool named(part *p, const char *text, size_t n) {
    p->name = copy_of(text, n);
    return p->name;
}

static void add_up(const fac_analysis *a, part *p) {
    for (int i = p->first; i <= p->last; i++) {
        p->macs += fac_analysis_layer(a, i)->macs;
        p->params += fac_analysis_layer(a, i)->params;
    }
}

/* Stretches of about equal length instead of very many children. */
static bool halve(const fac_analysis *a, part *p) {
    while (p->children > PARTS_MOST) {
        const int groups = (p->children + 23) / 24, n = p->children;
        part *all = fac_alloc((size_t)groups, sizeof *all);
        bool good = all != NULL;
        for (int g = 0; g < groups && good; g++) {
            const int from = (int)((long long)n * g / groups),
                      to = (int)((long long)n * (g + 1) / groups);
            char text[64];
            part *q = &all[g];
            *q = (part){ .first = p->child[from].first,
                         .last = p->child[to - 1].last,
                         .children = to - from };
            q->child = fac_alloc((size_t)(to - from), sizeof *q->child);
            snprintf(text, sizeof text, "layers %d-%d", q->first, q->last);
            good = q->child && named(q, text, strlen(text));
            if (good)
                memcpy(q->child, p->child + from, (size_t)(to - from) * sizeof *q->child);
            else
                q->children = 0;
            add_up(a, q);
        }
        if (!good) { /* what was handed on is still in p, so only the new ones go */
            for (int g = 0; all && g < groups; g++)
                fac_release(all[g].child), fac_release(all[g].name);
            fac_release(all);
            return false;
        }
        fac_release(p->child);
        p->child = all;
        p->children = groups;
    }
    return true;
}

static bool divide(const fac_analysis *a, part *p, int depth);

static bool child_new(const fac_analysis *a, part *p, int first, int last, int depth) {
    part *c = &p->child[p->children++];
    const fac_layer *l = fac_analysis_layer(a, first);
    size_t n = 0;
    *c = (part){ .first = first, .last = last };
    add_up(a, c);
    if (first == last) return named(c, l->name, strlen(l->name));
    const char *end = component(l->module, depth, &n);
    return named(c, l->module, (size_t)(end - l->module) + n) && divide(a, c, depth + 1);
}

static bool divide(const fac_analysis *a, part *p, int depth) {
    const char *path = fac_analysis_layer(a, p->first)->module;
    size_t n;
    while (component(path, depth, &n) && stretch(a, p->first, p->last, depth) >
                                             p->last) { /* a module with one child is that child */
        char *longer = copy_of(path, (size_t)(component(path, depth, &n) - path) + n);
        if (!longer) return false;
        fac_release(p->name);
        p->name = longer;
        depth++;
    }
    int count = 0;
    for (int i = p->first; i <= p->last; i = stretch(a, i, p->last, depth)) count++;
    p->child = fac_alloc((size_t)count, sizeof *p->child);
    bool good = p->child != NULL;
    for (int i = p->first; i <= p->last && good;) {
        const int end = stretch(a, i, p->last, depth);
        good = child_new(a, p, i, end - 1, depth);
        i = end;
    }
    return good && halve(a, p);
}

bool fac_page_parts_find(const fac_analysis *a, part *root) {
    *root = (part){ .last = fac_analysis_totals(a).layers - 1 };
    if (root->last < 0) return true;
    add_up(a, root);
    return divide(a, root, 0);
}

void fac_page_parts_free(part *p) {
    for (int i = 0; i < p->children; i++) fac_page_parts_free(&p->child[i]);
    fac_release(p->child);
    fac_release(p->name);
    *p = (part){ 0 };
}

/* ---- who reads whom ---- */

bool fac_page_flow_find(const fac_analysis *a, flow *f) {
    const int n = fac_analysis_totals(a).layers;
    int most = 0, total = 0;
    for (int i = 0; i < n; i++) {
        const int reads = fac_analysis_reads(a, i, NULL, 0);
        if (reads > most) most = reads;
        total += reads;
    }
    fac_alive *one = fac_alloc((size_t)most + 1, sizeof *one);
    *f = (flow){ fac_alloc((size_t)n + 2, sizeof(int)), fac_alloc((size_t)total + 1, sizeof(int)),
                 fac_alloc((size_t)n + 2, sizeof(int)), fac_alloc((size_t)total + 1, sizeof(int)) };
    const bool good = one && f->from && f->at && f->to && f->reader;
    for (int i = 0; i < n && good; i++) {
        const int reads = fac_analysis_reads(a, i, one, most);
        f->from[i + 1] = f->from[i] + reads;
        for (int k = 0; k < reads; k++) {
            f->at[f->from[i] + k] = one[k].layer;
            if (one[k].layer >= 0) f->to[one[k].layer + 2]++;
        }
    }
    for (int i = 0; i < n && good; i++) f->to[i + 2] += f->to[i + 1];
    for (int i = 0; i < n && good;
         i++) /* to[i + 1] runs from the start of i's readers to their end */
        for (int k = f->from[i]; k < f->from[i + 1]; k++)
            if (f->at[k] >= 0) f->reader[f->to[f->at[k] + 1]++] = i;
    fac_release(one);
    return good;
}

void fac_page_flow_free(flow *f) {
    fac_release(f->from);
    fac_release(f->at);
    fac_release(f->to);
    fac_release(f->reader);
    *f = (flow){ 0 };
}

bool *fac_page_results(const fac_analysis *a) {
    const int n = fac_analysis_totals(a).layers;
    bool *given = fac_alloc((size_t)n + 1, sizeof *given);
    fac_lifetime l;
    for (int k = 0; given && fac_analysis_life(a, k, &l); k++)
        if (l.first >= 0 && l.last == n) given[l.first] = true;
    return given;
}
