/* facula verify: whether two models are the same function. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "json.h"

static struct {
    device_options device;
    const char *mode, *weights;
    list shapes, inputs;
    long seed, rounds, batch;
    double rtol, atol;
    bool json;
} o;
static const option options[] = {
    { "--mode", OPTION_TEXT, &o.mode, "MODE", "exact (default): small integers, equal bits; bound: rounding errors bounded; data: a tolerance" },
    { "--inputs", OPTION_LIST, &o.inputs, "FILE", "tensors (.npy, .npz, .pb) instead of random ones, in the order of the inputs" },
    { "--rounds", OPTION_INT, &o.rounds, "N", "of fresh random inputs; default 3" },
    { "--seed", OPTION_INT, &o.seed, "S", "of the random inputs" },
    { "--rtol", OPTION_REAL, &o.rtol, "X", "--mode data: |a - b| <= atol + rtol |b|; default 1e-4" },
    { "--atol", OPTION_REAL, &o.atol, "X", "default 1e-5" },
    { "--batch", OPTION_INT, &o.batch, "N", "size of the open first dim; default 1" },
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS", "sizes of an input, of both models" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME" },
    DEVICE_OPTIONS(o.device),
    { "--json", OPTION_FLAG, &o.json, NULL, "for machines" },
    { 0 } };

enum { EXIT_CANNOT_TELL = 2, MOST = 64 };

static int report(const fac_verdict *v) {
    static const char *const words[] = { "same", "different", "cannot tell" };
    static const int codes[] = { EXIT_OK, EXIT_FAILED, EXIT_CANNOT_TELL };
    if (o.json) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddStringToObject(root, "verdict", words[v->same]);
        cJSON_AddStringToObject(root, "mode", o.mode ? o.mode : "exact");
        cJSON_AddStringToObject(root, "why", v->why);
        cJSON_AddStringToObject(root, "first_difference", v->first);
        if (isfinite(v->worst)) json_number(root, "largest_difference", v->worst, 9);
        if (isfinite(v->ratio)) json_number(root, "largest_ratio", v->ratio, 9);
        json_number(root, "elements", v->elements, 17);
        const int code = json_print(root);
        return code ? code : codes[v->same];
    }
    printf("%s%s%s: %s\n", colour() ? v->same == FAC_SAME ? "\033[32m" : "\033[31m" : "", words[v->same],
           colour() ? "\033[0m" : "", v->why);
    if (v->same == FAC_SAME && v->worst > 0) printf("largest difference %.3g, %.2g of what is allowed\n", v->worst, v->ratio);
    if (*v->first) printf("the first value that differs: %s\n", v->first);
    return codes[v->same];
}

static int work(list args, const fac_verify_opts *given) {
    fac_error err = { 0 };
    model a = { 0 }, b = { 0 };
    fac_device *device = NULL;
    fac_tensor *in[MOST] = { NULL };
    fac_verdict v;
    fac_verify_opts opts = *given;
    int code = model_load(args.at[0], o.weights, &o.shapes, 0, &a);
    if (!code) code = model_load(args.at[1], o.weights, &o.shapes, 0, &b);
    if (!code) code = device_open(&o.device, &device);
    for (int i = 0; i < o.inputs.n && i < MOST && !code; i++)
        if (tensor_load(o.inputs.at[i], &in[i], &err)) code = fail(&err);
    opts.n = o.inputs.n;
    opts.inputs = in;
    if (!code && fac_verify(a.graph, b.graph, device, &opts, &v, &err)) code = fail(&err);
    else if (!code) code = report(&v);
    for (int i = 0; i < MOST; i++) fac_tensor_free(in[i]);
    fac_device_free(device);
    model_free(&a);
    model_free(&b);
    return code;
}

static int run(list args) {
    static const char *const modes[] = { "exact", "bound", "data" };
    const verb *self = verb_find("verify");
    int mode = 0;
    if (args.n != 2) return usage_error(self, "which two models?");
    while (o.mode && mode < 3 && strcmp(modes[mode], o.mode)) mode++;
    if (mode == 3) return usage_error(self, "--mode is exact, bound or data, not \"%s\"", o.mode);
    if (o.inputs.n > MOST) return usage_error(self, "at most %d inputs", MOST);
    if (o.inputs.n && !mode) return usage_error(self, "--inputs goes with --mode bound or data: exact makes its own integers");
    if (o.rounds < 0 || o.batch < 0 || o.rtol < 0 || o.atol < 0)
        return usage_error(self, "--rounds, --batch, --rtol and --atol are positive");
    const fac_verify_opts opts = { .mode = (fac_verify_mode)mode, .seed = (uint64_t)o.seed, .rounds = (int)o.rounds,
                                   .batch = o.batch, .rtol = o.rtol,
                                   .atol = o.atol };
    return work(args, &opts);
}

const verb verb_verify = {
    .name = "verify", .summary = "whether two models are the same function", .usage = "facula verify A B [options]",
    .options = options, .run = run,
    .more = "exact replaces weights by small integers (equal ones stay equal) and functions of one number by x mod 7, in both models:\n"
            "sums are then exact in any order, so rewriting products must keep every bit.  bound carries gamma_K sum |a||b| through\n"
            "the network beside real numbers.  Exit code: 0 the same, 1 different (or an error, on stderr), 2 cannot tell." };
