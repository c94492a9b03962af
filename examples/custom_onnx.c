/* Operators of one's own in ONNX files: a model that uses com.example's Softcap is written, read
 * and run.
 *
 *   softcap   y = c tanh(x / c)      dy/dx = 1 - (y / c)^2
 *
 * The descriptor says all that the engine needs: types and shapes (infer), what it means (ref), its
 * gradient, and how files spell it (onnx).  It is asked before the built-in operators, so it may
 * also replace one of these.  With .map, a formula for each element type, instead of .ref it would
 * run as a kernel, fused with its neighbours (facula/op.h). */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "facula/facula.h"
#include "facula/op.h"

typedef struct softcap_attrs {
    double cap;
} softcap_attrs;

static const fac_attr softcap_table[] = { { "cap", FAC_A_REAL, offsetof(softcap_attrs, cap), 0, 1,
                                            1e-6, 1e6, NULL,
                                            "largest |y|; 1 when it is not given" },
                                          { 0 } };

static fac_status softcap_ref(const fac_ref *r, fac_error *err) {
    const double cap = ((const softcap_attrs *)r->attrs)->cap;
    (void)err;
    for (int64_t i = 0; i < fac_dims_count(&r->out[0].type.dims); i++)
        r->out[0].f[i] = cap * tanh(r->in[0].f[i] / cap);
    return FAC_OK;
}

static void softcap_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_graph *g = fac_value_graph(dy[0]);
    const fac_dtype dtype = fac_value_type(dy[0]).dtype;
    fac_value *part =
        fac_mul(n->out[0], fac_number(g, dtype, 1 / ((const softcap_attrs *)n->attrs)->cap));
    dx[0] = fac_mul(dy[0], fac_sub(fac_number(g, dtype, 1), fac_mul(part, part)));
}

/* Domain, name, and the version of the domain since which it is there.  Ports and attributes are
 * read by name. */
static const fac_onnx softcap_onnx[] = { { "com.example", "Softcap", 1, 0, NULL, NULL, 0 }, { 0 } };

static const fac_op softcap_op = { .name = "softcap",
                                   .doc = "c tanh(x / c)",
                                   .in = fac_ports_x,
                                   .out = fac_ports_y,
                                   .attrs = softcap_table,
                                   .attrs_size = sizeof(softcap_attrs),
                                   .infer = fac_infer_same,
                                   .ref = softcap_ref,
                                   .grad = softcap_grad,
                                   .onnx = softcap_onnx };
static const fac_op *const own[] = { &softcap_op };

static fac_status write_model(const char *path, fac_error *err) {
    fac_graph *g = fac_graph_new();
    if (!g) return FAC_E_NOMEM;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3));
    fac_output(g, "y", fac_emit(&softcap_op, &(softcap_attrs){ 2 }, 1, &x));
    const fac_status status = fac_onnx_save(g, path, NULL, err);
    fac_graph_free(g);
    return status;
}

/* The largest error of what the model makes of some numbers, and of the gradient. */
static fac_status check(fac_graph *g, double *worst, fac_error *err) {
    const float x[3] = { -4, 0.5f, 3 };
    fac_value *loss = fac_sum(fac_graph_output(g, 0), (fac_dims){ 0 }, false),
              *in = fac_graph_input(g, 0), *dx;
    fac_device *device = NULL;
    fac_program *p = NULL;
    fac_tensor *t = NULL, *out[2] = { NULL };
    fac_grad(loss, 1, &in, &dx);
    fac_output(g, "dx", dx);
    fac_status status = fac_device_open("cpu", NULL, &device, err);
    if (!status) status = fac_program_new(g, device, NULL, &p, err);
    if (!status) status = fac_tensor_new(NULL, FAC_F32, fac_shape(1, 3), &t, err);
    if (!status) status = fac_tensor_write(t, x, sizeof x, err);
    if (!status) status = fac_program_run(p, &t, out, err);
    for (int k = 0; k < 3 && !status; k++) {
        const double y = 2 * tanh(x[k] / 2.0), slope = 1 - y * y / 4;
        *worst = fmax(*worst, fabs(((const float *)fac_tensor_data(out[0]))[k] - y));
        *worst = fmax(*worst, fabs(((const float *)fac_tensor_data(out[1]))[k] - slope));
    }
    for (int k = 0; k < 2; k++) fac_tensor_free(out[k]);
    fac_tensor_free(t);
    fac_program_free(p);
    fac_device_free(device);
    return status;
}

int main(void) {
    char path[] = "/tmp/softcap-XXXXXX.onnx";
    fac_error err = { 0 };
    fac_graph *g = NULL;
    double worst = 0;
    const int fd = mkstemps(path, 5);
    if (fd < 0) return 1;
    close(fd);
    fac_status status = write_model(path, &err);
    if (!status && fac_onnx_load(path, NULL, &g, &err) == FAC_OK)
        status = FAC_E_INTERNAL; /* nobody knows it yet */
    if (!status) printf("without it: %s\n", strstr(err.text, "node"));
    if (!status) status = fac_onnx_load(path, &(fac_onnx_opts){ .nops = 1, .ops = own }, &g, &err);
    if (!status) status = check(g, &worst, &err);
    unlink(path);
    if (status)
        fprintf(stderr, "custom_onnx: %s\n", err.text[0] ? err.text : fac_status_name(status));
    else
        printf("with it: it runs, and so does its gradient; largest error %g\n", worst);
    fac_graph_free(g);
    return status || worst > 1e-6;
}
