/* Gradients over histories: the same whether nothing, everything or half was flushed, lazy or
 * eager, and the same as fac_grad's. */
#include "lazy_check.h"
#include "op_list.h"

enum { MODES = 4 };
/* 0: one segment; 1: flushed before the gradients; 2: each op flushed; 3: eager. */
static void set_mode(int mode) { fac_recorder_set_eager(rec, mode == 3); }
static void between(int mode) {
    if (mode == 2) OK(fac_flush(rec, &err));
}

static fac_lazy *grad_of(fac_lazy *y, fac_lazy *x, unsigned flags) {
    fac_lazy *g = NULL;
    OK(fac_lazy_backward(1, &y, NULL, 1, &x, &g, flags, &err));
    return g;
}

/* sum(tanh(x w) x) + sum(w): x is read twice, w by two paths. */
static fac_lazy *loss_of(fac_lazy *x, fac_lazy *w, int mode) {
    fac_lazy *axes, *y = op2("matmul", x, w);
    OK(fac_lazy_ints(rec, 2, (int64_t[]){ 0, 1 }, &axes, &err));
    between(mode);
    then1(&y, "tanh");
    between(mode);
    then2(&y, "mul", x);
    fac_lazy *s = op2("sum", y, axes), *t = op2("sum", w, axes);
    between(mode);
    then2(&s, "add", t);
    if (mode == 1) OK(fac_flush(rec, &err));
    fac_lazy_free(y);
    fac_lazy_free(t);
    fac_lazy_free(axes);
    return s;
}

static fac_value *loss_in(fac_value *x, fac_value *w) {
    const fac_dims both = fac_shape(0, 1);
    return fac_add(fac_sum(fac_mul(fac_tanh(fac_matmul(x, w)), x), both, false),
                   fac_sum(w, both, false));
}

static void equal_to_fac_grad(void **state) {
    (void)state;
    float want[2][9];
    for (int mode = 0; mode < MODES; mode++) {
        set_mode(mode);
        stream = 0;
        fac_lazy *x = lazy_random(fac_shape(3, 3), false), *w = lazy_random(fac_shape(3, 3), true);
        OK(fac_lazy_require(x, true, &err));
        OK(fac_lazy_require(w, true, &err));
        if (!mode) {
            fac_tensor *tx, *tw, *out;
            OK(fac_lazy_tensor(x, &tx, &err));
            OK(fac_lazy_tensor(w, &tw, &err));
            fac_graph *g = fac_graph_new();
            fac_value *in[] = { fac_state(g, "x", tx), fac_param(g, "w", tw) }, *d[2];
            fac_grad(loss_in(in[0], in[1]), 2, in, d);
            for (int k = 0; k < 2; k++) {
                OK(fac_eval(d[k], device, &out, &err));
                OK(fac_tensor_read(out, want[k], sizeof want[k], &err));
                fac_tensor_free(out);
            }
            fac_graph_free(g);
            fac_tensor_free(tx);
            fac_tensor_free(tw);
        }
        fac_lazy *loss = loss_of(x, w, mode), *d[2], *in[] = { x, w };
        OK(fac_lazy_backward(1, &loss, NULL, 2, in, d, 0, &err));
        for (int k = 0; k < 2; k++) {
            assert_floats(d[k], want[k], 9, 2e-6);
            fac_lazy_free(d[k]);
        }
        fac_lazy_free(loss);
        fac_lazy_free(x);
        fac_lazy_free(w);
    }
}

/* d/dx of (dy/dx)^2 for y = x^3 is 36 x^3. */
static void gradients_of_gradients(void **state) {
    (void)state;
    for (int mode = 0; mode < MODES; mode++) {
        set_mode(mode);
        fac_lazy *x = lazy_of((fac_dims){ 0 }, (float[]){ 2 });
        OK(fac_lazy_require(x, true, &err));
        fac_lazy *y = op2("mul", x, x);
        between(mode);
        then2(&y, "mul", x);
        if (mode == 1) OK(fac_flush(rec, &err));
        fac_lazy *d = grad_of(y, x, FAC_BACKWARD_RECORD);
        assert_true(fac_lazy_requires(d));
        if (mode) assert_true(item(d) == 12);
        then2(&d, "mul", d);
        between(mode);
        fac_lazy *dd = grad_of(d, x, 0);
        assert_true(item(dd) == 288);
        assert_false(fac_lazy_requires(dd));
        fac_lazy_free(x);
        fac_lazy_free(y);
        fac_lazy_free(d);
        fac_lazy_free(dd);
    }
}

