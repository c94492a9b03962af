/* facula export: a model as an ONNX file. */
#include "cli.h"
#include "json.h"
#include "measure/problem.h"

static struct {
    const char *output, *weights, *memory;
    list shapes;
    long opset, batch, seed;
    bool json, problem, qonnx;
} o;
static const option options[] = {
    { "-o", OPTION_OUT, &o.output, "FILE.onnx", "where to write the model" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE",
      "of zoo:NAME: .safetensors, .pth, .npz; without it they are random" },
    LINK_ROOT_OPTION,
    { "--opset", OPTION_INT, &o.opset, "N",
      "opset of the file, 13 to 26; default 18, or the next one that has every op", "[13, 26]" },
    { "--batch", OPTION_INT, &o.batch, "N", "fix the batch size; default: it stays open",
      OPTION_COUNT },
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS",
      "sizes of an input: x=1x3x224x224; may be repeated" },
    { "--problem", OPTION_FLAG, &o.problem, NULL,
      "MODEL is one op: 'softmax(f32[2,5]) axis=1', with random weights" },
    { "--qonnx", OPTION_FLAG, &o.qonnx, NULL,
      "write a network of few bits with QONNX's BipolarQuant, MultiThreshold and Quant" },
    { "--seed", OPTION_INT, &o.seed, "S", "seed of random weights; default 0" },
    { "--memory-limit", OPTION_TEXT, &o.memory, "SIZE",
      "most memory that this process may take, such as 2G" },
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

/* Elements of all parameters and states. */
static double parameters(const fac_graph *g) {
    double n = 0;
    for (int i = 0; i < fac_graph_params(g); i++) {
        fac_type type = fac_value_type(fac_graph_param(g, i));
        n += (double)fac_dims_count(&type.dims);
    }
    return n;
}

static int report(const fac_onnx_saved *s, double count, bool random) {
    char params[32], bytes[32], data[32];
    if (o.json) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddStringToObject(root, "file", o.output);
        cJSON_AddNumberToObject(root, "opset", s->opset);
        cJSON_AddNumberToObject(root, "nodes", s->nodes);
        cJSON_AddNumberToObject(root, "tensors", s->tensors);
        cJSON_AddNumberToObject(root, "parameters", count);
        cJSON_AddNumberToObject(root, "bytes", (double)s->bytes);
        cJSON_AddNumberToObject(root, "data_bytes", (double)s->data);
        cJSON_AddBoolToObject(root, "random", random);
        return json_print(root);
    }
    printf("%s: opset %d, %d node%s, %s parameter%s, %s", o.output, s->opset, s->nodes,
           plural(s->nodes), count_text(count, params, sizeof params), plural(count),
           bytes_text((double)s->bytes, bytes, sizeof bytes));
    if (s->data)
        printf(" and %s in %s.data", bytes_text((double)s->data, data, sizeof data), o.output);
    puts(random ? ", random weights" : "");
    return EXIT_OK;
}

/* Planes of bits have no operator: their weights are written as the levels that they stand for.
 * What is refused still was said before. */
static fac_status write_levels(const fac_graph *g, const fac_onnx_save_opts *opts) {
    fac_error wrong = { 0 };
    fac_graph *plain;
    if (fac_graph_dequantize(g, &plain, &wrong)) return FAC_E_UNSUPPORTED;
    const fac_status status = fac_onnx_save(plain, o.output, opts, &wrong);
    fac_graph_free(plain);
    return status ? FAC_E_UNSUPPORTED : FAC_OK;
}

static fac_status write_qonnx(const fac_graph *g, const fac_onnx_save_opts *opts, fac_error *err) {
    fac_graph *form;
    fac_status status = fac_graph_qonnx(g, &form, err);
    if (status) return status;
    status = fac_onnx_save(form, o.output, opts, err);
    fac_graph_free(form);
    return status;
}

static int write_graph(const fac_graph *g, bool random) {
    fac_error err = { 0 };
    fac_onnx_saved saved = { 0 };
    fac_onnx_save_opts opts = { .opset = (int)o.opset, .batch = o.batch, .saved = &saved };
    fac_graph *quiet = fac_graph_inference(g);
    if (!quiet) return fail_text("out of memory");
    const double count = parameters(quiet);
    fac_status status =
        o.qonnx ? write_qonnx(quiet, &opts, &err) : fac_onnx_save(quiet, o.output, &opts, &err);
    if (!o.qonnx && status == FAC_E_UNSUPPORTED) status = write_levels(quiet, &opts);
    fac_graph_free(quiet);
    return status ? fail(&err) : report(&saved, count, random);
}

static int run(list args) {
    const verb *self = verb_find("export");
    model m = { 0 };
    const int wrong = arguments_fit(self, args, 1, 1, "which model?");
    if (wrong) return wrong;
    if (!o.output) return usage_error(self, "-o FILE.onnx: where to?");
    int code = memory_limit(o.memory);
    if (!code && o.problem)
        code = problem_load(args.at[0], true, (uint64_t)o.seed, &m.graph);
    else if (!code)
        code = model_load(args.at[0], o.weights, &o.shapes, o.seed, &m);
    if (!code) code = write_graph(m.graph, m.random);
    model_free(&m);
    return code;
}

const verb verb_export = {
    .name = "export",
    .summary = "write a model as an ONNX file",
    .usage = "facula export MODEL -o FILE.onnx [options]",
    .options = options,
    .examples =
        "export zoo:resnet50 --weights resnet50.safetensors -o resnet50.onnx\nexport model.txt -o "
        "model.onnx --opset 20\nexport --problem 'softmax(f32[2,5]) axis=1' -o softmax.onnx",
    .run = run,
    .more = "MODEL is zoo:NAME, FILE.onnx, or FILE.txt as `facula show` writes it.  What is for "
            "training alone is\nleft out: dropout is off, and batch norm uses its running "
            "statistics.  More than 2 GiB of parameters\ngo to FILE.onnx.data, which has to stay "
            "beside the model.  `facula op --onnx` prints how each op is\nspelled."
};
