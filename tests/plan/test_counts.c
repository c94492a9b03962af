/* What a model says it takes against what the steps of its plan account for: the counts of the
 * analysis, which never looks at a plan, and of the executor, which has fused, folded, merged and
 * sliced.  Every multiply-add must be in both, op by op. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "facula/facula.h"

enum { MOST = 4096 };

typedef struct count {
    const char *op;
    int layers, done;
    double macs, macs_done, elements, elements_done, other, other_done;
} count;
/* spared: what a relu need not see since it comes after a pool in the same step */
typedef struct counts {
    count of[64];
    int n;
    double macs, macs_done, spared;
} counts;

static count *row(counts *c, const char *op) {
    for (int k = 0; k < c->n; k++)
        if (!strcmp(c->of[k].op, op)) return &c->of[k];
    assert_true(c->n < 64);
    c->of[c->n] = (count){ .op = op };
    return &c->of[c->n++];
}

static void count_layers(counts *c, const fac_analysis *a) {
    for (int i = 0; fac_analysis_layer(a, i); i++) {
        const fac_layer *l = fac_analysis_layer(a, i);
        count *r = row(c, l->op);
        r->layers++;
        r->macs += l->macs;
        c->macs += l->macs;
        r->elements += (double)fac_dims_count(&l->out.dims);
        r->other += l->other;
    }
}

static void count_steps(counts *c, fac_program *p) {
    static fac_step_stat steps[MOST];
    const size_t n = fac_program_steps(p, steps, MOST);
    assert_true(n > 0 && n <= MOST);
    for (size_t i = 0; i < n; i++) {
        double inside = 0;
        for (int k = 0; k < steps[i].ndoes; k++) {
            const fac_step_op *d = &steps[i].does[k];
            count *r = row(c, d->op);
            if (k > 1 && !strcmp(d->op, "relu") && !strcmp(d[-1].op, "max_pool2d"))
                c->spared += d[-2].elements - d->elements;
            r->done++;
            r->macs_done += d->macs;
            r->elements_done += d->elements;
            inside += d->macs;
            r->other_done += d->other;
        }
        c->macs_done += steps[i].macs;
        assert_float_equal(inside, steps[i].macs, 0); /* the parts of a step are the step */
    }
}

static void plan(fac_program *p, const fac_graph *g, int64_t batch) {
    fac_error err = { 0 };
    fac_tensor *in[4] = { NULL };
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        fac_type t = fac_value_type(fac_graph_input(g, i));
        if (t.dims.d[0] < 0) t.dims.d[0] = batch;
        assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &in[i], &err), FAC_OK);
    }
    if (fac_program_plan(p, in, NULL, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < fac_graph_inputs(g); i++) fac_tensor_free(in[i]);
}

static counts compare(const fac_graph *g, fac_device *d, int64_t batch, bool no_fuse) {
    fac_error err = { 0 };
    fac_analysis *a;
    fac_program *p;
    counts c = { .n = 0 };
    assert_int_equal(fac_analyze(g, batch, &a, &err), FAC_OK);
    assert_int_equal(fac_program_new(g, d, &(fac_program_opts){ .no_fuse = no_fuse }, &p, &err),
                     FAC_OK);
    plan(p, g, batch);
    count_layers(&c, a);
    count_steps(&c, p);
    fac_analysis_free(a);
    fac_program_free(p);
    return c;
}

/* What may be done less often than the model says, or not at all.  AlexNet's adaptive pool has
 * windows of 1 x 1 for photos of the published size: there is nothing to do. */
static bool excused(const char *model, const char *op) {
    if (!strcmp(op, "avg_pool2d") && !strcmp(model, "alexnet")) return true;
    static const char *const ops[] = { "batch_norm", "dropout", "identity", "flatten",
                                       "reshape",    "concat",  "split",    "slice" };
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (!strcmp(ops[k], op)) return true;
    return false;
}

static void check(const char *name, const counts *c) {
    assert_true(c->macs > 0);
    if (c->macs != c->macs_done)
        fail_msg("%s: %.0f multiply-adds in the model, %.0f in the steps", name, c->macs,
                 c->macs_done);
    for (int k = 0; k < c->n; k++) {
        const count *r = &c->of[k];
        if (r->macs != r->macs_done)
            fail_msg("%s: %s: %.0f and %.0f multiply-adds", name, r->op, r->macs, r->macs_done);
        const double spared = strcmp(r->op, "relu") ? 0 : c->spared;
        if (!excused(name, r->op) && r->elements != r->elements_done + spared)
            fail_msg("%s: %s: %.0f and %.0f elements in %d layers, %d times", name, r->op,
                     r->elements, r->elements_done, r->layers, r->done);
        if (!strcmp(r->op, "max_pool2d") && r->other != r->other_done)
            fail_msg("%s: pools compare %.0f times in the model, %.0f in the steps", name, r->other,
                     r->other_done);
    }
}

static void test_zoo(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_device *d;
    assert_int_equal(
        fac_device_open("cpu", &(fac_device_opts){ .threads = 1, .wisdom = "" }, &d, &err), FAC_OK);
    for (const fac_zoo *z = fac_zoo_models; z->name; z++) {
        fac_graph *g;
        if (!strcmp(z->name, "vgg16"))
            continue; /* its weights take seconds, and alexnet has all its ops */
        assert_int_equal(fac_zoo_new(z->name, NULL, 1, &g, &err), FAC_OK);
        const counts c = compare(g, d, 1, false);
        check(z->name, &c);
        fac_graph_free(g);
    }
    fac_device_free(d);
}

/* Batches that are cut into slices count whole, and nothing is folded where nothing may be fused.
 */
static void test_batches(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_device *d;
    fac_graph *g;
    assert_int_equal(
        fac_device_open("cpu", &(fac_device_opts){ .threads = 1, .wisdom = "" }, &d, &err), FAC_OK);
    assert_int_equal(fac_zoo_new("resnet18", NULL, 1, &g, &err), FAC_OK);
    const counts one = compare(g, d, 1, true), many = compare(g, d, 24, false);
    check("resnet18 without fusing", &one);
    check("resnet18 of 24 images", &many);
    for (int k = 0; k < one.n; k++)
        if (!strcmp(one.of[k].op, "batch_norm")) assert_int_equal(one.of[k].done, one.of[k].layers);
    assert_float_equal(many.macs_done, 24 * one.macs_done, 0);
    fac_graph_free(g);
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_zoo),
                                        cmocka_unit_test(test_batches) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
