/* What the files of `facula inspect` share. */
#ifndef FACULA_CLI_INSPECT_H
#define FACULA_CLI_INSPECT_H
#include "json.h"

/* inspect_ops.c: which operators with which attributes. */
void   ops_print(const fac_analysis *a);
cJSON *ops_json(const fac_analysis *a);

/* inspect_memory.c: memory over time, what is alive at the peak, the plan, a better order. */
typedef struct memory_facts {
    fac_plan_stat plan;
    bool          planned;              /* plan is filled in */
    char          why_not[512];
    double        order_peak;
    bool          order_exact;
} memory_facts;
int    memory_find(const fac_analysis *a, const model *m, const list *shapes, long batch, memory_facts *out);
void   memory_print(const fac_analysis *a, const memory_facts *f, long top);
cJSON *memory_json(const fac_analysis *a, const memory_facts *f, long top);
#endif
