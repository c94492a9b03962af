/* What the files of `facula inspect` share. */
#ifndef FACULA_CLI_INSPECT_H
#define FACULA_CLI_INSPECT_H
#include "json.h"

/* What people call a layer: its module, where that holds nothing else. */
static inline const char *layer_name(const fac_layer *l) {
    return l->is_module ? l->module : l->name;
}

/* inspect_ops.c: which operators with which attributes. */
int ops_print(const fac_analysis *a); /* an exit code */
cJSON *ops_json(const fac_analysis *a);

/* inspect.c: what stands on the cover of an ONNX file; nothing for other models. */
int file_print(const char *path);
int file_json(cJSON *root, const char *path);
/* inspect_onnx.c: the operators of a file as it spells them; verbose: each node too. */
int inspect_onnx(const char *path, bool verbose, bool json);

/* inspect_memory.c: memory over time, what is alive at the peak, the plan, a better order. */
int memory_find(const fac_analysis *a, const model *m, const list *shapes, long batch,
                fac_memory_facts *out);
void memory_places(const fac_memory_facts *f);
int memory_print(const fac_analysis *a, const fac_memory_facts *f, long top);
cJSON *memory_json(const fac_analysis *a, const fac_memory_facts *f, long top);
#endif
