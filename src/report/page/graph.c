/* The graph of a model as drawings: one of the whole with modules folded until it fits, and one of
 * each folded module, inside of each other as modules are. */
#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "report/page/drawing.h"
#include "report/page/page_internal.h"
#include "report/page/parts.h"

enum { FIRST_MOST = 44, DRAWN_MOST = 4000, PILLS = 6, READS = 256 };
static const double box_w = 156, box_h = 40, pill_w = 124, pill_h = 22, wide = 1060, margin = 24;

/* What one drawing shows: parts in their order, and around them where data comes from and goes to.
 */
enum { PILL_TEXT = 96 };
typedef struct pill {
    char text[PILL_TEXT];
} pill;
typedef struct picture {
    const fac_page *r;
    const flow *f;
    const char *name; /* path of the module; "" of all */
    part **parts;
    int n, first, last; /* layers, all of the parts together */
    pill in[PILLS], out[PILLS];
    int nin, nout;
    drawing d;
    int room;
} picture;

/* ---- which parts ---- */

/* Instead of part i its children.  There is room for them. */
static int unfold(part **shown, int n, int i) {
    part *p = shown[i];
    memmove(shown + i + p->children, shown + i + 1, (size_t)(n - i - 1) * sizeof *shown);
    for (int k = 0; k < p->children; k++) shown[i + k] = &p->child[k];
    return n + p->children - 1;
}

/* The parts of the first drawing: level by level while they fit, then the ones that cost most. */
static int choose(part *root, part **shown) {
    int n = 1;
    shown[0] = root;
    for (;;) {
        int all = 0, best = -1;
        for (int i = 0; i < n; i++) all += shown[i]->children ? shown[i]->children : 1;
        if (all <= FIRST_MOST || n == 1) {
            int i = n - 1, before = n;
            for (; i >= 0; i--)
                if (shown[i]->children) n = unfold(shown, n, i);
            if (n == before) return n;
            continue;
        }
        for (int i = 0; i < n && n < 8; i++) {
            const bool fits = shown[i]->children && n + shown[i]->children - 1 <= FIRST_MOST;
            if (fits && (best < 0 || shown[i]->macs > shown[best]->macs)) best = i;
        }
        if (best < 0) return n;
        n = unfold(shown, n, best);
    }
}

/* ---- boxes and wires ---- */

static int place_of(const picture *p, int layer) {
    int from = 0, to = p->n - 1;
    while (from < to) {
        const int mid = (from + to + 1) / 2;
        if (p->parts[mid]->first <= layer)
            from = mid;
        else
            to = mid - 1;
    }
    return from;
}

static bool wire_new(picture *p, int from, int to) {
    for (int k = p->d.nwires - 1; k >= 0 && k > p->d.nwires - 64; k--)
        if (p->d.wires[k].from == from && p->d.wires[k].to == to) return true;
    if (p->d.nwires == p->room) {
        const int room = 2 * p->room + 64;
        drawing_wire *more = fac_resize(p->d.wires, (size_t)room, sizeof *more);
        if (!more) return false;
        p->d.wires = more;
        p->room = room;
    }
    p->d.wires[p->d.nwires++] = (drawing_wire){ .from = from, .to = to };
    return true;
}

static int pill_at(pill *all, int *n, const char *name) {
    for (int k = 0; k < *n; k++)
        if (!strcmp(all[k].text, name)) return k;
    if (*n == PILLS) {
        snprintf(all[PILLS - 1].text, sizeof all->text, "several");
        return PILLS - 1;
    }
    snprintf(all[*n].text, sizeof all[*n].text, "%s", name);
    return (*n)++;
}

/* A layer outside as seen from here: its path down to where it leaves ours, so from layer1.0 all of
 * layer1.1 is one thing. */
static const char *outside(const picture *p, int layer, char to[PILL_TEXT]) {
    const char *path = fac_page_layer_name(fac_analysis_layer(p->r->a, layer));
    size_t n = 0;
    do n += strcspn(path + n, ".") + 1;
    while (path[n - 1] && !strncmp(path, p->name, n - 1) &&
           (p->name[n - 1] == '.' || !p->name[n - 1]));
    snprintf(to, PILL_TEXT, "%.*s", (int)(n - 1), path);
    return to;
}

/* Where data comes from: a layer, or an input of the model. */
static int source_pill(picture *p, const fac_alive *from) {
    char text[PILL_TEXT];
    return pill_at(p->in, &p->nin,
                   from->layer >= 0 ? outside(p, from->layer, text)
                   : from->name     ? from->name
                                    : "input");
}

