/* Every case of every op once more with no elements in one of its sizes: the device gives what the
 * reference driver gives, as does the expansion, and what has no meaning then is refused by both.
 */
#include "op_trial.h"

/* A dim that contents decide is a symbol until then. */
static bool are_as_inferred(const fac_dims *have, const fac_dims *inferred) {
    bool same = have->n == inferred->n;
    for (int k = 0; same && k < have->n; k++)
        same = inferred->d[k] < 0 || have->d[k] == inferred->d[k];
    return same;
}

/* The text with 0 in place of `size` wherever that is a dim, "f32[2,3" but not "f32{2,3"; false:
 * it stands nowhere. */
static bool without_elements(const char *text, long size, char *out, size_t room) {
    size_t n = 0;
    bool inside = false, changed = false;
    for (const char *s = text; *s;) {
        char *end = NULL;
        const bool dim = inside && *s >= '0' && *s <= '9';
        const bool here = dim && strtol(s, &end, 10) == size;
        inside = *s == '[' || (inside && *s != ']');
        changed |= here;
        if (here)
            n += (size_t)snprintf(out + n, room - n, "0");
        else
            n += (size_t)snprintf(out + n, room - n, "%.*s", dim ? (int)strspn(s, "0123456789") : 1,
                                  s);
        s += dim ? strspn(s, "0123456789") : 1;
    }
    return changed;
}

/* What means something gives it whatever the sizes; an error of the op itself (an index out of
 * no range, the largest of none) is one of its expansion as well. */
static bool try_without(const fac_op *op, const fac_case *c, const char *text) {
    trial t = { .text = text, .lo = c->lo, .hi = c->hi, .tolerance = fmax(c->tolerance, 1e-5) };
    fac_error own = { 0 };
    if (fac_problem_graph(text, false, &t.g, &own)) return false;
    const bool means = fac_op_means(op) && t.g->last->op == op;
    fac_program *p = NULL;
    fac_tensor *out[2][OPERANDS] = { { 0 } };
    fac_status status[2] = { FAC_OK, FAC_OK };
    assert_true(fac_graph_inputs(t.g) <= OPERANDS && fac_graph_outputs(t.g) <= OPERANDS);
    for (int i = 0; i < fac_graph_inputs(t.g); i++)
        t.in[i] = random_tensor(fac_graph_input(t.g, i)->type, t.lo, t.hi);
    for (int k = 0; k < 2; k++) {
        const fac_program_opts opts = { .solver = k && means ? "ref" : NULL,
                                        .precision = FAC_PRECISION_HIGHEST };
        fac_error e = { 0 };
        status[k] = fac_program_new(t.g, device, &opts, &p, &e);
        if (!status[k]) status[k] = fac_program_run(p, t.in, out[k], &e);
        const bool data =
            (means && status[k] == FAC_E_ARGUMENT) || strstr(e.text, "of no elements");
        if (status[k] && !data) fail_msg("%s: %s", text, e.text);
        fac_program_free(p);
        p = NULL;
    }
    bool empty = true; /* an index of nothing is not looked at where nothing is made of it */
    for (int k = 0; k < fac_graph_outputs(t.g); k++)
        empty &= !fac_dims_count(&fac_graph_output(t.g, k)->type.dims);
    if (status[0] != status[1] && !empty)
        fail_msg("%s: %s by itself, %s else", text, fac_status_name(status[1]),
                 fac_status_name(status[0]));
    t.nout = status[0] || status[1] ? 0 : fac_graph_outputs(t.g);
    for (int k = 0; k < t.nout; k++) {
        t.want[k] = (fac_host){ fac_tensor_type(out[1][k]),
                                (void *)(uintptr_t)fac_tensor_data(out[1][k]), NULL };
        if (!are_as_inferred(&t.want[k].type.dims, &fac_graph_output(t.g, k)->type.dims))
            fail_msg("%s: other dims than inferred", text);
        compare(&t, k, out[0][k], "without elements");
    }
    if (t.nout && means && op->expand) {
        fac_graph *e = fac_graph_rebuild(
            t.g, &(fac_rebuild){ .self = (void *)(uintptr_t)op, .visit = expansion }, NULL);
        if (fac_graph_check(e, &err)) fail_msg("%s: its expansion: %s", text, err.text);
        run(&t, e, t.in, (fac_program_opts){ 0 }, "its expansion");
        fac_graph_free(e);
    }
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < OPERANDS; i++) fac_tensor_free(out[k][i]);
    for (int i = 0; i < fac_graph_inputs(t.g); i++) fac_tensor_free(t.in[i]);
    fac_graph_free(t.g);
    return true;
}

/* Every case of every op with 0 in place of each of its sizes, as far as the op takes that. */
static void every_case_takes_no_elements(void **state) {
    (void)state;
    int tried = 0;
    for (const fac_op *const *p = fac_ops; *p; p++)
        for (const fac_case *c = (*p)->cases; c && c->problem; c++)
            for (long size = 1; size < 13; size++) {
                char text[512];
                if (without_elements(c->problem, size, text, sizeof text))
                    tried += try_without(*p, c, text);
            }
    print_message("%d problems without elements\n", tried);
    assert_true(tried > 900);
}

static int open_device(void **state) {
    (void)state;
    seed = fresh_seed();
    return fac_device_open("cpu", NULL, &device, &err);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_case_takes_no_elements) };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
