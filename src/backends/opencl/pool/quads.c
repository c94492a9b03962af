/* Items of four channels, see quads.h. */
#include <string.h>
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/product/gemm.h"
#include "backends/opencl/pool/quads.h"
#include "backends/gpu/speed.h"
#include "graph/graph_internal.h"
#include "tensor/tensor_internal.h"
#include "cl_quads.h"
#include "tensor/dtype.h"

bool fac_cl_quad_type(fac_dtype t) { return t == FAC_F32 || fac_dtype_is_half(t); }

bool fac_cl_quad_image(const fac_operand *x) {
    const fac_layout *l = &x->layout;
    const fac_dims *d = &x->type.dims;
    if (d->n != 4 || l->block || !fac_cl_quad_type(x->type.dtype) || d->d[1] % 4 || l->offset % 4)
        return false;
    if (l->stride[1] != 1) return false;
    for (int k = 0; k < 4; k++)
        if (k != 1 && l->stride[k] % 4 && d->d[k] > 1) return false;
    double reach = 0; /* places within an image are numbers of 32 bits */
    for (int k = 1; k < 4; k++) reach += (double)d->d[k] * (double)l->stride[k];
    return reach < INT32_MAX;
}

void fac_cl_quad_lay(fac_operand *x) {
    const fac_dims *d = &x->type.dims;
    if (fac_cl_quad_image(x)) return;
    x->layout = fac_layout_plain(d);
    x->layout.stride[1] = 1;
    x->layout.stride[3] = d->d[1];
    x->layout.stride[2] = d->d[1] * d->d[3];
}

/* ---- tails ---- */

static bool add_extra(const fac_opencl *o, fac_problem *p, int input, fac_cl_tail *t) {
    fac_operand *x = &p->in[input];
    int64_t step[FAC_DIMS];
    const fac_dims *y = &p->out[0].type.dims;
    if (t->extras == FAC_CL_TAILS || !fac_cl_has(o, x->type.dtype)) return false;
    if (x->layout.block) x->layout = fac_layout_plain(&x->type.dims);
    if (!fac_gpu_strides(x, y, step)) return false;
    /* images that lie otherwise are brought into the order of the result */
    const bool image = x->type.dims.n == 4 && x->type.dims.d[1] == y->d[1] && step[1] != 1;
    if (image && !(x->type.dims.d[0] == 1 && x->type.dims.d[2] == 1 && x->type.dims.d[3] == 1)) {
        fac_cl_quad_lay(x);
        fac_gpu_strides(x, y, step);
    }
    if (step[1] > 1) return false;
    const int k = t->extras++;
    t->input[k] = input;
    t->dtype[k] = x->type.dtype;
    t->along[k] = step[1] == 1;
    const bool fours =
        x->layout.offset % 4 == 0 && step[0] % 4 == 0 && step[2] % 4 == 0 && step[3] % 4 == 0;
    t->step[k][0] = step[0];
    t->step[k][1] = step[2];
    t->step[k][2] = step[3];
    return !t->along[k] || (fours && fac_cl_quad_type(x->type.dtype));
}

bool fac_cl_tail_read(const fac_opencl *o, fac_problem *p, int bias, fac_cl_tail *t) {
    memset(t, 0, sizeof *t);
    t->body = p->node->body[0];
    t->from = p->in[0].type.dtype;
    t->result = p->out[0].type.dtype;
    if (bias >= 0 && p->in[bias].type.dtype != FAC_NONE) {
        fac_operand *b = &p->in[bias]; /* one number for each channel, in a row */
        if (!fac_cl_quad_type(b->type.dtype)) return false;
        if (b->layout.stride[0] != 1 || b->layout.offset % 4)
            b->layout = fac_layout_plain(&b->type.dims);
        t->input[0] = bias;
        t->dtype[0] = b->type.dtype;
        t->along[0] = t->biased = true;
        t->extras = 1;
    }
    if (!t->body) return t->from == t->result;
    if ((int)t->body->ninputs != p->nin - p->node->nports + 1 || t->body->noutputs != 1)
        return false;
    if (t->body->outputs[0].value->type.dtype != t->result || !fac_cl_quad_type(t->result))
        return false;
    for (int i = p->node->nports; i < p->nin; i++)
        if (!add_extra(o, p, i, t)) return false;
    fac_text text = { 0 };
    const bool good = fac_cl_tail_text(t, o->limits.fp64, &text);
    fac_text_free(&text);
    return good;
}

