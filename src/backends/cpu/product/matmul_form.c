/* linear, gemm and matmul in one form: see matmul.h. */
#include "backends/cpu/product/matmul.h"
#include "facula/ops.h"
#include "op_list.h"

static void linear(const fac_problem *p, fac_matmul_form *m) {
    const fac_dims *x = &p->in[0].type.dims, *w = &p->in[1].type.dims;
    m->K = w->d[1];
    m->N = w->d[0];
    m->M = fac_dims_count(x) / m->K;
    m->a_row = m->K;
    m->a_column = 1;
    m->b_row = 1;
    m->b_column = m->K;
}

static void gemm(const fac_problem *p, fac_matmul_form *m) {
    const fac_gemm_opts *o = p->node->attrs;
    const fac_dims *a = &p->in[0].type.dims, *b = &p->in[1].type.dims;
    m->M = a->d[o->trans_a];
    m->K = a->d[!o->trans_a];
    m->N = b->d[!o->trans_b];
    m->a_row = o->trans_a ? 1 : m->K;
    m->a_column = o->trans_a ? m->M : 1;
    m->b_row = o->trans_b ? 1 : m->N;
    m->b_column = o->trans_b ? m->K : 1;
    m->alpha = o->alpha;
    m->beta = o->beta;
}

/* Steps of an operand through the batch: its matrices are contiguous, its dims are right-aligned
 * with those of y. */
static int64_t steps(const fac_dims *d, int64_t matrix, const fac_dims *batch, int64_t *step) {
    int64_t count = 1;
    for (int k = batch->n - 1, o = d->n - 3; k >= 0; k--, o--) {
        int64_t n = o >= 0 ? d->d[o] : 1;
        step[k] = n == 1 ? 0 : count * matrix;
        count *= n;
    }
    return count;
}

bool fac_matmul_takes_a(const fac_problem *p) {
    const fac_operand *a = &p->in[0];
    return FAC_IS(p->node, matmul) && a->type.dims.n == 2 && a->layout.block == 0 &&
           a->layout.stride[0] > 0 && a->layout.stride[1] > 0;
}

static void matmul(const fac_problem *p, fac_matmul_form *m) {
    const fac_dims *a = &p->in[0].type.dims, *b = &p->in[1].type.dims;
    m->K = a->d[a->n - 1];
    m->M = a->n > 1 ? a->d[a->n - 2] : 1;
    m->N = b->n > 1 ? b->d[b->n - 1] : 1;
    m->a_row = m->K;
    m->a_column = 1;
    m->b_row = m->N;
    m->b_column = 1;
    m->batch = p->out[0].type.dims;
    m->batch.n -= (a->n > 1) + (b->n > 1);
    m->b_count = steps(b, m->K * m->N, &m->batch, m->b_step);
    int64_t rows = steps(a, m->M * m->K, &m->batch, m->a_step) * m->M;
    if (m->b_count == 1 && rows == fac_dims_count(&m->batch) * m->M) {
        m->M = rows;
        m->batch.n = 0;
    }
    if (fac_matmul_takes_a(p)) {
        m->a_row = p->in[0].layout.stride[0];
        m->a_column = p->in[0].layout.stride[1];
    }
}

bool fac_matmul_read(const fac_problem *p, fac_dtype type, fac_matmul_form *m) {
    *m = (fac_matmul_form){ .b_count = 1, .alpha = 1, .beta = 1 };
    for (int i = 0; i < p->nin; i++) {
        fac_dtype t = p->in[i].type.dtype;
        if (t != FAC_NONE && (t != type || fac_dims_count(&p->in[i].type.dims) <= 0)) return false;
    }
    if (p->nout != 1 || p->out[0].type.dtype != type || fac_dims_count(&p->out[0].type.dims) <= 0)
        return false;
    const fac_op *op = p->node->op;
    if (op == &fac_op_linear)
        linear(p, m);
    else if (op == &fac_op_gemm)
        gemm(p, m);
    else if (op == &fac_op_matmul)
        matmul(p, m);
    else
        return false;
    m->batches = m->batch.n ? fac_dims_count(&m->batch) : 1;
    if (p->node->nports > 2 && p->in[2].type.dtype) {
        const fac_dims *c = &p->in[2].type.dims;
        int64_t n = m->c_count = fac_dims_count(c), last = c->n ? c->d[c->n - 1] : 1;
        const bool whole = n == m->M * m->N && m->M > 1 && m->N > 1,
                   rows = n == m->M && last == 1 && m->M > 1;
        m->c = rows ? FAC_C_ROWS : FAC_C_COLUMNS;
        if (whole) m->c = FAC_C_WHOLE;
    }
    return true;
}

fac_matmul_place fac_matmul_at(const fac_matmul_form *m, int64_t i) {
    fac_matmul_place at = { 0, 0 };
    for (int k = m->batch.n - 1; k >= 0; i /= m->batch.d[k], k--) {
        at.a += i % m->batch.d[k] * m->a_step[k];
        at.b += i % m->batch.d[k] * m->b_step[k];
    }
    return at;
}

int64_t fac_matmul_packed_c(const fac_matmul_form *m, int lanes) {
    switch (m->c) {
    case FAC_C_COLUMNS:
        return (m->N + lanes - 1) / lanes * lanes;
    case FAC_C_ROWS:
        return m->M;
    case FAC_C_WHOLE:
        return m->M * m->N;
    default:
        return 0;
    }
}

uint64_t fac_matmul_key_c(const fac_matmul_form *m, int lanes) {
    union {
        float f;
        uint32_t u;
    } beta = { .f = (float)m->beta };
    uint64_t key = 2 | (uint64_t)m->c << 2 | (uint64_t)lanes << 8 | (uint64_t)beta.u << 32;
    return key ^ (uint64_t)m->N * 0x9e3779b97f4a7c15u;
}

void fac_matmul_pack_c(const fac_matmul_form *m, int lanes, const float *from, float *to) {
    const bool columns = m->c == FAC_C_COLUMNS;
    const int64_t each = m->c_count == 1 ? 0 : 1;
    for (int64_t k = 0; k < fac_matmul_packed_c(m, lanes); k++)
        to[k] = columns && k >= m->N ? 0 : (float)m->beta * from[k * each];
}
