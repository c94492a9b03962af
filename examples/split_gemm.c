/* A matrix unit takes products of at most 64 x 64 x 64: the three Gemms at the end of AlexNet
 * become 14,336 of them, and the network is proved to be the same.  split_gemm [MODEL.onnx | zoo
 * name [LIMIT [OUT.onnx]]]
 *
 * The fully connected layers are tiled, chosen by their operators; the convolutions stay.  Then all
 * products are counted in the model that came
 * out, and fac_verify compares both networks on remainders: whatever the tiles are added up in, the
 * sums are exact, so every output has to have the same bits. */
#include <facula/backend.h>
#include <facula/facula.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int report(const fac_error *err) {
    fprintf(stderr, "split_gemm: %s\n", err->text);
    return 1;
}

/* *model becomes the one whose fully connected layers are cut. */
static fac_status split(fac_graph **model, const fac_tile_opts *limits, fac_error *err) {
    fac_graph *cut = NULL;
    fac_tiling *t = NULL;
    fac_tile_opts own = *limits;
    own.only = "op:linear,op:gemm";
    const fac_status status = fac_graph_tile(*model, &own, &cut, &t, err);
    if (status) return status;
    for (int i = 0; i < fac_tiling_rows(t); i++) {
        const fac_tile_row *r = fac_tiling_row(t, i);
        printf("%-28s %5lld x %5lld x %5lld -> %6lld products, %.1f %% used%s%s\n", r->name,
               (long long)r->m, (long long)r->n, (long long)r->k, (long long)r->tiles,
               100 * r->utilisation, *r->advice ? "; " : "", r->advice);
    }
    fac_tiling_free(t);
    fac_graph_free(*model);
    *model = cut;
    return FAC_OK;
}

/* How many products of fully connected layers a model has, and how many are larger than the limit.
 */
static fac_status count(const fac_graph *g, int64_t limit, long *products, long *larger,
                        fac_error *err) {
    fac_tiling *t = NULL;
    const fac_status status = fac_graph_tile(
        g, &(fac_tile_opts){ .m = limit, .n = limit, .k = limit, .count_only = true }, NULL, &t,
        err);
    if (status) return status;
    *products = *larger = 0;
    for (int i = 0; i < fac_tiling_rows(t); i++) {
        const fac_tile_row *r = fac_tiling_row(t, i);
        if (strcmp(r->op, "linear") && strcmp(r->op, "gemm")) continue;
        *products += 1;
        *larger += r->m > limit || r->n > limit || r->k > limit;
    }
    fac_tiling_free(t);
    return FAC_OK;
}

/* An ONNX file, or a network of the zoo by its name. */
static fac_status load(const char *what, fac_graph **out, fac_error *err) {
    return strstr(what, ".onnx") ? fac_onnx_load(what, NULL, out, err)
                                 : fac_zoo_new(what, NULL, 0, out, err);
}

static fac_status prove(const fac_graph *before, const fac_graph *after, fac_verdict *v,
                        fac_error *err) {
    fac_device *device = NULL;
    const fac_status status = fac_device_open("cpu", NULL, &device, err);
    if (status) return status;
    const fac_verify_opts exact = { .mode = FAC_VERIFY_EXACT, .rounds = 1 };
    const fac_status judged = fac_verify(before, after, device, &exact, v, err);
    fac_device_free(device);
    return judged;
}

int main(int argc, char **argv) {
    fac_error err = { FAC_OK, "" };
    fac_graph *model = NULL, *tiled = NULL;
    fac_verdict verdict = { .same = FAC_CANNOT_TELL };
    const long limit = argc > 2 ? strtol(argv[2], NULL, 10) : 64;
    const fac_tile_opts limits = { .m = limit, .n = limit, .k = limit };
    long products = 0, larger = 0;
    fac_status status = load(argc > 1 ? argv[1] : "alexnet", &model, &err);
    if (!status && !(tiled = fac_graph_inference(model))) status = FAC_E_NOMEM;
    if (!status) status = split(&tiled, &limits, &err);
    if (!status) status = count(tiled, limit, &products, &larger, &err);
    if (!status && argc > 3) status = fac_onnx_save(tiled, argv[3], NULL, &err);
    if (!status) {
        printf("%ld products in the model, %ld of them larger than %ld x %ld x %ld\n", products,
               larger, limit, limit, limit);
        status = prove(model, tiled, &verdict, &err);
    }
    if (!status)
        printf("%s: %s\n", verdict.same == FAC_SAME ? "the same network" : "NOT THE SAME",
               verdict.why);
    fac_graph_free(tiled);
    fac_graph_free(model);
    if (status) return report(&err);
    return verdict.same == FAC_SAME && !larger ? 0 : 1;
}