static void histories_are_used_up(void **state) {
    (void)state;
    fac_lazy *x = lazy_of((fac_dims){ 0 }, (float[]){ 3 });
    OK(fac_lazy_require(x, true, &err));
    fac_lazy *y = op2("mul", x, x), *z = op1("exp", y);
    for (int i = 0; i < 3; i++) {
        fac_lazy *d = grad_of(y, x, FAC_BACKWARD_KEEP);
        assert_true(item(d) == 6);
        fac_lazy_free(d);
    }
    fac_lazy *d = grad_of(y, x, 0), *none = NULL;
    fac_lazy_free(d);
    assert_int_equal(fac_lazy_backward(1, &y, NULL, 1, &x, &none, 0, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "used up"));
    assert_int_equal(fac_lazy_backward(1, &z, NULL, 1, &x, &none, 0, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "used up"));
    fac_lazy *plain;
    OK(fac_lazy_detach(y, &plain, &err));
    assert_false(fac_lazy_requires(plain));
    assert_int_equal(fac_lazy_backward(1, &plain, NULL, 1, &x, &none, 0, &err), FAC_E_ARGUMENT);
    assert_true(item(plain) == 9);
    fac_lazy *all[] = { x, y, z, plain };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
}

static void leaves_are_found(void **state) {
    (void)state;
    fac_lazy *w = lazy_random(fac_shape(2), true), *b = lazy_random(fac_shape(2), true);
    fac_lazy *x = lazy_random(fac_shape(2), false), *found[4] = { NULL };
    OK(fac_lazy_require(w, true, &err));
    OK(fac_lazy_require(b, true, &err));
    fac_lazy *y = op2("mul", x, w);
    then2(&y, "add", b);
    then2(&y, "mul", w);
    assert_int_equal(fac_lazy_leaves(1, &y, 4, found), 2);
    assert_true((found[0] == w && found[1] == b) || (found[0] == b && found[1] == w));
    assert_ptr_equal(fac_lazy_made_by(w), NULL);
    assert_string_equal(fac_lazy_made_by(y), "mul");
    fac_lazy *other = NULL;
    OK(fac_record(rec, &fac_op_exp, NULL, 1, &y, FAC_RECORD_NO_GRAD, 1, &other, &err));
    assert_false(fac_lazy_requires(other));
    fac_lazy *all[] = { w, b, x, y, other, found[0], found[1] };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
}

/* A weighted gradient of a result that is no scalar; twice the same place. */
static void weighted(void **state) {
    (void)state;
    fac_lazy *x = lazy_of(fac_shape(2), (float[]){ 3, 4 }),
             *dy = lazy_of(fac_shape(2), (float[]){ 10, 100 }), *d;
    OK(fac_lazy_require(x, true, &err));
    fac_lazy *y = op2("mul", x, x);
    assert_int_equal(fac_lazy_backward(1, &y, NULL, 1, &x, &d, 0, &err), FAC_E_SHAPE);
    OK(fac_lazy_backward(1, &y, &dy, 1, &x, &d, 0, &err));
    assert_floats(d, (float[]){ 60, 800 }, 2, 0);
    fac_lazy *all[] = { x, dy, y, d };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
}

/* A state that was assigned after it was read: in one segment its old contents are there; after
 * a flush they are gone, and a gradient that reads them says so. */
static void states_assigned_since(void **state) {
    (void)state;
    for (int flushed = 0; flushed < 2; flushed++) {
        fac_lazy *w = lazy_of((fac_dims){ 0 }, (float[]){ 1 });
        fac_tensor *t = tensor_of((fac_dims){ 0 }, (float[]){ 5 });
        fac_lazy_free(w);
        OK(fac_lazy_state(rec, t, &w, &err));
        OK(fac_lazy_require(w, true, &err));
        fac_lazy *y = op2("mul", w, w), *two = number(2), *next, *d = NULL;
        OK(fac_record(rec, &fac_op_mul, NULL, 2, (fac_lazy *[]){ w, two }, FAC_RECORD_NO_GRAD, 1,
                      &next, &err));
        OK(fac_lazy_assign(w, next, &err));
        if (flushed) {
            assert_true(item(y) == 25);
            assert_int_equal(fac_lazy_backward(1, &y, NULL, 1, &w, &d, 0, &err), FAC_E_ARGUMENT);
            assert_non_null(strstr(err.text, "assigned since"));
        } else {
            d = grad_of(y, w, 0);
            assert_true(item(d) == 10);
            assert_true(item(w) == 10);
        }
        fac_lazy *all[] = { w, y, two, next, d };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
        fac_tensor_free(t);
    }
}

