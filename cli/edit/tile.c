/* facula tile: a model whose products fit a matrix unit of limited size. */
#include <stdlib.h>
#include <string.h>
#include "tile.h"
#include "measure/problem.h"

static struct {
    const char *output, *weights, *target, *mode, *sum, *conv, *only, *gemm, *memory;
    list shapes;
    long m, n, k, batch, opset, seed;
    bool pad, best, json;
} o;
static const option options[] = {
    { "-o", OPTION_OUT, &o.output, "FILE.onnx",
      "where to write the model; without it only the report is printed" },
    { "--max-m", OPTION_INT, &o.m, "M", "most rows of a product (a convolution's output channels)",
      OPTION_COUNT },
    { "--max-n", OPTION_INT, &o.n, "N",
      "most columns of a product (a convolution's output positions)", OPTION_COUNT },
    { "--max-k", OPTION_INT, &o.k, "K",
      "most terms of a product (a convolution's channels times taps)", OPTION_COUNT },
    { "--target", OPTION_TEXT, &o.target, "FILE.json",
      "limits, alignment, memory, types and rates of a device: see below" },
    { "--mode", OPTION_TEXT, &o.mode, "MODE",
      "unroll (default): each tile is a node; function: tiles of results are calls; loop: equal "
      "tiles are loops; schedule: the model stays, the tiles are listed as JSON" },
    { "--sum", OPTION_TEXT, &o.sum, "HOW",
      "how to add along K: chain (default; each product adds to the last one), tree or sum" },
    { "--conv", OPTION_TEXT, &o.conv, "HOW",
      "how convolutions become products: patches (default; K is channels times taps) or taps (a "
      "product for each)" },
    { "--pad", OPTION_FLAG, &o.pad, NULL,
      "add zeros after the end: tiles are equal, or the target's multiples, and not smaller" },
    { "--best", OPTION_FLAG, &o.best, NULL,
      "choose for each product the tiles that take the least time by the target's rates" },
    { "--only", OPTION_TEXT, &o.only, "NAME",
      "only these layers, separated by commas: their names in any view, modules, op:gemm or "
      "kind:Linear" },
    { "--gemm", OPTION_TEXT, &o.gemm, "MxNxK",
      "instead of a model: one product, with random weights" },
    { "--seed", OPTION_INT, &o.seed, "S", "seed of random weights; default 0" },
    { "--batch", OPTION_INT, &o.batch, "N", "size of the open first dim of the inputs; default 1",
      OPTION_COUNT },
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS",
      "sizes of an input: x=1x3x224x224; may be repeated" },
    { "--opset", OPTION_INT, &o.opset, "N", "opset of FILE.onnx, 13 to 26; default 18",
      "[13, 26]" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME" },
    LINK_ROOT_OPTION,
    { "--memory-limit", OPTION_TEXT, &o.memory, "SIZE",
      "most memory that this process may take, such as 2G" },
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

static const char *const modes[] = { "unroll", "function", "loop", "schedule", NULL };
static const char *const sum_names[] = { "chain", "tree", "sum", NULL };
static const char *const conv_names[] = { "patches", "taps", NULL };

/* The place of a word in a list, 0 for none; -1 when it is not there. */
static int place(const char *word, const char *const *names) {
    int k = 0;
    while (word && names[k] && strcmp(names[k], word)) k++;
    return names[k] ? k : -1;
}

static int work(const fac_graph *g, const fac_tile_opts *opts, const tile_device *device,
                bool schedule) {
    fac_error err = { 0 };
    fac_graph *quiet = fac_graph_inference(g), *cut = NULL;
    fac_tiling *t = NULL;
    fac_onnx_saved saved = { 0 };
    if (!quiet) return fail_text("out of memory");
    int code = EXIT_OK;
    if (fac_graph_tile(quiet, opts, opts->count_only ? NULL : &cut, &t, &err)) code = fail(&err);
    const fac_onnx_save_opts how = { .opset = (int)o.opset, .saved = &saved };
    if (!code && o.output && fac_onnx_save(cut, o.output, &how, &err)) code = fail(&err);
    const tile_result r = { t,
                            quiet,
                            cut,
                            o.output ? &saved : NULL,
                            device,
                            o.output,
                            schedule ? "schedule" : modes[opts->mode],
                            sum_names[opts->sum],
                            o.batch };
    if (!code) code = o.json || schedule ? tile_print_json(&r) : tile_print(&r);
    fac_tiling_free(t);
    fac_graph_free(cut);
    fac_graph_free(quiet);
    return code;
}

static int load(list args, model *m) {
    if (!o.gemm) return model_load(args.at[0], o.weights, &o.shapes, o.seed, m);
    fac_dims d;
    char problem[128];
    if (!dims_parse(o.gemm, &d) || d.n != 3 || d.d[0] < 1 || d.d[1] < 1 || d.d[2] < 1)
        return fail_text("--gemm needs MxNxK such as 196x256x512, not \"%s\"", o.gemm);
    snprintf(problem, sizeof problem, "matmul(f32[%lld,%lld], f32[%lld,%lld])", (long long)d.d[0],
             (long long)d.d[2], (long long)d.d[2], (long long)d.d[1]);
    return problem_load(problem, true, (uint64_t)o.seed, &m->graph);
}

static int run(list args) {
    const verb *self = verb_find("tile");
    const int mode = place(o.mode, modes), sum = place(o.sum, sum_names),
              conv = place(o.conv, conv_names);
    const bool schedule = mode == 3;
    model m = { 0 };
    tile_device device = { .pad = false };
    if (args.n != !o.gemm)
        return usage_error(self, o.gemm ? "a model, or --gemm: not both" : "which model?");
    if (sum < 0) return usage_error(self, "--sum is chain, tree or sum, not \"%s\"", o.sum);
    if (conv < 0) return usage_error(self, "--conv is patches or taps, not \"%s\"", o.conv);
    if (mode < 0)
        return usage_error(self, "--mode is unroll, function, loop or schedule, not \"%s\"",
                           o.mode);
    if (schedule && o.output)
        return usage_error(self, "--mode schedule writes no model: leave out -o");
    int code = o.target ? tile_device_load(o.target, &device) : EXIT_OK;
    if (!code && !o.target && !o.m && !o.n && !o.k)
        code = usage_error(self, "no limit: give --max-m, --max-n, --max-k or --target");
    if (!code) code = memory_limit(o.memory);
    if (!code) code = load(args, &m);
    if (!code) code = batch_fits(m.graph, fac_graph_inputs(m.graph) > 0, o.batch);
    const fac_tile_opts opts = { .m = o.m,
                                 .n = o.n,
                                 .k = o.k,
                                 .sum = (fac_tile_sum)sum,
                                 .pad = o.pad || device.pad,
                                 .best = o.best,
                                 .count_only = !o.output,
                                 .batch = o.batch,
                                 .only = o.only,
                                 .conv = (fac_tile_conv)conv,
                                 .mode = schedule ? FAC_TILE_UNROLL : (fac_tile_mode)mode,
                                 .target = &device.target };
    if (!code) code = work(m.graph, &opts, &device, schedule);
    model_free(&m);
    return code;
}

const verb verb_tile = {
    .name = "tile",
    .summary = "cut the matrix products of a model for a unit of limited size",
    .usage = "facula tile MODEL --max-m M --max-n N --max-k K [-o OUT.onnx] [options]",
    .options = options,
    .examples =
        "tile model.onnx --max-m 64 --max-n 64 --max-k 64 -o tiled.onnx\ntile model.onnx --target "
        "unit.json --best --json\ntile --gemm 196x256x512 --max-m 32 --max-n 32 --max-k 128",
    .run = run,
    .list = tile_device_keys,
    .more = "Products of linear, gemm, matmul, attention and recurrent cells, and convolutions as "
            "products of\nweights and patches, become products of at most M x N x K in ordinary "
            "ONNX nodes; weights are cut in\nthe file.  `facula verify MODEL OUT.onnx` proves that "
            "both are the same.  docs/ANALYSIS.md tells what\nthe report means."
};
