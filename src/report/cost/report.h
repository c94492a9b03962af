/* What the files of this folder share: an analysis, and the classes of ops that other tools' rules
 * tell apart. */
#ifndef FACULA_REPORT_H
#define FACULA_REPORT_H
#include "facula/report/analyze.h"
#include "graph/graph_internal.h"
#include "passes/common/select.h"

/* A value of a run while it is alive: layers first..last, bytes. */
typedef struct fac_life {
    const fac_value *value;
    int first, last;
    double bytes;
} fac_life;

struct fac_analysis {
    fac_graph *graph;
    fac_arena memory;
    fac_layer *layers;      /* [totals.layers] */
    const fac_node **nodes; /* of each layer   */
    fac_layer_class *classes;
    fac_life *lives; /* of all values that are data of a run, in the order of their making */
    int nlives;
    fac_idle *idle;
    int nidle;
    const char *open, *decided;
    fac_totals totals;
};

/* operand.c: operands of a layer, and their bytes. */
fac_role fac_role_of(const fac_node *n, int i);
bool fac_is_fill(const fac_value *v);
bool fac_is_statistic(const fac_node *n, int i); /* running mean or variance of a norm */
fac_status fac_take_operands(fac_analysis *a, const fac_node *n, fac_layer *l, fac_error *err);
void fac_take_bytes(fac_layer *l, const fac_node *n);
/* An input of which no data is read: its shape alone, or contents that are known. */
bool fac_is_unread(const fac_node *n, int i);

/* bits.c: in how few bits a layer's operands lie, after its macs and params. */
void fac_take_bits(fac_layer *l, const fac_node *n);
void fac_sum_bits(fac_totals *t, const fac_layer *l);

/* idle.c: modules in which no layer stands. */
fac_status fac_find_idle(fac_analysis *a, fac_error *err);

/* live.c: lives, peak, bound and fac_layer.alive. */
fac_status fac_find_lives(fac_analysis *a, fac_error *err);
static inline double fac_data_bytes(const fac_value *v) {
    const size_t bytes = fac_type_bytes(&v->type);
    return bytes == SIZE_MAX ? 0 : (double)bytes;
}
#endif