/* ---- functions of the binding's own ---- */

static int released;
static void release(void *self) { released += *(int *)self; }

/* y = x^2, whose gradient pretends to be 100 dy. */
static fac_status hundredfold(void *self, int nout, fac_lazy *const dy[], int n, fac_lazy *dx[],
                              fac_error *e) {
    (void)self, (void)nout, (void)n;
    fac_lazy *hundred;
    if (fac_lazy_number(rec, FAC_F32, 100, &hundred, e)) return e->status;
    fac_status s =
        fac_record(rec, &fac_op_mul, NULL, 2, (fac_lazy *[]){ dy[0], hundred }, 0, 1, &dx[0], e);
    fac_lazy_free(hundred);
    return s;
}

static fac_status refuses(void *self, int nout, fac_lazy *const dy[], int n, fac_lazy *dx[],
                          fac_error *e) {
    (void)self, (void)nout, (void)dy, (void)n, (void)dx;
    if (e) *e = (fac_error){ FAC_E_UNSUPPORTED, "not today" };
    return FAC_E_UNSUPPORTED;
}

static void custom_functions(void **state) {
    (void)state;
    int one = 1;
    released = 0;
    for (int mode = 0; mode < MODES; mode++) {
        set_mode(mode);
        fac_lazy *x = lazy_of((fac_dims){ 0 }, (float[]){ 3 }), *y, *z, *inside;
        OK(fac_lazy_require(x, true, &err));
        OK(fac_record(rec, &fac_op_mul, NULL, 2, (fac_lazy *[]){ x, x }, FAC_RECORD_NO_GRAD, 1,
                      &inside, &err));
        OK(fac_record_custom(rec, 1, &x, 1, &inside, hundredfold, release, &one, &y, &err));
        fac_lazy_free(inside);
        between(mode);
        z = op1("neg", y);
        if (mode == 1) OK(fac_flush(rec, &err));
        fac_lazy *d = grad_of(z, x, 0);
        assert_true(item(z) == -9);
        assert_true(item(d) == -100);
        fac_lazy *all[] = { x, y, z, d };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
        assert_int_equal(released, mode + 1);
    }
    set_mode(0);
    fac_lazy *x = lazy_of((fac_dims){ 0 }, (float[]){ 3 }), *y, *d = NULL;
    OK(fac_lazy_require(x, true, &err));
    OK(fac_record_custom(rec, 1, &x, 1, &x, refuses, NULL, NULL, &y, &err));
    assert_int_equal(fac_lazy_backward(1, &y, NULL, 1, &x, &d, 0, &err), FAC_E_UNSUPPORTED);
    assert_string_equal(err.text, "not today");
    fac_lazy_free(x);
    fac_lazy_free(y);
}

/* ---- builders, and every op with a gradient ---- */

static void layer(void *self, fac_graph *g, fac_value *const in[], fac_value *y[]) {
    (void)self, (void)g;
    fac_value *h = fac_relu(fac_conv2d(in[0], in[1], NULL, NULL));
    y[0] = fac_sum(fac_mul(h, h), fac_shape(0, 1, 2, 3), false);
}

static void builders_have_histories(void **state) {
    (void)state;
    float want[8] = { 0 };
    for (int mode = 0; mode < MODES; mode++) {
        set_mode(mode);
        stream = 0;
        fac_lazy *in[] = { lazy_random(fac_shape(1, 1, 4, 4), false),
                           lazy_random(fac_shape(2, 1, 2, 2), true) },
                 *y;
        OK(fac_lazy_require(in[1], true, &err));
        OK(fac_record_graph(rec, layer, NULL, 2, in, 0, 1, &y, &err));
        if (mode) OK(fac_flush(rec, &err));
        fac_lazy *d = grad_of(y, in[1], 0);
        if (!mode) read_lazy(d, want, 8);
        assert_floats(d, want, 8, 1e-5);
        assert_true(want[0] != 0 || want[4] != 0);
        fac_lazy *all[] = { in[0], in[1], y, d };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
    }
}

#define LAZY_TEST(f) cmocka_unit_test_setup_teardown(f, open_recorder, close_recorder)
int main(void) {
    const struct CMUnitTest tests[] = {
        LAZY_TEST(equal_to_fac_grad),
        LAZY_TEST(gradients_of_gradients),
        LAZY_TEST(histories_are_used_up),
        LAZY_TEST(leaves_are_found),
        LAZY_TEST(weighted),
        LAZY_TEST(states_assigned_since),
        LAZY_TEST(custom_functions),
        LAZY_TEST(builders_have_histories),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_device);
}
