/* Memory of a model over time: as any engine would need it, and as our plan has it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "inspect.h"

enum { ROWS = 8 };

int memory_find(const fac_analysis *a, const model *m, const list *shapes, long batch,
                fac_memory_facts *out) {
    fac_error err = { 0 };
    const int n = fac_graph_inputs(m->graph);
    fac_type *types = calloc((size_t)n + 1, sizeof *types);
    if (!types) return fail_text("out of memory");
    for (int i = 0; i < n; i++) types[i] = input_type(fac_graph_input(m->graph, i), shapes, batch);
    const fac_status status = fac_memory_facts_of(a, m->graph, types, out, &err);
    free(types);
    return status ? fail(&err) : EXIT_OK;
}

/* ---- the picture: layers from left to right, bytes upwards ---- */

/* What a place of the picture shows, of which `full` is covered: at most 1. */
static const char *place_text(double full) {
    static const char *const eighths[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    const int part = (int)ceil(8 * fmin(fmax(full, 0), 1));
    if (unicode()) return eighths[part];
    if (part > 4) return "#";
    return part ? "." : " ";
}

static int timeline(const fac_analysis *a) {
    const fac_totals t = fac_analysis_totals(a);
    const int wide = columns() - 14 < 20    ? 20
                     : columns() - 14 > 120 ? 120
                                            : columns() - 14,
              n = t.layers < wide ? t.layers : wide;
    char text[32];
    if (n < 1 || t.peak <= 0) return EXIT_OK;
    double *column = calloc((size_t)n, sizeof *column);
    if (!column) return fail_text("out of memory");
    for (int i = 0; i < t.layers; i++) { /* the highest of the layers that share a column */
        double *c = &column[(int)((int64_t)i * n / t.layers)];
        const double alive = fac_analysis_layer(a, i)->alive;
        if (alive > *c) *c = alive;
    }
    for (int row = ROWS; row > 0; row--) {
        const char *label = text_if(row == 1, "0");
        if (row == ROWS) label = bytes_text(t.peak, text, sizeof text);
        printf("%10s |", label);
        for (int c = 0; c < n; c++) printf("%s", place_text(column[c] / t.peak * ROWS - (row - 1)));
        putchar('\n');
    }
    printf("%10s +", "");
    for (int c = 0; c < n; c++) putchar('-');
    printf("\n%12slayer 0%*s%d\n", "", n > 8 ? n - 7 : 1, "", t.layers - 1);
    free(column);
    return EXIT_OK;
}

/* Values alive at the peak, the largest first. */
static int peak_print(const fac_analysis *a, const fac_layer *l, long top) {
    const fac_totals t = fac_analysis_totals(a);
    char x[32];
    fac_alive *alive = calloc((size_t)top + 1, sizeof *alive);
    if (!alive) return fail_text("out of memory");
    const int n = fac_analysis_alive(a, t.peak_layer, alive, (int)top);
    printf("\nalive at the peak, layer %d (%s): %s\n", t.peak_layer, layer_name(l),
           bytes_text(t.peak, x, sizeof x));
    for (int k = 0; k < n && k < top; k++) {
        const char *name =
            alive[k].layer >= 0 ? layer_name(fac_analysis_layer(a, alive[k].layer)) : alive[k].name;
        printf("  %10s  %s\n", bytes_text(alive[k].bytes, x, sizeof x), name);
    }
    if (n > top) printf("  and %d more\n", n - (int)top);
    free(alive);
    return EXIT_OK;
}

int memory_print(const fac_analysis *a, const fac_memory_facts *f, long top) {
    const fac_totals t = fac_analysis_totals(a);
    const fac_layer *l = fac_analysis_layer(a, t.peak_layer);
    char x[32], y[32], z[32];
    printf("\nmemory of results while each layer runs (an ideal allocator, nothing in place):\n\n");
    int code = timeline(a);
    if (!code && l) code = peak_print(a, l, top);
    if (code) return code;
    printf("\nlower bound    %s, the inputs and outputs of one layer\n",
           bytes_text(t.bound, x, sizeof x));
    if (f->order_peak < t.peak)
        printf("better order   %s instead of %s%s\n", bytes_text(f->order_peak, x, sizeof x),
               bytes_text(t.peak, y, sizeof y),
               f->order_exact ? ", the least that is possible" : "");
    else
        printf("order          %s\n", f->order_exact ? "no other order of the layers needs less"
                                                     : "no better order was found");
    if (!f->planned) {
        printf("plan           none: %s\n", f->why_not);
        return EXIT_OK;
    }
    const fac_plan_stat *p = &f->plan;
    char w[32];
    printf("plan           %d steps; arena %s for %s of values, at least %s (%.1f %% above); "
           "packed weights %s\n",
           p->steps, bytes_text((double)p->arena, x, sizeof x),
           bytes_text((double)p->values, y, sizeof y), bytes_text((double)p->bound, z, sizeof z),
           p->bound ? 100.0 * (double)(p->arena - p->bound) / (double)p->bound : 0,
           bytes_text((double)p->packed, w, sizeof w));
    return EXIT_OK;
}

/* By address.  Parts that share bytes are never alive at the same step. */
void memory_places(const fac_memory_facts *f) {
    const int widths[] = { 12, 12, 10, 6, 6, -1 };
    printf("\nthe arena, byte by byte:\n\n");
    table_row(stdout, widths, 6, "from", "to", "bytes", "first", "last", "made by");
    for (int k = 0; k < f->nparts; k++) {
        const fac_arena_part *p = &f->parts[k];
        char from[24], to[24], bytes[32], first[16], last[16];
        snprintf(from, sizeof from, "%zu", p->at);
        snprintf(to, sizeof to, "%zu", p->at + p->bytes);
        snprintf(first, sizeof first, "%d", p->first);
        snprintf(last, sizeof last, "%d", p->last);
        printf("%12s  %12s  %10s  %6s  %6s  %s%s\n", from, to,
               bytes_text((double)p->bytes, bytes, sizeof bytes), first, last,
               text_if(p->scratch, "scratch of "), text_or(p->made_by, "?"));
    }
}

static cJSON *places_json(const fac_memory_facts *f) {
    cJSON *all = cJSON_CreateArray();
    for (int k = 0; k < f->nparts; k++) {
        const fac_arena_part *p = &f->parts[k];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "made_by", p->made_by ? p->made_by : "?");
        cJSON_AddNumberToObject(one, "offset", (double)p->at);
        cJSON_AddNumberToObject(one, "bytes", (double)p->bytes);
        cJSON_AddNumberToObject(one, "first_step", p->first);
        cJSON_AddNumberToObject(one, "last_step", p->last);
        cJSON_AddBoolToObject(one, "scratch", p->scratch);
        cJSON_AddItemToArray(all, one);
    }
    return all;
}

