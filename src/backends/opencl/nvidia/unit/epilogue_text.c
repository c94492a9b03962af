/* The text of what is done to four sums: see epilogue.h. */
#include <string.h>
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/nvidia/unit/epilogue.h"
#include "base/optional.h"
#include "cl_nv_epilogue.h"
#include "tensor/dtype.h"

static const char *name_of(fac_dtype t) {
    if (t == FAC_F16) return "f16";
    return t == FAC_BF16 ? "bf16" : "f32";
}

static bool moves_alike(const fac_nv_place *a, const fac_nv_place *b) {
    return !fac_nv_is_thin(a) && a->image == b->image && a->depth == b->depth && a->row == b->row &&
           a->column == b->column;
}

static bool is_bits(fac_dtype t) { return t == FAC_U8; }

/* Four elements of y for each byte. */
static bool moves_by_bits(const fac_nv_place *a, const fac_nv_place *y) {
    return 4 * a->image == y->image && 4 * a->depth == y->depth && 4 * a->row == y->row &&
           4 * a->column == y->column;
}

static void add_declarations(const fac_gpu_product *r, const fac_nv_ends *e, fac_text *to) {
    fac_text_print(to, "#define RESULT %s\n#define EXTRAS %d\n#define EXTRA_PARAMS",
                   fac_cl_in_memory(r->result), r->extras);
    for (int i = 0; i < r->extras; i++)
        fac_text_print(to, " , global const %s *e%d", fac_cl_in_memory(r->extra_dtype[i]), i);
    fac_text_add(to, "\n#define EXTRA_ARGS");
    for (int i = 0; i < r->extras; i++) fac_text_print(to, " , e%d", i);
    int moving = 0;
    for (int i = 0; i < r->extras; i++) moving += !fac_nv_is_still(&e->p[1 + i]);
    fac_text_print(to,
                   "\n#define MOVING %d\ntypedef struct { long at; int image, depth, row, column, "
                   "channel, apart; } place;\n"
                   "typedef struct { place p[%d]; } ends;\ntypedef struct { int at[%d]; } spot;\n"
                   "typedef struct { float v[%d][4]; } more;\n",
                   moving, 1 + r->extras, 1 + r->extras, r->extras ? r->extras : 1);
    fac_text_add(
        to,
        "INLINE int place_of(const place *p, int image, int depth, int row, int column) {\n"
        "    return image * p->image + depth * p->depth + row * p->row + column * p->column;\n}\n"
        "INLINE spot spot_of(const ends *e, int image, int depth, int row, int column) {\n    spot "
        "s;\n"
        "    s.at[0] = place_of(&e->p[0], image, depth, row, column);\n");
    for (int i = 0; i < r->extras; i++) {
        if (fac_nv_is_still(&e->p[1 + i]))
            fac_text_print(to, "    s.at[%d] = 0;\n", 1 + i);
        else if (moves_alike(&e->p[1 + i], &e->p[0]))
            fac_text_print(to, "    s.at[%d] = s.at[0];\n", 1 + i);
        else if (is_bits(r->extra_dtype[i]) && moves_by_bits(&e->p[1 + i], &e->p[0]))
            fac_text_print(to, "    s.at[%d] = s.at[0] >> 2;\n", 1 + i);
        else if (fac_nv_is_thin(&e->p[1 + i]))
            fac_text_print(to,
                           "    s.at[%d] = (uint)row %% %du | (uint)column %% %du ? -1 : "
                           "place_of(&e->p[%d], image, depth, "
                           "(int)((uint)row / %du), (int)((uint)column / %du));\n",
                           1 + i, e->p[1 + i].apart, e->p[1 + i].apart, 1 + i, e->p[1 + i].apart,
                           e->p[1 + i].apart);
        else
            fac_text_print(to, "    s.at[%d] = place_of(&e->p[%d], image, depth, row, column);\n",
                           1 + i, 1 + i);
    }
    fac_text_add(to, "    return s;\n}\n");
}