static int reader_pill(picture *p, int layer) {
    char text[PILL_TEXT];
    return pill_at(p->out, &p->nout, outside(p, layer, text));
}

static const char *given_name(const picture *p) {
    const fac_graph *g = fac_analysis_graph(p->r->a);
    return fac_graph_outputs(g) == 1 ? fac_graph_output_name(g, 0) : "outputs";
}

/* Pills are found first: inputs are the boxes in front, outputs those after. */
static void find_pills(picture *p, const bool *given) {
    fac_alive reads[READS];
    for (int i = p->first; i <= p->last; i++) {
        const int n = fac_analysis_reads(p->r->a, i, reads, READS);
        for (int k = 0; k < n && k < READS; k++)
            if (reads[k].layer < p->first) source_pill(p, &reads[k]);
        for (int k = p->f->to[i]; k < p->f->to[i + 1]; k++)
            if (p->f->reader[k] > p->last) reader_pill(p, p->f->reader[k]);
        if (given[i]) pill_at(p->out, &p->nout, given_name(p));
    }
}

static bool add_wires(picture *p, const bool *given) {
    fac_alive reads[READS];
    for (int i = p->first; i <= p->last; i++) {
        const int n = fac_analysis_reads(p->r->a, i, reads, READS), to = p->nin + place_of(p, i),
                  outputs_at = p->nin + p->n;
        for (int k = 0; k < n && k < READS; k++) {
            const int from = reads[k].layer >= p->first ? p->nin + place_of(p, reads[k].layer)
                                                        : source_pill(p, &reads[k]);
            if (from != to && !wire_new(p, from, to)) return false;
        }
        for (int k = p->f->to[i]; k < p->f->to[i + 1]; k++)
            if (p->f->reader[k] > p->last &&
                !wire_new(p, to, outputs_at + reader_pill(p, p->f->reader[k])))
                return false;
        if (given[i] && !wire_new(p, to, outputs_at + pill_at(p->out, &p->nout, given_name(p))))
            return false;
    }
    return true;
}

static bool lay_out(picture *p, const bool *given) {
    find_pills(p, given);
    const int n = p->nin + p->n + p->nout;
    p->d.boxes = fac_alloc((size_t)n + 1, sizeof *p->d.boxes);
    if (!p->d.boxes) return false;
    p->d.nboxes = n;
    for (int i = 0; i < n; i++) {
        const bool round = i < p->nin || i >= p->nin + p->n;
        p->d.boxes[i].w = round ? pill_w : box_w;
        p->d.boxes[i].h = round ? pill_h : box_h;
    }
    return add_wires(p, given) && fac_drawing_find(&p->d, wide);
}

/* ---- SVG ---- */

/* The end of a name is what tells it from others. */
static const char *shortened(const char *name, int most, char *to, size_t size) {
    const int n = (int)strlen(name);
    if (n <= most)
        snprintf(to, size, "%s", name);
    else {
        const char *s = name + n - most + 1;
        while ((*s & 0xc0) == 0x80) s++;
        snprintf(to, size, "\xe2\x80\xa6%s", s);
    }
    return to;
}

/* Down from a, to the channel, up in it, and down to b: with rounded corners. */
static void turn(fac_text *to, drawing_point a, drawing_point b, double right) {
    const double low = a.y + 14, top = b.y - 20, r = 6;
    fac_html(to, "V%.1fQ%.1f %.1f %.1f %.1fH%.1f", low - r, a.x, low, a.x + r, low, right - r);
    fac_html(to, "Q%.1f %.1f %.1f %.1fV%.1f", right, low, right, low - r, top + r);
    fac_html(to, "Q%.1f %.1f %.1f %.1fH%.1f", right, top, right + r, top, b.x - r);
    fac_html(to, "Q%.1f %.1f %.1f %.1fV%.1f", b.x, top, b.x, top + r, b.y);
}

/* Within a column a curve; to the next one around the boxes: down, into the channel, up, and in
 * from above. */
static void wire(fac_text *to, const drawing *d, const drawing_wire *w) {
    const drawing_point *p = &d->at[w->first];
    fac_html(to, "<path class=\"wire\" d=\"M%.1f %.1f", p->x, p->y);
    for (int k = 1; k < w->count; k++) {
        const drawing_point a = p[k - 1], b = p[k];
        const double mid = (a.y + b.y) / 2;
        if (k % 2 == 0)
            fac_html(to, "V%.1f", b.y); /* past a rank */
        else if (a.column != b.column)
            turn(to, a, b, d->right[a.column]);
        else
            fac_html(to, "C%.1f %.1f %.1f %.1f %.1f %.1f", a.x, mid, b.x, mid, b.x, b.y);
    }
    fac_text_add(to, "\" marker-end=\"url(#tip-of-wire)\"/>\n");
}

