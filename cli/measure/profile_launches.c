/* What a device of its own clock did in one run: how many launches, which kernels, and the gaps
 * between them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "json.h"
#include "profile.h"

/* All launches of one kernel. */
typedef struct kernel {
    const char *name;
    int n;
    double seconds, most;
    size_t groups;
} kernel;

static int slowest_first(const void *a, const void *b) {
    const double x = ((const kernel *)a)->seconds, y = ((const kernel *)b)->seconds;
    return (x < y) - (x > y);
}

/* *n of calloc; NULL: no memory. */
static kernel *kernels(const profile *p, size_t *n) {
    kernel *all = calloc(p->nlaunches + 1, sizeof *all);
    *n = 0;
    for (size_t i = 0; all && i < p->nlaunches; i++) {
        const fac_launch_stat *l = &p->launches[i];
        size_t k = 0;
        while (k < *n && strcmp(all[k].name, l->kernel)) k++;
        if (k == *n) all[(*n)++].name = l->kernel;
        all[k].n++;
        all[k].seconds += l->seconds;
        all[k].groups += l->groups;
        all[k].most = fmax(all[k].most, l->seconds);
    }
    if (all) qsort(all, *n, sizeof *all, slowest_first);
    return all;
}

/* Between one launch and the next: together, the longest and the launch before that one. */
typedef struct gaps {
    double busy, idle, longest;
    size_t longest_after;
} gaps;

static double gap_after(const profile *p, size_t i) {
    const double end = p->launches[i].start + p->launches[i].seconds;
    return i + 1 < p->nlaunches ? fmax(0, p->launches[i + 1].start - end) : 0;
}

static gaps gaps_of(const profile *p) {
    gaps g = { 0 };
    for (size_t i = 0; i < p->nlaunches; i++) {
        const double gap = gap_after(p, i);
        g.busy += p->launches[i].seconds;
        g.idle += gap;
        if (gap > g.longest) {
            g.longest = gap;
            g.longest_after = i;
        }
    }
    return g;
}

static const char *node_of(const profile *p, size_t launch) {
    const int step = p->launches[launch].step;
    return step >= 0 && (size_t)step < p->t.n ? p->t.steps[step].s.nodes : "the last step";
}

void profile_print_launches(const profile *p) {
    size_t n = 0;
    if (!p->nlaunches) return;
    const gaps g = gaps_of(p);
    kernel *all = kernels(p, &n);
    double moved = 0;
    int reorders = 0;
    for (size_t i = 0; i < p->t.n; i++)
        if (!strcmp(p->t.steps[i].s.op, "reorder")) reorders++, moved += p->t.steps[i].seconds;
    printf("device   %zu launches: busy %.3f ms, idle between them %.3f ms when watched, longest "
           "%.1f us after %s\n",
           p->nlaunches, 1e3 * g.busy, 1e3 * g.idle, 1e6 * g.longest, node_of(p, g.longest_after));
    printf("reorders %d of %zu steps, %.3f ms\n\n", reorders, p->t.n, 1e3 * moved);
    printf("%9s %6s %8s %9s %9s %9s  %s\n", "us", "%", "launches", "us each", "longest", "groups",
           "kernel");
    for (size_t i = 0; all && i < n; i++)
        printf("%9.1f %6.1f %8d %9.2f %9.2f %9.0f  %s\n", 1e6 * all[i].seconds,
               100 * ratio(all[i].seconds, g.busy), all[i].n, 1e6 * all[i].seconds / all[i].n,
               1e6 * all[i].most, (double)all[i].groups / all[i].n, all[i].name);
    printf("\n");
    free(all);
}

cJSON *profile_launches_json(const profile *p) {
    cJSON *j = cJSON_CreateObject(), *each = cJSON_CreateArray(), *e;
    const gaps g = gaps_of(p);
    json_number(j, "busy_us", 1e6 * g.busy, 6);
    json_number(j, "idle_us", 1e6 * g.idle, 6);
    json_number(j, "longest_gap_us", 1e6 * g.longest, 4);
    cJSON_AddItemToObject(j, "all", each);
    for (size_t i = 0; i < p->nlaunches; i++) {
        const fac_launch_stat *l = &p->launches[i];
        cJSON_AddItemToArray(each, e = cJSON_CreateObject());
        cJSON_AddStringToObject(e, "kernel", l->kernel);
        cJSON_AddStringToObject(e, "node", node_of(p, i));
        json_number(e, "start_us", 1e6 * l->start, 9);
        json_number(e, "us", 1e6 * l->seconds, 5);
        cJSON_AddNumberToObject(e, "groups", (double)l->groups);
        cJSON_AddNumberToObject(e, "items", (double)l->items);
    }
    return j;
}

static cJSON *event(cJSON *events, const char *name, const char *kind, int thread, double start,
                    double seconds) {
    cJSON *e = cJSON_CreateObject();
    cJSON_AddItemToArray(events, e);
    cJSON_AddStringToObject(e, "name", name);
    cJSON_AddStringToObject(e, "cat", kind);
    cJSON_AddStringToObject(e, "ph", "X");
    json_number(e, "ts", 1e6 * start, 9);
    json_number(e, "dur", 1e6 * seconds, 6);
    cJSON_AddNumberToObject(e, "pid", 0);
    cJSON_AddNumberToObject(e, "tid", thread);
    return e;
}

/* Three lines: steps, kernels, gaps. */
void profile_trace_launches(const profile *p, cJSON *events) {
    enum { STEPS, KERNELS, GAPS };
    for (size_t i = 0, next; i < p->nlaunches; i = next) {
        const fac_launch_stat *l = &p->launches[i];
        for (next = i + 1; next < p->nlaunches && p->launches[next].step == l->step;) next++;
        const fac_launch_stat *last = &p->launches[next - 1];
        cJSON *e = event(events, node_of(p, i), l->step < 0 ? "copy" : p->t.steps[l->step].s.op,
                         STEPS, l->start, last->start + last->seconds - l->start),
              *args;
        if (l->step < 0) continue;
        const fac_timed_step *r = &p->t.steps[l->step];
        cJSON_AddItemToObject(e, "args", args = cJSON_CreateObject());
        cJSON_AddStringToObject(args, "solver", r->s.solver);
        cJSON_AddStringToObject(args, "layouts", r->s.layouts);
        json_number(args, "GFLOP/s", 1e-9 * ratio(r->flops, r->seconds), 4);
        json_number(args, "GB/s", 1e-9 * ratio(r->s.bytes, r->seconds), 4);
    }
    for (size_t i = 0; i < p->nlaunches; i++) {
        const fac_launch_stat *l = &p->launches[i];
        cJSON *args, *e = event(events, l->kernel, "kernel", KERNELS, l->start, l->seconds);
        cJSON_AddItemToObject(e, "args", args = cJSON_CreateObject());
        cJSON_AddNumberToObject(args, "groups", (double)l->groups);
        cJSON_AddNumberToObject(args, "items", (double)l->items);
        if (gap_after(p, i) > 0)
            event(events, "gap", "gap", GAPS, l->start + l->seconds, gap_after(p, i));
    }
}