cJSON *memory_json(const fac_analysis *a, const fac_memory_facts *f, long top) {
    const fac_totals t = fac_analysis_totals(a);
    cJSON *j = cJSON_CreateObject(), *at_peak = cJSON_AddArrayToObject(j, "alive_at_peak"),
          *time = cJSON_AddArrayToObject(j, "timeline_bytes");
    fac_alive *alive = calloc((size_t)top + 1, sizeof *alive);
    if (!alive) json_lose();
    const int n = alive && t.layers ? fac_analysis_alive(a, t.peak_layer, alive, (int)top) : 0;
    for (int k = 0; k < n && k < top; k++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", alive[k].name);
        json_number(one, "bytes", alive[k].bytes, 17);
        cJSON_AddItemToArray(at_peak, one);
    }
    for (int i = 0; i < t.layers; i++)
        cJSON_AddItemToArray(time, cJSON_CreateNumber(fac_analysis_layer(a, i)->alive));
    free(alive);
    json_number(j, "peak_bytes", t.peak, 17);
    cJSON_AddNumberToObject(j, "peak_layer", t.peak_layer);
    json_number(j, "bound_bytes", t.bound, 17);
    json_number(j, "best_order_peak_bytes", f->order_peak, 17);
    cJSON_AddBoolToObject(j, "best_order_exact", f->order_exact);
    if (!f->planned)
        cJSON_AddStringToObject(j, "no_plan", f->why_not);
    else {
        cJSON *plan = cJSON_AddObjectToObject(j, "plan");
        cJSON_AddNumberToObject(plan, "steps", f->plan.steps);
        cJSON_AddNumberToObject(plan, "arena_bytes", (double)f->plan.arena);
        cJSON_AddNumberToObject(plan, "values_bytes", (double)f->plan.values);
        cJSON_AddNumberToObject(plan, "bound_bytes", (double)f->plan.bound);
        cJSON_AddNumberToObject(plan, "packed_bytes", (double)f->plan.packed);
        cJSON_AddItemToObject(plan, "arena", places_json(f));
    }
    return j;
}
