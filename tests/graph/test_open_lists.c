/* Lists that steer a shape and have an open length: what they make is what a list of the code
 * makes, also where the length decides how many dims that has, after passes and by way of a file.
 */
#include "flow_check.h"
#include "facula/edit.h"
#include "through_onnx.h"

typedef struct row {
    const char *nodes; /* of x f32[a,b], 3,4, and k */
    const char *list;  /* k */
} row;
static const row rows[] = {
    { "y = reshape(x, k)", "{2,-1,3}" },
    { "y = reshape(x, k)", "{12}" },
    { "r = reshape(x, k)\ns = relu(r)\ny = sum(s, i64{-1})", "{2,3,2}" },
    { "r = reshape(x, k)\ny = matmul(r, f32[4,1]{1,2,3,4})", "{3,1,4}" },
    { "y = expand(x, k)", "{2,3,4}" },
    { "y = expand(x, k)", "{4}" },
    { "e = expand(f32(2), k)\ny = mul(e, e)", "{1,2,0}" },
    { "u = unsqueeze(x, k)\ny = neg(u)", "{0,-1}" },
    { "u = unsqueeze(x, i64{0,3})\ny = squeeze(u, k)", "{0}" },
    { "y = sum(x, k)", "{1}" },
    { "y = sum(x, k)", "{}" },
    { "y = reduce_max(x, k) keep", "{0,1}" },
    { "y = tile(x, k)", "{2,3}" },
    { "j = add(k, i64{2})\ny = slice(x, k, j)", "{1}" },
    { "j = add(k, i64{2})\ny = slice(x, k, j)", "{0,1}" },
    { "y = slice(x, i64{0,0}, k, i64{1,0})", "{3,2}" },
    { "y = slice(x, i64{2}, i64{0}, k, i64{-1})", "{1}" },
    { "y = pad(x, k)", "{1,0,0,2}" },
    { "y = pad(x, i64{2,1}, -, k)", "{1}" },
    { "p, q = split(x, k) axis=1 parts=2\nt = neg(p)\ny = concat(q, t) axis=1", "{1,3}" },
    { "y, i = top_k(x, k)", "{2}" },
    { "i = arg_max(x) axis=1\ny = one_hot(i, k, f32{0,1})", "{5}" },
    { "y = cum_sum(x, k)", "{1}" },
    { "y = trilu(x, k)", "{1}" },
    { "r = range(i64(0), k, i64(2))\ny = cast(r) to=f32", "{7}" },
    { "y = signal_window(k) kind=hann", "{6}" },
    { "y = center_crop_pad(x, k)", "{5,2}" },
    { "y = interpolate(x, k) mode=linear", "{6,2}" },
    { "y = gather_nd(x, k)", "{2}" },
    { "g = gather_nd(x, k)\ny = neg(g)", "{1,3}" },
    { "y = scatter_nd(x, k, f32(7))", "{1,3}" },
    { "r = reshape(x, i64{1,12,1})\ny = dft(r, k, i64{1})", "{6}" },
    { "r = reshape(x, i64{1,12})\ny = stft(r, -, k, i64{4}) onesided", "{3}" },
    { "s = slice(x, i64{0,0}, i64{2,3})\nr = unsqueeze(s, i64{0})\n"
      "y = affine_grid(r, k)",
      "{1,2,3,2}" },
    { "r = unsqueeze(x, i64{0})\nt = transpose(r) perm=0,2,1\n"
      "y = col2im(t, k, i64{2,2})",
      "{2,4}" },
};

static fac_tensor *list_of(const char *list) {
    int64_t v[8];
    int n = 0;
    for (const char *p = list + 1; *p && *p != '}';) {
        char *end;
        v[n++] = strtoll(p, &end, 10);
        p = *end == ',' ? end + 1 : end;
    }
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(n), &t, err));
    OK(fac_tensor_write(t, v, (size_t)n * sizeof *v, err));
    return t;
}

static fac_tensor *run(const fac_graph *g, const char *list) {
    fac_tensor *in[2] = { NULL }, *out[1] = { NULL };
    fac_program *p = NULL;
    float v[12];
    for (int k = 0; k < 12; k++) v[k] = (float)((k * 7) % 12) - 5;
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(3, 4), &in[0], err));
    OK(fac_tensor_write(in[0], v, sizeof v, err));
    in[1] = list_of(list);
    OK(fac_program_new(g, device, NULL, &p, err));
    fac_error e = { 0 };
    if (fac_program_run(p, in, out, &e)) fail_msg("%s: %s", list, e.text);
    fac_program_free(p);
    fac_tensor_free(in[0]);
    fac_tensor_free(in[1]);
    return out[0];
}