static void layer_box(fac_text *to, const picture *p, const part *q, double x, double y) {
    const fac_layer *l = fac_analysis_layer(p->r->a, q->first);
    const fac_graph *g = fac_analysis_graph(p->r->a);
    char dims[128], kernel[64], text[256], macs[32], params[32];
    fac_dims taps = { 0 };
    for (int k = 2; k < l->kernel.n && !strncmp(l->op, "conv", 4); k++)
        taps.d[taps.n++] = l->kernel.d[k];
    snprintf(text, sizeof text, "%s%s%s", l->kind, taps.n ? " " : "",
             taps.n ? fac_dims_text(g, &taps, kernel, sizeof kernel) : "");
    fac_page_dims(g, &l->out, dims, sizeof dims);
    fac_html(to, "<g class=\"box %s\" data-key=\"%s\">", fac_page_layer_class(l), l->name);
    fac_html(to, "<title>%s\n%s %s\n", fac_page_layer_name(l), l->kind, l->attrs);
    if (l->in.dtype != FAC_NONE)
        fac_html(to, "input %s %s\n", fac_dtype_get(l->in.dtype)->name,
                 fac_dims_text(g, &l->in.dims, kernel, sizeof kernel));
    if (l->kernel.n)
        fac_html(to, "weights %s\n", fac_dims_text(g, &l->kernel, kernel, sizeof kernel));
    const char *dtype = l->out.dtype == FAC_NONE ? "" : fac_dtype_get(l->out.dtype)->name;
    fac_html(to, "output %s %s\n%s multiply-adds, %s parameters</title>", dtype, dims,
             fac_count_text(l->macs, macs, sizeof macs),
             fac_count_text(l->params, params, sizeof params));
    fac_page_svg_rect(to, "body", x, y, box_w, box_h, 5);
    fac_page_svg_rect(to, "stripe", x, y, 4, box_h, 2);
    fac_page_svg_text(to, "kind", x + 12, y + 17, "start", text);
    fac_page_svg_text(to, "dims", x + 12, y + 32, "start", shortened(dims, 22, text, sizeof text));
    fac_text_add(to, "</g>\n");
}

static void part_box(fac_text *to, const picture *p, const part *q, double x, double y) {
    char macs[32], params[32], text[128];
    const double share = fac_page_ratio(q->macs, p->r->t.macs);
    fac_html(to, "<a class=\"box module\" href=\"#part-%d\" data-key=\"%s\">", q->id, q->name);
    fac_html(to, "<title>%s: %d layers\n%s multiply-adds (%.1f %%), %s parameters</title>", q->name,
             q->last - q->first + 1, fac_count_text(q->macs, macs, sizeof macs), 100 * share,
             fac_count_text(q->params, params, sizeof params));
    fac_page_svg_rect(to, "body", x + 4, y + 4, box_w, box_h, 5);
    fac_page_svg_rect(to, "body", x, y, box_w, box_h, 5);
    fac_page_svg_rect(to, "load", x + 2, y + box_h - 5, (box_w - 4) * share, 3, 1.5);
    const size_t above = strlen(p->name); /* inside of a module its own path goes without saying */
    const bool inner = above && !strncmp(q->name, p->name, above) && q->name[above] == '.';
    fac_page_svg_text(to, "kind", x + 12, y + 16, "start",
                      shortened(q->name + (inner ? above + 1 : 0), 18, text, sizeof text));
    snprintf(text, sizeof text, "%d layers \xc2\xb7 %s", q->last - q->first + 1, macs);
    fac_page_svg_text(to, "dims", x + 12, y + 30, "start", text);
    fac_text_add(to, "</a>\n");
}

static void pill_box(fac_text *to, const pill *q, const drawing_box *b) {
    char text[128];
    fac_html(to, "<g class=\"pill\"><title>%s</title>", q->text);
    fac_page_svg_rect(to, "", b->x - b->w / 2, b->y, b->w, b->h, 11);
    fac_page_svg_text(to, "", b->x, b->y + 15, "middle", shortened(q->text, 17, text, sizeof text));
    fac_text_add(to, "</g>\n");
}

