/* Every op of tests/golden/make/golden_nn.py and golden_ops.py against values computed elsewhere
 * (torch, NumPy, onnx): by the reference, and by whatever solver the device chooses.  Inputs that
 * steer shapes are tried as constants and as inputs of the program. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/device.h"
#include "facula/op.h"
#include "facula/program.h"

enum { OPERANDS = 8 };

typedef struct operand {
    bool absent, host;
    fac_tensor *tensor;
} operand;
typedef struct golden {
    char op[64], attrs[256];
    double tolerance;
    int line, nin, nout;
    operand in[OPERANDS];
    fac_tensor *out[OPERANDS];
} golden;

static fac_device *device;
static FILE *file;
static int line_number;
static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

static bool next_line(char **text) {
    static char *line;
    static size_t room;
    while (getline(&line, &room, file) >= 0) {
        line_number++;
        if (*line == '#') continue;
        line[strcspn(line, "\n")] = 0;
        *text = line;
        return true;
    }
    free(line);
    line = NULL;
    room = 0;
    return false;
}

static char kind_of(fac_dtype d) { return fac_dtype_get(d)->kind; }

static fac_tensor *tensor_of(fac_type type, const char *numbers) {
    int64_t n = fac_dims_count(&type.dims);
    bool real = kind_of(type.dtype) == 'f';
    double *f = calloc((size_t)n + 1, sizeof *f);
    int64_t *i = calloc((size_t)n + 1, sizeof *i);
    for (int64_t k = 0; k < n; k++) {
        char *end;
        if (real)
            f[k] = strtod(numbers, &end);
        else
            i[k] = *numbers == ' ' && numbers[1] == '-' ? strtoll(numbers, &end, 10)
                                                        : (int64_t)strtoull(numbers, &end, 10);
        if (end == numbers) fail_msg("line %d: %lld numbers expected", line_number, (long long)n);
        numbers = end;
    }
    fac_tensor *wide = NULL, *t = NULL;
    OK(fac_tensor_new(NULL, real ? FAC_F64 : FAC_I64, type.dims, &wide, &err));
    OK(fac_tensor_write(wide, real ? (void *)f : (void *)i, (size_t)n * 8, &err));
    OK(fac_tensor_convert(wide, type.dtype, &t, &err));
    fac_tensor_free(wide);
    free(f);
    free(i);
    return t;
}

/* "f32[2,3] : 0.5 ..." */
static fac_tensor *parse_tensor(char *s) {
    char *bracket = strchr(s, '['), *colon = strstr(s, " :");
    assert_non_null(bracket);
    assert_non_null(colon);
    *bracket = 0;
    fac_type type = { fac_dtype_find(s), { 0 } };
    for (char *p = bracket + 1; *p != ']' && p < colon; p += *p == ',')
        type.dims.d[type.dims.n++] = strtoll(p, &p, 10);
    return tensor_of(type, colon + 2);
}

static bool next_case(golden *g) {
    char *s;
    memset(g, 0, sizeof *g);
    if (!next_line(&s)) return false;
    g->line = line_number;
    int used = 0;
    if (sscanf(s, "op %63s %lf%n", g->op, &g->tolerance, &used) != 2)
        fail_msg("line %d: no case", line_number);
    snprintf(g->attrs, sizeof g->attrs, "%s", s[used] ? s + used + 1 : "");
    while (next_line(&s) && strcmp(s, "end")) {
        if (!strncmp(s, "in ", 3))
            g->in[g->nin++].tensor = parse_tensor(s + 3);
        else if (!strncmp(s, "out ", 4))
            g->out[g->nout++] = parse_tensor(s + 4);
        else if (!strcmp(s, "none"))
            g->in[g->nin++].absent = true;
        else if (!strncmp(s, "host", 4)) {
            int64_t n = 0;
            for (const char *p = s; *p; p++) n += *p == ' ';
            g->in[g->nin++] =
                (operand){ .host = true,
                           .tensor = tensor_of((fac_type){ FAC_I64, fac_shape(n) }, s + 4) };
        } else
            fail_msg("line %d: %s", line_number, s);
    }
    return true;
}

static void free_case(golden *g) {
    for (int k = 0; k < g->nin; k++) fac_tensor_free(g->in[k].tensor);
    for (int k = 0; k < g->nout; k++) fac_tensor_free(g->out[k]);
}

