/* A network with one hidden layer learns XOR, from tensors, ops and fac_grad alone: no layers, no
 * optimizer, no loop of ours.
 *
 *   h = tanh(x W1 + b1)      p = sigmoid(h W2 + b2)      loss = mean (p - y)^2
 *   each parameter:  w <- w - rate dloss/dw
 *
 * The graph says all of that once; fac_update makes it a program that changes its own parameters in
 * every run. */
#include <stdio.h>
#include "facula/facula.h"

enum { HIDDEN = 8, PARAMS = 4, STEPS = 2000 };

static fac_value *param(fac_graph *g, const char *name, fac_dims dims) {
    fac_tensor *t = NULL;
    float start[HIDDEN * 2];
    fac_type type = { FAC_F32, dims };
    for (int i = 0; i < HIDDEN * 2; i++)
        start[i] = (float)(i * 7 % 11) / 5.5f - 1; /* numbers in -1..1, no two alike */
    if (fac_tensor_new(NULL, FAC_F32, dims, &t, NULL))
        return fac_fail_graph(g, FAC_E_NOMEM, "%s: no memory", name);
    fac_status status = fac_tensor_write(t, start, fac_type_bytes(&type), NULL);
    fac_value *v =
        status ? fac_fail_graph(g, status, "%s cannot be written", name) : fac_param(g, name, t);
    fac_tensor_free(t); /* the graph keeps a reference of its own */
    return v;
}

static fac_value *numbers(fac_graph *g, fac_dims dims, const float *x) {
    fac_tensor *t = NULL;
    if (fac_tensor_borrow(FAC_F32, dims, NULL, x, NULL, NULL, &t, NULL))
        return fac_fail_graph(g, FAC_E_NOMEM, "no memory");
    fac_value *v = fac_const(g, t);
    fac_tensor_free(t);
    return v;
}

static fac_graph *build(void) {
    static const float points[4][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } },
                       answers[4][1] = { { 0 }, { 1 }, { 1 }, { 0 } };
    fac_graph *g = fac_graph_new();
    if (!g) return NULL;
    fac_value *x = numbers(g, fac_shape(4, 2), points[0]),
              *y = numbers(g, fac_shape(4, 1), answers[0]);
    fac_value *w[PARAMS] = { param(g, "W1", fac_shape(2, HIDDEN)),
                             param(g, "b1", fac_shape(HIDDEN)),
                             param(g, "W2", fac_shape(HIDDEN, 1)), param(g, "b2", fac_shape(1)) };
    fac_value *h = fac_tanh(fac_add(fac_matmul(x, w[0]), w[1]));
    fac_value *p = fac_sigmoid(fac_add(fac_matmul(h, w[2]), w[3]));
    fac_value *d = fac_sub(p, y), *loss = fac_mean(fac_mul(d, d), (fac_dims){ 0 }, false);

    fac_value *dw[PARAMS], *rate = fac_number(g, FAC_F32, 2);
    fac_grad(loss, PARAMS, w, dw);
    for (int i = 0; i < PARAMS; i++) fac_update(w[i], fac_sub(w[i], fac_mul(rate, dw[i])));
    fac_output(g, "loss", loss);
    fac_output(g, "p", p);
    return g;
}

int main(void) {
    fac_error err = { 0 };
    fac_device *device = NULL;
    fac_program *program = NULL;
    fac_tensor *out[2] = { NULL };
    float loss = 0, p[4] = { 0 };
    fac_graph *g = build();
    fac_status status = g ? fac_device_open("cpu", NULL, &device, &err) : FAC_E_NOMEM;
    if (!status) status = fac_program_new(g, device, NULL, &program, &err);
    for (int step = 0; step < STEPS && !status; step++) {
        status = fac_program_run(program, NULL, out, &err);
        if (!status) status = fac_tensor_read(out[0], &loss, sizeof loss, &err);
        if (!status && step % 400 == 0) printf("step %4d   loss %.5f\n", step, loss);
    }
    if (!status) status = fac_tensor_read(out[1], p, sizeof p, &err);
    if (status)
        fprintf(stderr, "mlp_from_scratch: %s\n", err.text);
    else
        printf("0 xor 0 = %.2f   0 xor 1 = %.2f   1 xor 0 = %.2f   1 xor 1 = %.2f\n", p[0], p[1],
               p[2], p[3]);
    fac_tensor_free(out[0]);
    fac_tensor_free(out[1]);
    fac_program_free(program);
    fac_graph_free(g);
    fac_device_free(device);
    return status || loss > 0.01f;
}