/* The number that extra i has for the element, or for lane "xyzw" of four. */
static void add_value(const fac_cl_tail *t, int i, fac_text *to) {
    const fac_dtype d = t->dtype[i];
    if (fac_cl_quad_type(d))
        fac_text_print(to, "e%d", i);
    else
        fac_text_print(to, "(%s)e%d", fac_cl_computing(d), i);
}

/* One element: bias, rounding to the type that the body reads, body. */
static bool add_finish(const fac_cl_tail *t, bool fp64, fac_text *to) {
    fac_text functions = { 0 }, body = { 0 }, in[FAC_CL_TAILS] = { { 0 } };
    const char *names[FAC_CL_TAILS + 1] = { "whole" };
    bool good = true;
    for (int i = t->biased, n = 1; i < t->extras; i++, n++) {
        add_value(t, i, &in[i]);
        names[n] = in[i].s ? in[i].s : "";
    }
    if (t->body)
        good = fac_cl_body_text(t->body, names, fp64, &functions, &body);
    else
        fac_text_add(&body, "    const float result = whole;\n");
    fac_text_add(to, functions.s ? functions.s : "");
    fac_text_add(to, "static inline float finish(float x");
    for (int i = 0; i < t->extras; i++)
        fac_text_print(to, ", const %s e%d", t->along[i] ? "float" : fac_cl_computing(t->dtype[i]),
                       i);
    fac_text_add(to, ") {\n");
    if (t->biased) fac_text_add(to, "    x += e0;\n");
    if (t->from == FAC_F32)
        fac_text_add(to, "    const float whole = x;\n");
    else
        fac_text_print(to, "    const float whole = fac_round_%s(x);\n", fac_cl_tag(t->from));
    fac_text_add(to, body.s ? body.s : "");
    fac_text_add(to, "    return result;\n}\n");
    for (int i = 0; i < FAC_CL_TAILS; i++) {
        to->failed |= in[i].failed;
        fac_text_free(&in[i]);
    }
    to->failed |= functions.failed | body.failed;
    fac_text_free(&functions), fac_text_free(&body);
    return good;
}

/* Where the four of extra i begin, that differ by pixel or not. */
static void add_place(const fac_cl_tail *t, int i, fac_text *to) {
    static const char *const pixel[] = { "n", "h", "w" };
    static const char *const index[] = { "image", "p", "q" };
    fac_text_print(to, "e%d + s.e%d", i, i);
    for (int k = 0; k < 3; k++)
        if (t->step[i][k]) fac_text_print(to, " + (%s) * s.e%d_step.%s", index[k], i, pixel[k]);
    if (t->along[i]) fac_text_add(to, " + (channel)");
}

static bool still(const fac_cl_tail *t, int i) {
    return !t->step[i][0] && !t->step[i][1] && !t->step[i][2];
}

static void add_read(const fac_cl_tail *t, int i, fac_text *to) {
    if (t->along[i])
        fac_text_print(to, "LOAD4(%s, ", fac_cl_tag(t->dtype[i]));
    else if (fac_cl_quad_type(t->dtype[i]))
        fac_text_print(to, "LOAD1(%s, ", fac_cl_tag(t->dtype[i]));
    else
        fac_text_add(to, "*(");
    add_place(t, i, to);
    fac_text_add(to, t->along[i] || !fac_cl_quad_type(t->dtype[i]) ? ")" : ", 0)");
}

bool fac_cl_tail_text(const fac_cl_tail *t, bool fp64, fac_text *to) {
    static const char lane[] = "xyzw";
    fac_text_add(to, "#define EXTRA_PLACES");
    for (int i = 0; i < t->extras; i++) fac_text_print(to, " long e%d;", i);
    fac_text_add(to, "\n#define EXTRA_STEPS");
    for (int i = 0; i < t->extras; i++) fac_text_print(to, " steps e%d_step;", i);
    fac_text_add(to, "\n#define EXTRA_PARAMS");
    for (int i = 0; i < t->extras; i++) /* what is added may be what is written: not restrict */
        fac_text_print(to, " , global const %s *%s e%d", fac_cl_in_memory(t->dtype[i]),
                       still(t, i) ? "restrict" : "", i);
    fac_text_add(to, "\n#define EXTRA_ONCE const int channel = at.channel; (void)channel;");
    for (int i = 0; i < t->extras; i++) {
        if (!still(t, i)) continue;
        fac_text_print(
            to, " const %s o%d = ", t->along[i] ? "float4" : fac_cl_computing(t->dtype[i]), i);
        add_read(t, i, to);
        fac_text_add(to, ";");
    }
    fac_text_add(to, "\n#define FINISH(v, image, p, q, channel) finish4(v");
    for (int i = 0; i < t->extras; i++) {
        fac_text_add(to, ", ");
        if (still(t, i))
            fac_text_print(to, "o%d", i);
        else
            add_read(t, i, to);
    }
    fac_text_add(to, ")\n");
    const bool good = add_finish(t, fp64, to);
    fac_text_add(to, "static inline float4 finish4(float4 x");
    for (int i = 0; i < t->extras; i++)
        fac_text_print(to, ", const %s e%d", t->along[i] ? "float4" : fac_cl_computing(t->dtype[i]),
                       i);
    fac_text_add(to, ") {\n    return (float4)(");
    for (int k = 0; k < 4; k++) {
        fac_text_print(to, "%sfinish(x.%c", k ? ", " : "", lane[k]);
        for (int i = 0; i < t->extras; i++)
            if (t->along[i])
                fac_text_print(to, ", e%d.%c", i, lane[k]);
            else
                fac_text_print(to, ", e%d", i);
        fac_text_add(to, ")");
    }
    fac_text_add(to, ");\n}\n");
    return good && !to->failed;
}