static bool same(double a, double b, double tolerance) {
    if (isnan(a) || isnan(b) || isinf(a) || isinf(b)) return (isnan(a) && isnan(b)) || a == b;
    return fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

static void compare(const golden *g, int k, const fac_tensor *have, const char *how) {
    fac_type a = fac_tensor_type(have), b = fac_tensor_type(g->out[k]);
    if (a.dtype != b.dtype || !fac_dims_equal(&a.dims, &b.dims))
        fail_msg("line %d: %s %s (%s): output %d has another type", g->line, g->op, g->attrs, how,
                 k);
    int64_t n = fac_dims_count(&a.dims);
    bool real = kind_of(a.dtype) == 'f';
    fac_tensor *x = NULL, *y = NULL;
    OK(fac_tensor_convert(have, real ? FAC_F64 : FAC_I64, &x, &err));
    OK(fac_tensor_convert(g->out[k], real ? FAC_F64 : FAC_I64, &y, &err));
    for (int64_t i = 0; i < n; i++) {
        const void *have_data = fac_tensor_data(x), *want_data = fac_tensor_data(y);
        double p = real ? ((const double *)have_data)[i] : 0,
               q = real ? ((const double *)want_data)[i] : 0;
        int64_t u = real ? 0 : ((const int64_t *)have_data)[i],
                v = real ? 0 : ((const int64_t *)want_data)[i];
        const double found = real ? p : (double)u;
        const double expected = real ? q : (double)v;
        if (u != v || !same(p, q, g->tolerance))
            fail_msg("line %d: %s %s (%s): output %d[%lld] is %.9g, expected %.9g", g->line, g->op,
                     g->attrs, how, k, (long long)i, found, expected);
    }
    fac_tensor_free(x);
    fac_tensor_free(y);
}

static void run_case(const golden *g, bool steering_inputs, bool reference) {
    const char *how = steering_inputs ? "reference, axes as input" : "reference";
    if (!reference) how = "chosen solver";
    fac_graph *graph = fac_graph_new();
    fac_value *in[OPERANDS] = { 0 };
    fac_tensor *given[OPERANDS], *out[OPERANDS] = { 0 };
    int inputs = 0;
    for (int k = 0; k < g->nin; k++) {
        if (g->in[k].absent) continue;
        char name[16];
        snprintf(name, sizeof name, "x%d", k);
        fac_type t = fac_tensor_type(g->in[k].tensor);
        if (g->in[k].host && !steering_inputs) {
            fac_dims list = { .n = (int)t.dims.d[0] };
            memcpy(list.d, fac_tensor_data(g->in[k].tensor), (size_t)list.n * sizeof *list.d);
            in[k] = fac_ints(graph, list);
        } else {
            in[k] = fac_input(graph, name, t.dtype, t.dims);
            given[inputs++] = g->in[k].tensor;
        }
    }
    const fac_op *op = fac_op_find(g->op);
    if (!op) fail_msg("line %d: there is no op %s", g->line, g->op);
    fac_value *y = fac_apply(graph, op, g->attrs, g->nin, in);
    for (int k = 0; k < g->nout; k++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", k);
        fac_output(graph, name, k ? fac_value_other(y, k) : y);
    }
    if (fac_graph_check(graph, &err)) fail_msg("line %d: %s", g->line, err.text);
    fac_program *p = NULL;
    if (fac_program_new(graph, device,
                        &(fac_program_opts){ .precision = FAC_PRECISION_HIGHEST,
                                             .solver = reference ? "ref" : NULL },
                        &p, &err) ||
        fac_program_run(p, given, out, &err))
        fail_msg("line %d: %s %s (%s): %s", g->line, g->op, g->attrs, how, err.text);
    for (int k = 0; k < g->nout; k++) {
        compare(g, k, out[k], how);
        fac_tensor_free(out[k]);
    }
    fac_program_free(p);
    fac_graph_free(graph);
}

static void all_of(const char *path, int least, bool steering_inputs, bool reference) {
    golden g;
    int cases = 0;
    file = fopen(path, "r");
    assert_non_null(file);
    line_number = 0;
    while (next_case(&g)) {
        bool steered = false;
        for (int k = 0; k < g.nin; k++) steered = steered || g.in[k].host;
        if (!steering_inputs || steered) {
            run_case(&g, steering_inputs, reference);
            cases++;
        }
        free_case(&g);
    }
    fclose(file);
    assert_true(cases > least);
}

static void all_cases(bool steering_inputs, bool reference) {
    all_of(TEST_DIR "/golden/nn.txt", steering_inputs ? 40 : 200, steering_inputs, reference);
    all_of(TEST_DIR "/golden/onnx.txt", steering_inputs ? 80 : 90, steering_inputs, reference);
    all_of(TEST_DIR "/golden/ops.txt", steering_inputs ? 150 : 1500, steering_inputs, reference);
}

static void the_reference_gives_golden_values(void **state) {
    (void)state;
    all_cases(false, true);
}
static void axes_may_be_inputs(void **state) {
    (void)state;
    all_cases(true, true);
}
static void the_chosen_solvers_give_golden_values(void **state) {
    (void)state;
    all_cases(false, false);
}

static int open_device(void **state) {
    (void)state;
    return fac_device_open("cpu", NULL, &device, &err);
}
static int close_device(void **state) {
    (void)state;
    fac_device_free(device);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_gives_golden_values),
        cmocka_unit_test(axes_may_be_inputs),
        cmocka_unit_test(the_chosen_solvers_give_golden_values),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
