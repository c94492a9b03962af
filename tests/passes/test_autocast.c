/* Mixed precision: which values become narrow, that neighbours never notice, how far results are
 * from f32's, and that f16 trains with a scaled loss which gives way when gradients overflow. */
#include "nn_check.h"
#include "facula/data/data.h"
#include "facula/train.h"
#include "graph/attr.h"
#include "passes/passes.h"
#include "train/train_internal.h"

enum { BATCH = 6, SIDE = 12, CLASSES = 5 };

/* conv - batch norm - relu - pool - residual conv - mean - linear - softmax */
static fac_graph *network(void) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 5);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(BATCH, 3, SIDE, SIDE));
    x = fac_relu(fac_nn_batch_norm(fac_nn_conv2d(x, "conv1", 8, 3, &(fac_nn_conv_opts){ .pad = 1 }),
                                   "bn1", 1e-5));
    x = fac_max_pool2d(x, 2, 2, NULL);
    x = fac_relu(fac_add(x, fac_nn_conv2d(x, "conv2", 8, 3, &(fac_nn_conv_opts){ .pad = 1 })));
    x = fac_nn_linear(fac_flatten(fac_mean(x, fac_shape(2, 3), true), 1), "fc", CLASSES);
    fac_output(g, "logits", x);
    fac_output(g, "p", fac_softmax(x, 1));
    OK(fac_graph_check(g, &err));
    return g;
}

static int count(const fac_graph *g, const char *op, fac_dtype result) {
    int n = 0;
    for (const fac_node *k = g->first; k; k = k->next)
        n += !strcmp(k->op->name, op) && k->out[0]->type.dtype == result &&
             (k->out[0]->uses || k->out[0]->roots);
    return n;
}

static void test_types(void **state) {
    (void)state;
    fac_graph *g = network(), *all = fac_graph_autocast(g, FAC_BF16), *m = fac_pass_simplify(all),
              *f = NULL;
    OK(fac_graph_check(m, &err));
    f = fac_graph_rebuild(m, &(fac_rebuild){ 0 }, NULL); /* without what nothing reads */
    static const char *const narrow[] = { "conv2d", "batch_norm", "relu",    "max_pool2d",
                                          "add",    "mean",       "flatten", "linear" };
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++) {
        if (count(f, narrow[i], FAC_F32)) fail_msg("%s computes in f32", narrow[i]);
        assert_true(count(f, narrow[i], FAC_BF16));
    }
    assert_int_equal(count(f, "softmax", FAC_F32), 1);
    assert_int_equal(count(f, "cast", FAC_F32), 1); /* the logits, once for both readers */
    assert_int_equal(count(f, "cast", FAC_BF16),
                     7); /* the input; weights and biases of three layers */
    for (size_t i = 0; i < f->nparams; i++) assert_int_equal(f->params[i]->type.dtype, FAC_F32);
    for (size_t i = 0; i < f->noutputs; i++)
        assert_int_equal(f->outputs[i].value->type.dtype, FAC_F32);
    fac_graph_free(f);
    fac_graph_free(m);
    fac_graph_free(all);
    fac_graph *bad = fac_graph_autocast(g, FAC_F64);
    assert_int_equal(fac_graph_check(bad, &err), FAC_E_ARGUMENT);
    fac_graph_free(bad);
    fac_graph_free(g);
}

/* A mask that f16 cannot say is added in f32, so that rows that it hides all of are even, not
 * NaN; and so is an epsilon. */
/* Products after dims that only computed numbers will tell, and a gelu between them. */
static void test_open_dims(void **state) {
    static const char text[] =
        "input x f32[3,4]\nparam w f32[6,5]\nparam v f32[5,2]\nconst a i64[2,2]{0,0,0,2}\n"
        "t = transpose(a)\np = reshape(t, i64{-1})\ny = pad(x, p)\ns = squeeze(y)\n"
        "m = matmul(s, w)\nd = div(m, 1.4142135)\ne = erf(d)\nb = add(e, 1)\nf = mul(m, b)\n"
        "g = mul(f, 0.5)\nz = matmul(g, v)\noutput z = z\n";
    (void)state;
    fac_graph *g = NULL;
    FILE *from = fmemopen((void *)(uintptr_t)text, sizeof text - 1, "r");
    OK(fac_graph_read(from, &g, &err));
    fclose(from);
    fac_graph *m = fac_graph_autocast(g, FAC_BF16);
    OK(fac_graph_check(m, &err));
    assert_int_equal(count(m, "matmul", FAC_BF16), 2);
    assert_int_equal(count(m, "gelu", FAC_BF16), 1);
    fac_graph_free(m);
    fac_graph_free(g);
}

