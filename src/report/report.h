/* What the files of this folder share: an analysis, and the classes of ops that other tools' rules tell apart. */
#ifndef FACULA_REPORT_H
#define FACULA_REPORT_H
#include "facula/analyze.h"
#include "graph/graph_internal.h"

/* What a rule of another tool may know a layer by. */
typedef enum fac_class {
    FAC_CLASS_OTHER, FAC_CLASS_CONV, FAC_CLASS_CONV_TRANSPOSE, FAC_CLASS_LINEAR,    /* linear: a product with a weight of two dims */
    FAC_CLASS_MATMUL, FAC_CLASS_BATCH_NORM, FAC_CLASS_INSTANCE_NORM, FAC_CLASS_LAYER_NORM, FAC_CLASS_GROUP_NORM,
    FAC_CLASS_RELU, FAC_CLASS_RELU6, FAC_CLASS_ACTIVATION, FAC_CLASS_PRELU, FAC_CLASS_MAX_POOL, FAC_CLASS_AVG_POOL,
    FAC_CLASS_ADAPTIVE_POOL, FAC_CLASS_SOFTMAX, FAC_CLASS_RECURRENT, FAC_CLASS_EMBEDDING
} fac_class;

/* A value of a run while it is alive: layers first..last, bytes. */
typedef struct fac_life { const fac_value *value; int first, last; double bytes; } fac_life;

struct fac_analysis {
    fac_graph       *graph;
    fac_arena        memory;
    fac_layer       *layers;        /* [totals.layers] */
    const fac_node **nodes;         /* of each layer   */
    fac_class       *classes;
    fac_life        *lives;         /* of all values that are data of a run, in the order of their making */
    int              nlives;
    const char      *open, *decided;
    fac_totals       totals;
};

/* path.c: where a node stands ("layer1.0.conv1"), from the scope or the name that the file gave it; NULL: memory. */
const char *fac_module_path(fac_arena *a, const fac_node *n);

/* kind.c: the class of a node, and the name that PyTorch's users know one of that class by. */
fac_class   fac_class_of(const fac_node *n);
const char *fac_kind_of(const fac_node *n, fac_class is);

/* live.c: lives, peak, bound and fac_layer.alive. */
fac_status fac_find_lives(fac_analysis *a, fac_error *err);
/* Inputs that nothing reads are no inputs any more. */
static inline void fac_drop_unread_inputs(fac_graph *g) {
    size_t kept = 0;
    for (size_t i = 0; i < g->ninputs; i++)
        if (g->inputs[i]->uses || g->inputs[i]->roots) g->inputs[kept++] = g->inputs[i];
    g->ninputs = kept;
}
/* The graph gives nothing back any more; what it gave is still there. */
static inline void fac_forget_outputs(fac_graph *g) {
    for (size_t k = 0; k < g->noutputs; k++) g->outputs[k].value->roots--;
    g->noutputs = 0;
}
/* Data of a run, as against a parameter, a constant or what is made from these before it. */
bool       fac_is_data(const fac_value *v);
static inline double fac_data_bytes(const fac_value *v) {
    const size_t bytes = fac_type_bytes(&v->type);
    return bytes == SIZE_MAX ? 0 : (double)bytes;
}
#endif