/* y as the graph computes it; want: the tensor that it must be. */
static void gives(const fac_graph *g, const row *r, const fac_tensor *want) {
    fac_tensor *got = run(g, r->list);
    assert_equal_tensors(got, want, 1e-5);
    fac_tensor_free(got);
}

static const char *text_with(char *to, size_t room, const char *head, const row *r) {
    snprintf(to, room, "input x f32[a,b]\n%s%s\noutput y = y\n", head, r->nodes);
    return to;
}

/* k is an input, or computed from one. */
static void all_ways(const row *r, const char *head) {
    char text[512], known[64], plain[512];
    snprintf(known, sizeof known, "input given i64[n]\nk = identity(i64%s)\n", r->list);
    fac_graph *alone = read_text(text_with(plain, sizeof plain, known, r));
    fac_graph *g = read_text(text_with(text, sizeof text, head, r)), *simple = NULL;
    fac_tensor *want = run(alone, r->list);
    fac_error why = { 0 };
    gives(g, r, want);
    OK(fac_graph_simplified(g, &simple, err));
    gives(simple, r, want);
    fac_graph *again = through_onnx(g, &why);
    if (!again) fail_msg("%s: %s", r->nodes, why.text);
    gives(again, r, want);
    fac_tensor_free(want);
    fac_graph_free(again);
    fac_graph_free(simple);
    fac_graph_free(alone);
    fac_graph_free(g);
}

static void given(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) all_ways(&rows[k], "input k i64[m]\n");
}

static void computed(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        all_ways(&rows[k],
                 "input given i64[m]\nf0 = cast(given) to=f32\nf1 = exp(f0)\nf2 = log(f1)\n"
                 "f3 = round(f2)\nk = cast(f3) to=i64\n");
}

/* The length of the list is data, too: as many as are not 0. */
static void counted(void **state) {
    (void)state;
    static const row r = { "y = reshape(x, k)", "{2,6,0,0}" };
    fac_graph *g = read_text("input x f32[a,b]\ninput i i64[m]\nb = cast(i) to=bool\n"
                             "c = cast(b) to=i64\nn = sum(c, -)\nz = nonzero(i, n)\n"
                             "p = squeeze(z, i64{0})\nk = gather(i, p)\n"
                             "y = reshape(x, k)\noutput y = y\n");
    fac_graph *alone = read_text("input x f32[a,b]\ninput i i64[m]\n"
                                 "y = reshape(x, i64{2,6})\noutput y = y\n");
    fac_tensor *want = run(alone, r.list);
    assert_int_equal(fac_graph_find(g, "y")->guess, FAC_RANKLESS);
    gives(g, &r, want);
    fac_tensor_free(want);
    fac_graph_free(g);
    fac_graph_free(alone);
}

/* A list of another length than its op needs is an error of the run. */
static void wrong_lengths(void **state) {
    (void)state;
    static const struct {
        const char *nodes, *part;
    } bad[] = { { "y = tile(x, k)", "repeats" },
                { "y = slice(x, i64{0,0}, k)", "one length" },
                { "y = pad(x, k)", "two numbers" },
                { "y, i = top_k(x, k)", "k must be one number" },
                { "p, y = split(x, k) axis=1 parts=2", "3 sizes for 2 parts" } };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        char text[256];
        const row r = { bad[k].nodes, NULL };
        fac_graph *g = read_text(text_with(text, sizeof text, "input k i64[m]\n", &r));
        fac_tensor *in[] = { NULL, list_of("{1,1,2}") }, *out[1] = { NULL };
        fac_program *p = NULL;
        fac_error e = { 0 };
        OK(fac_tensor_new(NULL, FAC_F32, fac_shape(3, 4), &in[0], err));
        OK(fac_program_new(g, device, NULL, &p, err));
        assert_int_not_equal(fac_program_run(p, in, out, &e), FAC_OK);
        if (!strstr(e.text, bad[k].part)) fail_msg("'%s' is not in '%s'", bad[k].part, e.text);
        fac_program_free(p);
        fac_tensor_free(in[0]);
        fac_tensor_free(in[1]);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(given), cmocka_unit_test(computed),
                                        cmocka_unit_test(counted),
                                        cmocka_unit_test(wrong_lengths) };
    return cmocka_run_group_tests_name("open lists", tests, open_device, close_device);
}