/* still: of those that are the same for all pixels. */
static void add_loads(const fac_gpu_product *r, const fac_nv_ends *e, bool still, fac_text *to) {
    fac_text_print(to, "INLINE void %s(const ends *e%s, int c, more *m EXTRA_PARAMS) {\n",
                   still ? "more_of_channels" : "more_of_pixel",
                   fac_text_if(!still, ", const spot *s"));
    for (int i = 0; i < r->extras; i++) {
        const char *name = name_of(r->extra_dtype[i]);
        const fac_nv_place *p = &e->p[1 + i];
        const fac_nv_run run = fac_nv_run_of(p);
        if (fac_nv_is_still(p) != still) continue;
        if (is_bits(r->extra_dtype[i])) {
            fac_text_print(to, "    m->v[%d][0] = as_float((uint)e%d[e->p[%d].at + (c >> 2)", i, i,
                           1 + i);
            if (!still) fac_text_print(to, " + s->at[%d]", 1 + i);
            fac_text_add(to, "]);\n");
            continue;
        }
        if (fac_nv_is_thin(p))
            fac_text_print(to,
                           "    UNROLL for (int k = 0; k < 4; k++) m->v[%d][k] = 0;\n    if "
                           "(s->at[%d] >= 0)\n",
                           i, 1 + i);
        fac_text_print(to, "    {\n        global const %s *x = e%d + e->p[%d].at",
                       fac_cl_in_memory(r->extra_dtype[i]), i, 1 + i);
        if (!still) fac_text_print(to, " + s->at[%d]", 1 + i);
        if (run == FAC_NV_CHANNELS || run == FAC_NV_FOURS)
            fac_text_print(to, " + c;\n        nv_four_%s(m->v[%d], x);\n", name, i);
        else if (run == FAC_NV_PIXELS)
            fac_text_print(to,
                           ";\n        m->v[%d][0] = m->v[%d][1] = m->v[%d][2] = m->v[%d][3] = "
                           "nv_one_%s(x);\n",
                           i, i, i, i, name);
        else
            fac_text_print(to,
                           " + c * e->p[%d].channel;\n        UNROLL for (int k = 0; k < 4; k++) "
                           "m->v[%d][k] = nv_one_%s(x + k * e->p[%d].channel);\n",
                           1 + i, i, name, 1 + i);
        fac_text_add(to, "    }\n");
    }
    fac_text_add(to, "}\n");
}

/* alpha x + beta bias as an element of the type that y has before the body, then the body. */
static bool add_finish(const fac_gpu_product *r, bool fp64, fac_text *to) {
    fac_text functions = { 0 }, body = { 0 };
    char names[FAC_GPU_EXTRAS][8];
    const char *in[FAC_GPU_EXTRAS + 1] = { "whole" };
    bool good = true;
    for (int i = r->biased, n = 1; i < r->extras; i++, n++) {
        snprintf(names[i], sizeof names[i], "x%d", i);
        in[n] = names[i];
    }
    if (r->body)
        good = fac_cl_body_text(r->body, in, fp64, &functions, &body);
    else
        fac_text_add(&body, "        const float result = whole;\n");
    fac_text_add(to, functions.s ? functions.s : "");
    fac_text_add(to, "INLINE float finish(float x");
    for (int i = 0; i < r->extras; i++) fac_text_print(to, ", float x%d", i);
    fac_text_add(to, ") {\n");
    if (r->alpha != 1) fac_text_print(to, "    x *= (float)%.17g;\n", r->alpha);
    if (r->biased && r->beta != 1)
        fac_text_print(to, "    x += x0 * (float)%.17g;\n", r->beta);
    else if (r->biased)
        fac_text_add(to, "    x += x0;\n");
    if (fac_dtype_is_half(r->dtype) && r->body)
        fac_text_print(to, "    const float whole = fac_round_%s(x);\n", name_of(r->dtype));
    else
        fac_text_add(to, "    const float whole = x;\n");
    fac_text_add(to, body.s ? body.s : "");
    fac_text_add(to, "    return result;\n}\nINLINE void finish4(float *v, const more *m) {\n"
                     "    UNROLL for (int k = 0; k < 4; k++) v[k] = finish(v[k]");
    for (int i = 0; i < r->extras; i++)
        fac_text_print(to, ", m->v[%d][%s]", i, is_bits(r->extra_dtype[i]) ? "0" : "k");
    fac_text_add(to, ");\n}\n");
    to->failed |= functions.failed | body.failed;
    fac_text_free(&functions);
    fac_text_free(&body);
    return good;
}

bool fac_nv_epilogue_text(const fac_gpu_product *r, const fac_nv_ends *e, bool fp64, fac_text *to) {
    fac_text_add(to, fac_kernel_nv_epilogue);
    add_declarations(r, e, to);
    add_loads(r, e, true, to);
    add_loads(r, e, false, to);
    const bool good = add_finish(r, fp64, to);
    fac_text_print(to,
                   "INLINE void store4(const ends *e, const spot *s, int c, const float *v, global "
                   "RESULT *y) {\n"
                   "    nv_put_%s(y + e->p[0].at + s->at[0] + c, v);\n}\n",
                   name_of(r->result));
    return good && !to->failed;
}
