/* facula pack: a network of few bits as a packed file. */
#include <sys/stat.h>
#include "cli.h"
#include "json.h"

static struct {
    const char *output, *rest;
    bool json;
} o;
static const option options[] = {
    { "-o", OPTION_OUT, &o.output, "FILE.fac", "where to write the packed file" },
    { "--rest", OPTION_TEXT, &o.rest, "int8|float",
      "weights of layers without levels; default float" },
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

static int report(const fac_packing *p, double bytes) {
    char file[32], before[32];
    if (o.json) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddStringToObject(root, "file", o.output);
        cJSON_AddNumberToObject(root, "layers", p->layers);
        cJSON_AddNumberToObject(root, "byte_layers", p->byte_layers);
        cJSON_AddNumberToObject(root, "float_layers", p->float_layers);
        cJSON_AddNumberToObject(root, "bytes", bytes);
        cJSON_AddNumberToObject(root, "weight_bytes", p->bytes);
        cJSON_AddNumberToObject(root, "weight_bytes_before", p->bytes_before);
        return json_print(root);
    }
    printf("%s: %s; weights of %d layer%s are bits", o.output, bytes_text(bytes, file, sizeof file),
           p->layers, plural(p->layers));
    if (p->byte_layers) printf(", of %d bytes", p->byte_layers);
    if (p->float_layers) printf(", of %d floats", p->float_layers);
    printf("; as floats all take %s, %.1f times as much\n",
           bytes_text(p->bytes_before, before, sizeof before), p->bytes_before / p->bytes);
    return EXIT_OK;
}

static int run(list args) {
    fac_error err = { 0 };
    fac_packing p;
    struct stat s;
    model m = { 0 };
    const int wrong = arguments_fit(verb_find("pack"), args, 1, 1, "which model?");
    if (wrong) return wrong;
    if (!o.output) return usage_error(verb_find("pack"), "-o FILE.fac: where to?");
    bool bytes;
    if (!rest_chosen(o.rest, &bytes))
        return usage_error(verb_find("pack"), "--rest is int8 or float, not \"%s\"", o.rest);
    int code = model_load(args.at[0], NULL, NULL, 0, &m);
    if (!code && bytes) code = with_byte_weights(&m.graph);
    if (!code && fac_packed_save(m.graph, o.output, &p, &err)) code = fail(&err);
    model_free(&m);
    if (code) return code;
    return report(&p, stat(o.output, &s) ? 0 : (double)s.st_size);
}

const verb verb_pack = {
    .name = "pack",
    .summary = "write a network of few bits as a packed file",
    .options = options,
    .examples =
        "pack runs/bits/model.onnx -o bits.fac\npack runs/bits/model.onnx -o bits.fac --rest int8",
    .run = run,
    .usage = "facula pack MODEL -o FILE.fac",
    .more = "MODEL is an ONNX file whose weights have 1 to 3 bits, that is at most 8 levels in a "
            "filter that are\nsums of +-v_j, such as those that `facula train --quantize` leaves; "
            "or a packed file, of 1 to 4 bits.\nThe result is a model for every verb: weights are "
            "planes of bits with their levels, activations are\nquantized as before."
};