void fac_cl_tail_buffers(const fac_cl_tail *t, const fac_problem *p, fac_cl_call *c) {
    for (int i = 0; i < t->extras; i++) fac_cl_call_in(c, p, t->input[i]);
}

void fac_cl_tail_numbers(const fac_cl_tail *t, fac_cl_call *c) {
    for (int i = 0; i < t->extras; i++)
        for (int k = 0; k < 3; k++) fac_cl_call_number(c, t->step[i][k]);
}

/* ---- tiles ---- */

enum { LANES = 16, FEW_LANES = 6, ITEMS = 1536, FEW_TURNS = 4 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static const struct {
    int rows, columns, group, goes;
} cuts[FAC_CL_QUAD_VARIANTS + 1] = {
    { 0, 0, 0, 0 },   { 2, 4, 256, 0 }, { 2, 4, 128, 0 }, { 4, 4, 128, 0 }, { 1, 4, 128, 0 },
    { 2, 2, 128, 0 }, { 4, 2, 128, 0 }, { 1, 2, 64, 0 },  { 1, 1, 64, 0 },  { 8, 2, 128, 0 },
    { 8, 4, 128, 0 }, { 4, 2, 256, 0 }, { 4, 4, 64, 0 },  { 2, 4, 128, 1 }, { 2, 4, 256, 1 },
    { 2, 2, 128, 1 }, { 2, 2, 256, 1 }, { 1, 7, 128, 0 }, { 1, 7, 64, 0 },  { 2, 7, 128, 0 }
};

/* Fours of channels that a group takes: all, or a number that leaves none idle, if there is one. */
static int lanes_of(int64_t fours, int most) {
    if (fours <= most) return (int)fours;
    for (int n = most; n >= FEW_LANES && n > most / 2; n--)
        if (fours % n == 0) return n;
    return most <= FEW_LANES ? most : most / 2;
}

/* Rows of the image in a group's tiles, as evenly as can be, and so many turns that all units have
 * work. */
static bool go_down(const fac_opencl *o, int64_t tiles, int64_t wide, int64_t H, fac_cl_tiling *q) {
    const double columns = (double)(q->N * (q->C / 4) * wide),
                 want = ITEMS * (double)o->limits.units / columns;
    q->across = (int)fac_gpu_parts(wide, fac_gpu_parts(wide, tiles));
    const int64_t most = fac_gpu_parts(H, FEW_TURNS * q->rows);
    int64_t strips = want < (double)most ? (int64_t)(want + 0.5) : most;
    if (want < 1) strips = 1;
    q->down_rows = fac_gpu_parts(fac_gpu_parts(H, strips), q->rows) * q->rows;
    q->down = (int)least(tiles / q->across, fac_gpu_parts(H, q->down_rows));
    return fac_gpu_parts(H, q->down_rows * q->down) <= 65535;
}

bool fac_cl_tiling_cut(const fac_opencl *o, int variant, fac_cl_tiling *q) {
    const int64_t H = q->grad_x ? q->h.in : q->h.out;
    const int64_t W = q->grad_x ? q->w.in : q->w.out;
    const int64_t fours = q->C / 4, sr = q->grad_x ? q->h.stride : 1,
                  ss = q->grad_x ? q->w.stride : 1;
    const double work = (double)q->N * (double)H * (double)W * (double)fours,
                 full = 1024.0 * o->limits.units;
    if (variant < 0 || variant > FAC_CL_QUAD_VARIANTS || sr > 4 || ss > 4 || q->N > 65535)
        return false;
    int k = work >= full / 2 ? 7 : 8;
    if (work >= full) k = q->favourite;
    if (variant) k = variant;
    q->rows = (int)(fac_gpu_parts(cuts[k].rows, sr) * sr);
    q->columns = (int)(fac_gpu_parts(cuts[k].columns, ss) * ss);
    q->group = cuts[k].group;
    if ((size_t)q->group > o->limits.group) q->group = (int)o->limits.group;
    if (!q->most || q->most > LANES) q->most = LANES;
    if (q->most < 1) return false;
    q->lanes = lanes_of(fours, q->most);
    const int64_t tiles = q->group / q->lanes, wide = fac_gpu_parts(W, q->columns),
                  high = fac_gpu_parts(H, q->rows);
    if (tiles < 1 || (cuts[k].goes && !q->goes)) return false;
    if (cuts[k].goes) return go_down(o, tiles, wide, H, q);
    double best = 0;
    for (int64_t across = 1; across <= tiles && across <= wide; across++) {
        const int64_t down = least(tiles / across, high);
        const double used =
            (double)(wide * high) /
            (double)(fac_gpu_parts(wide, across) * across * fac_gpu_parts(high, down) * down) *
            (double)(across * down) / (double)tiles;
        /* what neighbouring groups read twice comes out of a cache farther away */
        const double rim =
            (1 + 2.0 / (double)(across * q->columns)) * (1 + 2.0 / (double)(down * q->rows));
        if (used / rim <= best) continue;
        best = used / rim;
        q->across = (int)across;
        q->down = (int)down;
    }
    return fac_gpu_parts(high, q->down) <= 65535;
}

void fac_cl_tiling_text(const fac_cl_tiling *q, fac_dtype in, fac_dtype out, fac_text *to) {
    const struct {
        const char *name;
        int64_t x;
    } numbers[] = { { "KR", q->h.kernel }, { "KS", q->w.kernel },   { "SR", q->h.stride },
                    { "SS", q->w.stride }, { "DR", q->h.dilation }, { "DS", q->w.dilation },
                    { "PAD_R", q->h.pad }, { "PAD_S", q->w.pad },   { "TP", q->rows },
                    { "TQ", q->columns },  { "GROUP", q->group },   { "LANES", q->most } };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        fac_text_print(to, "#define %s %lld\n", numbers[i].name, (long long)numbers[i].x);
    fac_text_print(to, "#define IN %s\n#define OUT %s\n", fac_cl_tag(in), fac_cl_tag(out));
    if (q->grad_x) fac_text_add(to, "#define GRAD_X\n");
    if (q->ptx) fac_text_add(to, "#define PTX\n");
    fac_text_add(to, fac_kernel_quads);
}

static void add_image(const fac_operand *x, fac_cl_call *c) {
    const fac_dims *d = &x->type.dims;
    const int64_t numbers[] = { d->d[2], d->d[3], x->layout.stride[0], x->layout.stride[2],
                                x->layout.stride[3] };
    for (int i = 0; i < 5; i++) fac_cl_call_number(c, numbers[i]);
}

static int64_t blocks_of(const fac_cl_tiling *q) { return fac_gpu_parts(q->C / 4, q->lanes); }

void fac_cl_tiling_numbers(const fac_cl_tiling *q, const fac_operand *in, const fac_operand *out,
                           fac_cl_call *c) {
    const int64_t numbers[] = { q->C, q->lanes, blocks_of(q), q->across, q->down };
    for (int i = 0; i < 5; i++) fac_cl_call_number(c, numbers[i]);
    add_image(in, c);
    add_image(out, c);
}

void fac_cl_tiling_range(const fac_cl_tiling *q, fac_cl_call *c) {
    const int64_t H = q->grad_x ? q->h.in : q->h.out;
    const int64_t W = q->grad_x ? q->w.in : q->w.out;
    const int64_t wide = fac_gpu_parts(fac_gpu_parts(W, q->columns), q->across);
    const int64_t high = fac_gpu_parts(H, (q->down_rows ? q->down_rows : q->rows) * q->down);
    c->range =
        (fac_cl_range){ 3,
                        { (size_t)(blocks_of(q) * wide * q->group), (size_t)high, (size_t)q->N },
                        { (size_t)q->group, 1, 1 } };
}

double fac_cl_streaming(const fac_opencl *o, const fac_problem *p, int launches) {
    double bytes = 0;
    for (int i = 0; i < p->nin + p->nout; i++) {
        const fac_type *t = i < p->nin ? &p->in[i].type : &p->out[i - p->nin].type;
        if (t->dtype != FAC_NONE) bytes += (double)fac_type_bytes(t);
    }
    return fac_gpu_costs.quads_call * launches + bytes / fac_gpu_bandwidth(&o->limits);
}
