/* What files spell out is one op before gradients are made: attention, slices, orders of rows; and
 * a step of training gives what it gave. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"
#include "graph/graph_internal.h"
#include "train/train_internal.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

enum { TOKENS = 6, WIDE = 16, HEADS = 2, BATCH = 5, CLASSES = 3, STEPS = 6 };

static fac_value *heads(fac_value *t) {
    return fac_transpose(fac_reshape(t, fac_shape(0, 0, HEADS, WIDE / HEADS)),
                         fac_shape(0, 2, 1, 3));
}

static fac_value *product(fac_value *q, fac_value *k, fac_value *v) {
    fac_graph *g = q->graph;
    fac_value *s =
        fac_mul(fac_matmul(q, fac_transpose(k, fac_shape(0, 1, 3, 2))), fac_number(g, FAC_F32, .3));
    return fac_matmul(fac_softmax(s, -1), v);
}

static fac_value *spelled_gelu(fac_value *x) {
    fac_graph *g = x->graph;
    fac_value *e = fac_erf(fac_mul(x, fac_number(g, FAC_F32, sqrt(.5))));
    return fac_mul(fac_mul(x, fac_add(e, fac_number(g, FAC_F32, 1))), fac_number(g, FAC_F32, .5));
}

/* A block as exporters write it, with tokens before images within it, or with our own ops. */
static fac_graph *block(bool spelled, bool open) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 3);
    fac_value *part[3];
    const int64_t batch = open ? fac_symbol(g, "N") : BATCH;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(batch, TOKENS, WIDE)), *z = x;
    if (spelled) z = fac_transpose(z, fac_shape(1, 0, 2));
    z = fac_nn_linear(z, "qkv", 3 * WIDE);
    if (spelled) z = fac_transpose(z, fac_shape(1, 0, 2));
    z = fac_transpose(fac_reshape(z, fac_shape(0, 0, 3, WIDE)), fac_shape(2, 0, 1, 3));
    for (int k = 0; k < 3; k++)
        part[k] = heads(spelled ? fac_gather(z, fac_number(g, FAC_I64, k), 0)
                                : fac_squeeze(fac_slice(z, 0, k, k + 1, 1), fac_shape(0)));
    const fac_attention_opts how = { .scale = .3 };
    fac_value *y = spelled ? product(part[0], part[1], part[2])
                           : fac_attention(part[0], part[1], part[2], NULL, NULL, NULL, NULL, &how);
    y = fac_reshape(fac_transpose(y, fac_shape(0, 2, 1, 3)), fac_shape(0, 0, WIDE));
    y = fac_add(fac_nn_linear(y, "out", WIDE), x);
    y = fac_nn_linear(y, "wide", 2 * WIDE);
    y = spelled ? spelled_gelu(y) : fac_gelu(y);
    fac_output(g, "logits", fac_nn_linear(fac_mean(y, fac_shape(1), false), "head", CLASSES));
    OK(fac_graph_check(g, err));
    return g;
}

static int count(const fac_graph *g, const char *op) {
    int n = 0;
    for (const fac_node *k = g->first; k; k = k->next)
        n += !strcmp(k->op->name, op) && (k->out[0]->uses || k->out[0]->roots);
    return n;
}

typedef struct course {
    double loss[STEPS];
    int attentions, grads, softmaxes, erfs, gathers;
} course;

static course train(fac_graph *g, fac_dtype mixed, bool forms) {
    fac_device *d;
    fac_trainer *t;
    fac_tensor *x, *labels;
    course c = { .attentions = 0 };
    const fac_trainer_opts o = { .optimizer = "adam", .mixed = mixed };
    int64_t label[BATCH];
    float v[BATCH * TOKENS * WIDE];
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &d, err));
    OK(fac_trainer_new(g, d, &o, &t, err));
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(BATCH, TOKENS, WIDE), &x, err));
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(BATCH), &labels, err));
    for (int k = 0; k < BATCH * TOKENS * WIDE; k++) v[k] = (float)sin(.7 * k) * 1.5f;
    for (int k = 0; k < BATCH; k++) label[k] = k % CLASSES;
    OK(fac_tensor_write(x, v, sizeof v, err));
    OK(fac_tensor_write(labels, label, sizeof label, err));
    for (int k = 0; k < STEPS; k++) {
        fac_score s;
        OK(fac_trainer_step(t, x, labels, 1e-2, &s, err));
        c.loss[k] = s.loss;
    }
    if (forms) {
        c.attentions = count(t->step, "attention");
        c.grads = count(t->step, "attention_grad");
        c.softmaxes = count(t->step, "softmax");
        c.erfs = count(t->step, "erf");
        c.gathers = count(t->step, "gather") + count(t->step, "gather_grad");
    }
    fac_tensor_free(x);
    fac_tensor_free(labels);
    fac_trainer_free(t);
    fac_device_free(d);
    return c;
}

static void check(fac_dtype mixed, bool open, double tolerance) {
    fac_graph *file = block(true, open), *ours = block(false, open);
    const course a = train(file, mixed, true), b = train(ours, mixed, false);
    assert_int_equal(a.attentions, 1);
    assert_int_equal(a.grads, 1);
    assert_int_equal(a.softmaxes + a.erfs + a.gathers, 0);
    for (int k = 0; k < STEPS; k++)
        if (!(fabs(a.loss[k] - b.loss[k]) <= tolerance * b.loss[0]))
            fail_msg("step %d: loss %.9g, expected %.9g", k, a.loss[k], b.loss[k]);
    assert_true(a.loss[STEPS - 1] < .8 * a.loss[0]); /* it learns, so parameters have gradients */
    assert_int_equal(count(file, "softmax"), 1);     /* the model is as it was */
    fac_graph_free(file);
    fac_graph_free(ours);
}

static void files_train_as_our_ops_do(void **state) {
    (void)state;
    check(FAC_NONE, false, 1e-5);
    check(FAC_NONE, true, 1e-5);
}
static void in_mixed_precision_too(void **state) {
    (void)state;
    check(FAC_BF16, false, 2e-2);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(files_train_as_our_ops_do),
                                        cmocka_unit_test(in_mixed_precision_too) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
