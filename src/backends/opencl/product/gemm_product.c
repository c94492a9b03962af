/* Products from problems: see gemm.h. */
#include <string.h>
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/product/gemm.h"
#include "graph/graph_internal.h"
#include "tensor/tensor_internal.h"

static bool add_extra(const fac_opencl *o, const fac_problem *p, int input, fac_gpu_product *r) {
    const fac_dtype t = p->in[input].type.dtype;
    if (r->extras == FAC_GPU_EXTRAS || !*fac_cl_in_memory(t) || (t == FAC_F64 && !o->limits.fp64))
        return false;
    r->input[r->extras] = input;
    r->extra_dtype[r->extras++] = t;
    return true;
}

/* Whether the body can be written; what it makes is what the node makes. */
static bool body_is_known(const fac_opencl *o, const fac_problem *p, fac_gpu_product *r) {
    fac_text text = { 0 };
    r->body = p->node->body[0];
    if ((int)r->body->ninputs != p->nin - p->node->nports + 1 || r->body->noutputs != 1)
        return false;
    if (r->body->outputs[0].value->type.dtype != r->result) return false;
    for (int i = p->node->nports; i < p->nin; i++)
        if (!add_extra(o, p, i, r)) return false;
    const bool good = fac_cl_finish_text(r, o->limits.fp64, false, &text);
    fac_text_free(&text);
    return good;
}

bool fac_cl_product_start(const fac_opencl *o, const fac_problem *p, int bias, fac_gpu_product *r) {
    memset(r, 0, sizeof *r);
    const fac_dtype t = p->in[0].type.dtype;
    if (p->nout != 1 || t == FAC_NONE || !*fac_cl_in_memory(t) || t == FAC_BOOL ||
        p->in[1].type.dtype != t)
        return false;
    if (t == FAC_F64 && !o->limits.fp64) return false;
    r->dtype = t;
    r->result = p->out[0].type.dtype;
    r->alpha = r->beta = 1;
    r->s.batch = r->s.splits = 1;
    for (int k = 0; k < FAC_GPU_BATCH; k++) r->s.z[k] = 1;
    if (fac_dims_count(&p->out[0].type.dims) <= 0) return false;
    if (bias >= 0 && p->in[bias].type.dtype != FAC_NONE) {
        if (!add_extra(o, p, bias, r)) return false;
        r->biased = true;
    }
    return p->node->body[0] ? body_is_known(o, p, r) : r->result == r->dtype;
}
