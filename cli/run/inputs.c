/* See inputs.h. */
#include "inputs.h"
#include <stdlib.h>
#include <string.h>

static int input_index(const fac_graph *g, const char *name, size_t n) {
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        const char *have = fac_value_name(fac_graph_input(g, i));
        if (strlen(have) == n && !strncmp(have, name, n)) return i;
    }
    return -1;
}

static int load(const model *m, const input_options *o, int i, const char *path, inputs *to) {
    fac_error err = { 0 };
    const fac_value *v = fac_graph_input(m->graph, i);
    fac_type type = input_type(v, &o->shapes, 0), declared = fac_value_type(v);
    if (to->tensor[i]) return fail_text("input %s is given twice", fac_value_name(v));
    if (!is_image(path)) return tensor_load(path, &to->tensor[i], &err) ? fail(&err) : EXIT_OK;
    if (o->shapes.n)
        declared.dims = type.dims; /* sizes that were asked for count as the model's own */
    int code = photo_plan_input(&o->photo, m, declared, &to->plan);
    if (code) return code;
    to->photo[i] = path;
    return photo_tensor(path, &to->plan, &to->tensor[i], &err) ? fail(&err) : EXIT_OK;
}

static int load_named(const model *m, const input_options *o, const verb *v, const char *text,
                      inputs *to) {
    const char *equals = strchr(text, '=');
    const int i = equals ? input_index(m->graph, text, (size_t)(equals - text)) : -1;
    char names[256] = "";
    size_t at = 0;
    if (!equals) return usage_error(v, "--input needs NAME=FILE, not \"%s\"", text);
    if (i >= 0) return load(m, o, i, equals + 1, to);
    for (int k = 0; k < fac_graph_inputs(m->graph) && at < sizeof names; k++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", k ? ", " : "",
                               fac_value_name(fac_graph_input(m->graph, k)));
    return fail_text("the model has no input \"%.*s\"; it has: %s", (int)(equals - text), text,
                     names);
}

static int make_random(const model *m, const input_options *o, int i, inputs *to) {
    fac_error err = { 0 };
    const fac_value *v = fac_graph_input(m->graph, i);
    const fac_type t = input_type(v, &o->shapes, 0), declared = fac_value_type(v);
    char dims[128], word[1024];
    if (!o->random)
        return fail_text("input %s %s[%s] is not given: add --input %s=FILE, or --random",
                         fac_value_name(v), fac_dtype_get(declared.dtype)->name,
                         dims_text(m->graph, &declared.dims, dims, sizeof dims),
                         shell_word(fac_value_name(v), word, sizeof word));
    to->random[i] = true;
    return tensor_random(t, (uint64_t)o->seed, (uint64_t)i, &to->tensor[i], &err) ? fail(&err)
                                                                                  : EXIT_OK;
}

int inputs_load(const model *m, const input_options *o, const verb *v, list files, inputs *to) {
    const int n = fac_graph_inputs(m->graph);
    int code = EXIT_OK;
    *to = (inputs){ .tensor = tensors_new(n),
                    .photo = calloc((size_t)n + 1, sizeof *to->photo),
                    .random = calloc((size_t)n + 1, sizeof *to->random),
                    .n = n };
    if (!to->tensor || !to->photo || !to->random) return fail_text("out of memory");
    for (int k = 0; k < o->named.n && !code; k++) code = load_named(m, o, v, o->named.at[k], to);
    for (int k = 0, i = 0; k < files.n && !code; k++) {
        while (i < n && to->tensor[i]) i++;
        if (i == n) return fail_text("%s is one input too many: the model has %d", files.at[k], n);
        code = load(m, o, i, files.at[k], to);
    }
    for (int i = 0; i < n && !code; i++)
        if (!to->tensor[i]) code = make_random(m, o, i, to);
    return code;
}

void inputs_free(inputs *in) {
    tensors_free(in->tensor, in->n);
    free(in->photo);
    free(in->random);
    *in = (inputs){ 0 };
}