static void draw(fac_text *to, const picture *p, const char *name) {
    const drawing *d = &p->d;
    const double w = d->width + 2 * margin,
                 h = d->height + 2 * margin; /* wires turn into the next column there */
    fac_html(to,
             "<figure class=\"scroll\"><svg class=\"net\" viewBox=\"%.0f %.0f %.0f %.0f\" "
             "width=\"%.0f\" height=\"%.0f\" ",
             -margin, -margin, w, h, w, h);
    fac_html(to, "role=\"group\" aria-label=\"Graph of %s: %d boxes\">\n", name, d->nboxes);
    for (int k = 0; k < d->nwires; k++) wire(to, d, &d->wires[k]);
    for (int i = 0; i < d->nboxes; i++) {
        const drawing_box *b = &d->boxes[i];
        if (i < p->nin)
            pill_box(to, &p->in[i], b);
        else if (i >= p->nin + p->n)
            pill_box(to, &p->out[i - p->nin - p->n], b);
        else if (p->parts[i - p->nin]->children)
            part_box(to, p, p->parts[i - p->nin], b->x - b->w / 2, b->y);
        else
            layer_box(to, p, p->parts[i - p->nin], b->x - b->w / 2, b->y);
    }
    fac_text_add(to, "</svg></figure>\n");
}

/* ---- one in another ---- */

typedef struct album {
    const fac_page *r;
    flow f;
    bool *given;
    int ids, drawn;
} album;

static bool show(fac_text *to, album *a, part **parts, int n, const char *name, const char *label) {
    picture p = { .r = a->r,
                  .f = &a->f,
                  .name = name,
                  .parts = parts,
                  .n = n,
                  .first = parts[0]->first,
                  .last = parts[n - 1]->last };
    for (int i = 0; i < n; i++)
        if (parts[i]->children) parts[i]->id = ++a->ids;
    bool good = lay_out(&p, a->given);
    if (good) draw(to, &p, label);
    fac_drawing_free(&p.d);
    a->drawn += n;
    fac_text_add(to, "<div class=\"parts\">\n");
    for (int i = 0; i < n && good; i++) {
        part *q = parts[i], *inside[PARTS_MOST];
        char macs[32];
        if (!q->children) continue;
        fac_html(to,
                 "<details class=\"part\" id=\"part-%d\"><summary><b>%s</b> %d layers, %s "
                 "MACs</summary>\n",
                 q->id, q->name, q->last - q->first + 1,
                 fac_count_text(q->macs, macs, sizeof macs));
        for (int k = 0; k < q->children; k++) inside[k] = &q->child[k];
        if (a->drawn < DRAWN_MOST)
            good = show(to, a, inside, q->children, q->name, q->name);
        else
            fac_html(
                to,
                "<p class=\"note\">Left out: a page has room for %d boxes; the table of modules "
                "has all layers.</p>\n",
                DRAWN_MOST);
        fac_text_add(to, "</details>\n");
    }
    fac_text_add(to, "</div>\n");
    return good;
}

static void legend(fac_text *to) {
    static const char *const names[][2] = { { "mac", "convolutions, products" },
                                            { "norm", "norms" },
                                            { "act", "activations" },
                                            { "pool", "pools, means" },
                                            { "other", "other arithmetic" },
                                            { "move", "moves data" },
                                            { "module", "folded module: open it" } };
    fac_text_add(to, "<ul class=\"legend\">");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        fac_html(to, "<li class=\"%s\">%s</li>", names[k][0], names[k][1]);
    fac_text_add(
        to,
        "</ul>\n<svg width=\"0\" height=\"0\" aria-hidden=\"true\" class=\"defs\"><defs><marker "
        "id=\"tip-of-wire\" "
        "viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" "
        "markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0.8L7.5 4L0 "
        "7.2Z\"/></marker></defs></svg>\n");
}

bool fac_section_graph(fac_text *to, const fac_page *r) {
    part root;
    part *shown[FIRST_MOST + PARTS_MOST];
    album a = { .r = r, .given = fac_page_results(r->a) };
    bool good = fac_page_parts_find(r->a, &root) && a.given;
    if (good && !root.children) {
        fac_page_parts_free(&root);
        fac_release(a.given);
        return true;
    }
    good = good && fac_page_flow_find(r->a, &a.f);
    fac_page_section_start(
        to, "graph", "Graph",
        "From top to bottom, and in columns from left to right.  The bar in a folded module is "
        "its share of all multiply-adds.");
    legend(to);
    if (good) good = show(to, &a, shown, choose(&root, shown), "", r->name);
    fac_page_section_end(to);
    fac_page_flow_free(&a.f);
    fac_release(a.given);
    fac_page_parts_free(&root);
    return good;
}