static void test_masks(void **state) {
    (void)state;
    static const char *const text[] = {
        "input x f32[4,4]\ns = matmul(x, x)\nw = add(s, f32{-3e38,-3e38,-3e38,-3e38})\np = "
        "softmax(w) axis=-1\noutput p = p\n",
        "input x f32[4,4]\ns = matmul(x, x)\nz = sub(s, s)\nw = add(z, f32(1e-9))\np = div(z, "
        "w)\noutput p = p\n"
    };
    static const double want[] = { 0.25, 0 };
    fac_device *d = NULL;
    OK(fac_device_open("cpu", NULL, &d, &err));
    for (int i = 0; i < 2; i++) {
        fac_graph *g = NULL;
        FILE *f = fmemopen((void *)(uintptr_t)text[i], strlen(text[i]), "r");
        assert_non_null(f);
        OK(fac_graph_read(f, &g, &err));
        fclose(f);
        fac_graph *m = fac_graph_autocast(g, FAC_F16);
        fac_tensor *x = NULL, *y = NULL;
        fac_program *p = NULL;
        float got[16];
        for (int k = 0; k < 16; k++) got[k] = (float)k / 16;
        OK(fac_tensor_new(NULL, FAC_F32, fac_shape(4, 4), &x, &err));
        OK(fac_tensor_write(x, got, sizeof got, &err));
        OK(fac_program_new(m, d, NULL, &p, &err));
        OK(fac_program_run(p, &x, &y, &err));
        OK(fac_tensor_read(y, got, sizeof got, &err));
        for (int k = 0; k < 16; k++) assert_true((double)got[k] == want[i]);
        fac_tensor_free(x);
        fac_tensor_free(y);
        fac_program_free(p);
        fac_graph_free(m);
        fac_graph_free(g);
    }
    fac_device_free(d);
}

/* relu6 stays one: its limits become numbers of the type, so its gradient is a mask by its result,
 * which needs no x. */
static void test_relu6(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 5);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(BATCH, 3, SIDE, SIDE));
    fac_value *y = fac_relu6(fac_nn_conv2d(x, "conv", 8, 3, &(fac_nn_conv_opts){ .pad = 1 }));
    fac_output(g, "loss", fac_sum(y, (fac_dims){ 0 }, false));
    fac_graph *m = fac_graph_autocast(g, FAC_BF16);
    OK(fac_graph_check(m, &err));
    fac_value *grad = NULL;
    fac_grad(m->outputs[0].value, 1, &m->params[0], &grad);
    OK(fac_graph_check(m, &err));
    assert_int_equal(count(m, "clip", FAC_BF16), 1);
    assert_int_equal(count(m, "less_or_equal", FAC_BOOL), 1);
    assert_int_equal(count(m, "greater_or_equal", FAC_BOOL), 1);
    assert_int_equal(count(m, "equal", FAC_BOOL), 0);
    assert_non_null(grad);
    fac_graph_free(m);
    fac_graph_free(g);
}

static void run(const fac_graph *g, fac_device *d, const fac_program_opts *o, float *logits,
                float *p) {
    fac_program *program;
    fac_tensor *x = tensor_of((fac_type){ FAC_F32, fac_shape(BATCH, 3, SIDE, SIDE) }, "x", plain),
               *out[2] = { NULL, NULL };
    OK(fac_program_new(g, d, o, &program, &err));
    OK(fac_program_run(program, &x, out, &err));
    OK(fac_tensor_read(out[0], logits, BATCH * CLASSES * sizeof *logits, &err));
    OK(fac_tensor_read(out[1], p, BATCH * CLASSES * sizeof *p, &err));
    fac_tensor_free(x);
    fac_tensor_free(out[0]);
    fac_tensor_free(out[1]);
    fac_program_free(program);
}

/* bf16 has 8 bits of a fraction, f16 11; a folded batch norm and one that is not give the same
 * within them. */
