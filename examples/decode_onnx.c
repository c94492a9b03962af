/* A decoder in ONNX that takes and gives keys and values: decode_onnx MODEL.onnx TOKENS ID...
 *
 * The first input is ids i64[1,n], the others are what was kept so far, one for each of the outputs
 * after the logits f32[1,n,vocabulary].  The ids of the prompt are read at once, then each step
 * reads the most probable token.  scripts/peers/check_gpt2_onnx.py exports such a model and
 * compares. */
#include <facula/facula.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_IDS = 1024 };

typedef struct decoder {
    fac_program *program;
    fac_tensor **in, **out; /* ids and what is kept; logits and what is to be kept */
    int n;                  /* of each */
} decoder;

/* Nothing is kept in the beginning: dims that may be any are 0. */
static fac_status empty(const fac_graph *g, int k, fac_tensor **out, fac_error *err) {
    fac_type type = fac_value_type(fac_graph_input(g, k));
    for (int d = 0; d < type.dims.n; d++)
        if (type.dims.d[d] < 0) type.dims.d[d] = 0;
    return fac_tensor_new(NULL, type.dtype, type.dims, out, err);
}

static fac_status begin(const char *path, fac_device *cpu, decoder *d, fac_error *err) {
    fac_graph *g;
    fac_status status = fac_onnx_load(path, NULL, &g, err);
    if (status) return status;
    d->n = fac_graph_inputs(g);
    d->in = calloc((size_t)d->n + 1, sizeof *d->in);
    d->out = calloc((size_t)fac_graph_outputs(g) + 1, sizeof *d->out);
    if (!d->in || !d->out || d->n < 2 || fac_graph_outputs(g) != d->n) {
        fprintf(stderr, "decode_onnx: a model with ids, and as many inputs as outputs, please\n");
        status = FAC_E_ARGUMENT;
    }
    for (int k = 1; k < d->n && !status; k++) status = empty(g, k, &d->in[k], err);
    if (!status) status = fac_program_new(g, cpu, NULL, &d->program, err);
    fac_graph_free(g);
    return status;
}

static void end(decoder *d) {
    for (int k = 0; d->in && d->out && k < d->n; k++) {
        fac_tensor_free(d->in[k]);
        fac_tensor_free(d->out[k]);
    }
    free(d->in);
    free(d->out);
    fac_program_free(d->program);
}

/* What was given is kept: no byte of it is copied. */
static void keep(decoder *d) {
    for (int k = 1; k < d->n; k++) {
        fac_tensor_free(d->in[k]);
        d->in[k] = d->out[k];
        d->out[k] = NULL;
    }
}

static int64_t best_of_last(const fac_tensor *logits) {
    const fac_dims d = fac_tensor_type(logits).dims;
    const float *row = (const float *)fac_tensor_data(logits) + (d.d[1] - 1) * d.d[2];
    int64_t best = 0;
    for (int64_t k = 1; k < d.d[2]; k++)
        if (row[k] > row[best]) best = k;
    return best;
}

/* Reads n tokens; the most probable one after them. */
static fac_status step(decoder *d, const int64_t *ids, int64_t n, int64_t *next, fac_error *err) {
    fac_tensor_free(d->in[0]);
    fac_tensor_free(d->out[0]);
    d->in[0] = d->out[0] = NULL;
    fac_status status = fac_tensor_new(NULL, FAC_I64, fac_shape(1, n), &d->in[0], err);
    if (!status) status = fac_tensor_write(d->in[0], ids, (size_t)n * sizeof *ids, err);
    if (!status) status = fac_program_run(d->program, d->in, d->out, err);
    if (status) return status;
    *next = best_of_last(d->out[0]);
    keep(d);
    return FAC_OK;
}

int main(int argc, char **argv) {
    fac_error err = { 0 };
    fac_device *cpu = NULL;
    decoder d = { 0 };
    int64_t ids[MOST_IDS], n = argc - 3;
    if (argc < 4 || n > MOST_IDS) {
        fprintf(stderr, "usage: decode_onnx MODEL.onnx TOKENS ID...\n");
        return 2;
    }
    for (int k = 3; k < argc; k++) ids[k - 3] = strtoll(argv[k], NULL, 10);
    fac_status status = fac_device_open("cpu", NULL, &cpu, &err);
    if (!status) status = begin(argv[1], cpu, &d, &err);
    for (long k = strtol(argv[2], NULL, 10); k > 0 && !status; k--) {
        int64_t next = 0;
        status = step(&d, ids, n, &next, &err);
        if (!status) printf("%lld\n", (long long)next);
        fflush(stdout);
        ids[0] = next;
        n = 1;
    }
    if (status && *err.text) fprintf(stderr, "decode_onnx: %s\n", err.text);
    end(&d);
    fac_device_free(cpu);
    return status ? 1 : 0;
}
