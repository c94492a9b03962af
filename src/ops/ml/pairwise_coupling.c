/* Probabilities of classes from those of pairs: what an SVM with several classes gives.
 * Source: Wu, Lin, Weng, "Probability estimates for multi-class classification by pairwise
 * coupling", JMLR 5 (2004), algorithm 2, with the bounds that libsvm made usual: at most 100
 * rounds, or until no error is above 0.005 / C. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/ml/ml.h"

#if FAC_INTERFACE
/* p [N,C] of r [N,C,C], floats: r_ij is the probability of class i where it is i or j, r_ji = 1 -
 * r_ij; the diagonal is not read.  Each row of p adds up to 1. */
fac_value *fac_pairwise_coupling(fac_value *r);
#endif

enum { ROUNDS = 100 };

static bool infer(fac_node *n) {
    const fac_dims *d = &n->in[0]->type.dims;
    if (d->n != 3 || (d->d[1] >= 0 && d->d[2] >= 0 && d->d[1] != d->d[2]))
        return fac_fail(n, FAC_E_SHAPE, "it must be N,C,C");
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, fac_shape(d->d[0], d->d[1]) };
    return true;
}

/* Q_tt = sum of r_jt^2, Q_tj = -r_jt r_tj. */
static void form(const double *r, int64_t n, double *q) {
    for (int64_t t = 0; t < n; t++) {
        q[t * n + t] = 0;
        for (int64_t j = 0; j < n; j++) {
            if (j == t) continue;
            q[t * n + t] += r[j * n + t] * r[j * n + t];
            q[t * n + j] = -r[j * n + t] * r[t * n + j];
        }
    }
}

static double largest_error(const double *qp, double pqp, int64_t n) {
    double worst = 0;
    for (int64_t t = 0; t < n; t++) worst = fmax(worst, fabs(qp[t] - pqp));
    return worst;
}

static double multiply(const double *q, const double *p, int64_t n, double *qp) {
    double all = 0;
    for (int64_t t = 0; t < n; t++) {
        qp[t] = 0;
        for (int64_t j = 0; j < n; j++) qp[t] += q[t * n + j] * p[j];
        all += p[t] * qp[t];
    }
    return all;
}

/* Class t is set so that its own condition holds, then all are scaled to add up to 1. */
static double improve(const double *q, int64_t t, int64_t n, double *p, double *qp, double pqp) {
    const double own = q[t * n + t], step = own ? (pqp - qp[t]) / own : 0, scale = 1 / (1 + step);
    p[t] += step;
    pqp = (pqp + step * (step * own + 2 * qp[t])) * scale * scale;
    for (int64_t j = 0; j < n; j++) {
        qp[j] = (qp[j] + step * q[t * n + j]) * scale;
        p[j] *= scale;
    }
    return pqp;
}

static void couple(const double *r, int64_t n, double *p, double *q, double *qp) {
    form(r, n, q);
    for (int64_t t = 0; t < n; t++) p[t] = 1.0 / (double)n;
    for (int round = 0; round < ROUNDS; round++) {
        double pqp = multiply(q, p, n, qp);
        if (largest_error(qp, pqp, n) < 0.005 / (double)n) return;
        for (int64_t t = 0; t < n; t++) pqp = improve(q, t, n, p, qp, pqp);
    }
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_dims *d = &r->in[0].type.dims;
    const int64_t n = d->d[1];
    double *q = fac_alloc((size_t)(n * n) + 1, sizeof *q),
           *qp = fac_alloc((size_t)n + 1, sizeof *qp);
    for (int64_t k = 0; q && qp && k < d->d[0]; k++)
        couple(r->in[0].f + k * n * n, n, r->out[0].f + k * n, q, qp);
    const bool room = q && qp;
    fac_release(q);
    fac_release(qp);
    return room ? FAC_OK : fac_raise_memory(err, "%lld classes", (long long)n);
}

static const fac_case cases[] = { { "pairwise_coupling(f32[2,3,3])", 0.05, 0.95, 1e-5 },
                                  { "pairwise_coupling(f64[1,2,2])", 0.05, 0.95, 1e-9 },
                                  { "pairwise_coupling(f32[0,3,3])", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_pairwise_coupling;
const fac_op fac_op_pairwise_coupling = {
    .name = "pairwise_coupling",
    .doc = "probabilities of classes from those of pairs",
    .in = fac_ports_x,
    .out = fac_ports_y,
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_pairwise_coupling(fac_value *r) {
    return fac_emit(&fac_op_pairwise_coupling, NULL, 1, &r);
}