static void test_results(void **state) {
    (void)state;
    static const struct {
        fac_dtype low;
        double tolerance;
    } cases[] = { { FAC_BF16, 3e-2 }, { FAC_F16, 4e-3 } };
    fac_device *d;
    OK(fac_device_open("cpu", NULL, &d, &err));
    fac_graph *g = network();
    float right[BATCH * CLASSES], other[BATCH * CLASSES], sure[BATCH * CLASSES],
        less[BATCH * CLASSES];
    run(g, d, NULL, right, sure);
    for (size_t i = 0; i < 2; i++) {
        fac_graph *m = fac_graph_autocast(g, cases[i].low);
        for (int plain_steps = 0; plain_steps < 2; plain_steps++) {
            double worst = 0, largest = 0, off = 0;
            run(m, d, &(fac_program_opts){ .no_fuse = plain_steps }, other, less);
            for (int k = 0; k < BATCH * CLASSES; k++) {
                worst = fmax(worst, fabs((double)right[k] - (double)other[k]));
                largest = fmax(largest, fabs((double)right[k]));
                off = fmax(off, fabs((double)sure[k] - (double)less[k]));
            }
            if (!(worst <= cases[i].tolerance * largest))
                fail_msg("%s: %g of %g", fac_dtype_get(cases[i].low)->name, worst, largest);
            assert_true(worst > 0 && off <= cases[i].tolerance); /* something was rounded */
        }
        fac_graph_free(m);
    }
    fac_graph_free(g);
    fac_device_free(d);
}

static double number(const fac_trainer *t, const char *name) {
    fac_tensor *wide;
    double x = 0;
    OK(fac_tensor_convert(fac_value_tensor(fac_graph_find(t->step, name)), FAC_F64, &wide, &err));
    OK(fac_tensor_read(wide, &x, sizeof x, &err));
    fac_tensor_free(wide);
    return x;
}

/* All weights of a step become narrow at once. */
static int weight_steps(const fac_trainer *t) {
    fac_step_stat steps[200];
    const size_t n = fac_program_steps(fac_trainer_program(t), steps, 200);
    int count = 0;
    for (size_t i = 0; i < n && i < 200; i++) count += !strcmp(steps[i].nodes, "weights");
    return count;
}

static double accuracy_of(fac_dtype mixed, double enlarge, double *scale, int64_t *steps) {
    fac_device *d;
    fac_dataset data;
    fac_trainer *t;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &d, &err));
    OK(fac_dataset_toy("circle", 100, 3, &data, &err));
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 1);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 2));
    x = fac_relu(fac_nn_linear(x, "fc1", 32));
    fac_output(g, "logits", fac_mul(fac_nn_linear(x, "fc2", 2), fac_number(g, FAC_F32, enlarge)));
    const fac_trainer_opts o = { .mixed = mixed };
    const fac_train_opts how = { .epochs = 60,
                                 .batches = { .size = 25, .shuffle = true, .seed = 4 },
                                 .schedule = { .kind = FAC_SCHEDULE_CONSTANT, .lr = 1e-2 } };
    fac_score score;
    fac_train_result result;
    OK(fac_trainer_new(g, d, &o, &t, &err));
    OK(fac_train(t, &data, NULL, &how, &result, &err));
    OK(fac_trainer_evaluate(t, &data, 100, &score, &err));
    *scale = mixed == FAC_F16 ? number(t, "optimizer.loss_scale") : 1;
    *steps = (int64_t)number(t, "optimizer.step");
    assert_int_equal(weight_steps(t), mixed != FAC_NONE);
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_dataset_free(&data);
    fac_device_free(d);
    return score.accuracy;
}

static void test_training(void **state) {
    (void)state;
    double scale;
    int64_t all, taken;
    assert_true(accuracy_of(FAC_NONE, 1, &scale, &all) >= 0.9);
    assert_true(accuracy_of(FAC_BF16, 1, &scale, &taken) >= 0.9);
    assert_int_equal(taken, all);
    assert_true(accuracy_of(FAC_F16, 1, &scale, &taken) >= 0.9);
    assert_true(scale >= 16 && taken > all - 16);
    /* logits times 64: the first gradients do not fit f16, and steps are left out until the scale
     * does */
    assert_true(accuracy_of(FAC_F16, 64, &scale, &taken) >= 0.9);
    assert_true(scale < 65536 && taken < all && taken > all / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),   cmocka_unit_test(test_open_dims),
        cmocka_unit_test(test_masks),   cmocka_unit_test(test_relu6),
        cmocka_unit_test(test_results), cmocka_unit_test(test_training)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
