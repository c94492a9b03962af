/* What `facula tile` says: a table with totals, or JSON. */
#include <stdlib.h>
#include <string.h>
#include "json.h"
#include "tile.h"

typedef struct sums {
    double macs, work, seconds, compute, traffic, overhead, bytes;
    int64_t tiles, kept, unaligned;
} sums;

static sums add_up(const fac_tiling *t) {
    sums s = { 0 };
    for (int i = 0; i < fac_tiling_rows(t); i++) {
        const fac_tile_row *r = fac_tiling_row(t, i);
        s.macs += r->macs;
        s.work += r->work;
        s.bytes += r->bytes;
        s.seconds += r->seconds;
        s.compute += r->compute;
        s.traffic += r->traffic;
        s.overhead += r->overhead;
        s.tiles += r->tiles;
        s.unaligned += r->unaligned;
        s.kept += r->kept != NULL;
    }
    return s;
}

/* Of the results of all layers, at the worst moment; below 0: unknown.  An exit code. */
static int peak_of(const fac_graph *g, long batch, double *peak) {
    fac_error err = { 0 };
    fac_analysis *a = NULL;
    const fac_status status = g ? fac_analyze(g, batch, &a, &err) : FAC_OK;
    *peak = a ? fac_analysis_totals(a).peak : -1;
    fac_analysis_free(a);
    return status == FAC_E_NOMEM ? fail(&err) : EXIT_OK;
}

typedef struct peaks {
    double before, after;
} peaks;
static int peaks_of(const tile_result *r, peaks *to) {
    const int code = peak_of(r->before, r->batch, &to->before);
    return code ? code : peak_of(r->after, r->batch, &to->after);
}

/* ---- for people ---- */

static void size_text(int64_t x, char *to, size_t size) {
    snprintf(to, size, "%lld", (long long)x);
}

static void print_row(const int *widths, int n, const fac_tile_row *r) {
    char m[24], c[24], k[24], count[24], tile[80], tiles[24], used[16], time[24] = "--";
    snprintf(tile, sizeof tile, "%lldx%lldx%lld", (long long)r->tile_m, (long long)r->tile_n,
             (long long)r->tile_k);
    snprintf(used, sizeof used, "%.0f %%", 100 * r->utilisation);
    if (r->seconds > 0) snprintf(time, sizeof time, "%.3g ms", 1e3 * r->seconds);
    size_text(r->m, m, sizeof m), size_text(r->n, c, sizeof c), size_text(r->k, k, sizeof k);
    size_text(r->count, count, sizeof count), size_text(r->tiles, tiles, sizeof tiles);
    table_row(stdout, widths, n, r->name, r->op, m, c, k, count, r->kept ? "--" : tile, tiles,
              r->kept ? "--" : used, time, text_or(r->bound, ""), text_or(r->kept, r->advice));
}

static void print_times(const sums *s) {
    if (!(s->seconds > 0)) return;
    printf("time by these rates: %.3g ms (computing %.3g, moving %.3g MB %.3g, starting tiles "
           "%.3g)%s\n",
           1e3 * s->seconds, 1e3 * s->compute, 1e-6 * s->bytes, 1e3 * s->traffic, 1e3 * s->overhead,
           s->kept ? ", without what stays" : "");
}

int tile_print(const tile_result *r) {
    enum { COLUMNS = 12 };
    const int widths[COLUMNS] = { -28, -10, 7, 7, 7, 6, 14, 8, 6, 9, -8, -1 };
    const sums s = add_up(r->tiling);
    char was[32], is[32];
    peaks m;
    const int code = peaks_of(r, &m);
    if (code) return code;
    if (*r->device->name) printf("for %s\n\n", r->device->name);
    table_row(stdout, widths, COLUMNS, "layer", "op", "M", "N", "K", "times", "tile", "tiles",
              "used", "time", "bound", "");
    for (int i = 0; i < fac_tiling_rows(r->tiling); i++)
        print_row(widths, COLUMNS, fac_tiling_row(r->tiling, i));
    printf("\n%d products became %lld; %.1f %% of their arithmetic is used%s\n",
           fac_tiling_rows(r->tiling), (long long)s.tiles, s.work > 0 ? 100 * s.macs / s.work : 0,
           s.kept ? "" : "; all are legal");
    if (s.kept) printf("%lld stay as they are: the last column says why\n", (long long)s.kept);
    if (s.unaligned)
        printf("%lld tile%s not aligned\n", (long long)s.unaligned,
               s.unaligned == 1 ? " is" : "s are");
    print_times(&s);
    printf("memory of results at their peak: %s",
           m.before < 0 ? "unknown" : bytes_text(m.before, was, sizeof was));
    printf(m.after < 0 ? "\n" : " before, now %s\n", bytes_text(m.after, is, sizeof is));
    if (r->saved)
        printf("%s: opset %d, %d node%s, %s\n", r->path, r->saved->opset, r->saved->nodes,
               plural(r->saved->nodes),
               bytes_text((double)(r->saved->bytes + r->saved->data), was, sizeof was));
    return EXIT_OK;
}

/* ---- for machines ---- */

static cJSON *row_json(const fac_tile_row *r) {
    cJSON *j = cJSON_CreateObject();
    const struct {
        const char *key;
        int64_t x;
    } whole[] = { { "m", r->m },           { "n", r->n },           { "k", r->k },
                  { "count", r->count },   { "tile_m", r->tile_m }, { "tile_n", r->tile_n },
                  { "tile_k", r->tile_k }, { "tiles", r->tiles },   { "unaligned", r->unaligned } };
    const struct {
        const char *key;
        double x;
        int digits;
    } real[] = { { "macs", r->macs, 17 },
                 { "work", r->work, 17 },
                 { "utilisation", r->utilisation, 6 },
                 { "sram_bytes", r->sram, 17 },
                 { "bytes", r->bytes, 17 },
                 { "compute_seconds", r->compute, 6 },
                 { "traffic_seconds", r->traffic, 6 },
                 { "overhead_seconds", r->overhead, 6 },
                 { "seconds", r->seconds, 6 } };
    cJSON_AddStringToObject(j, "name", r->name);
    cJSON_AddStringToObject(j, "op", r->op);
    cJSON_AddStringToObject(j, "dtype", fac_dtype_get(r->dtype)->name);
    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++)
        cJSON_AddNumberToObject(j, whole[k].key, (double)whole[k].x);
    for (size_t k = 0; k < sizeof real / sizeof *real; k++)
        json_number(j, real[k].key, real[k].x, real[k].digits);
    if (r->bound) cJSON_AddStringToObject(j, "bound", r->bound);
    if (r->kept) cJSON_AddStringToObject(j, "kept", r->kept);
    if (*r->advice) cJSON_AddStringToObject(j, "advice", r->advice);
    return j;
}

static void add_file(cJSON *root, const tile_result *r) {
    cJSON *file = r->saved ? cJSON_AddObjectToObject(root, "file") : NULL;
    if (!file) return;
    cJSON_AddStringToObject(file, "path", r->path);
    cJSON_AddNumberToObject(file, "opset", r->saved->opset);
    cJSON_AddNumberToObject(file, "nodes", r->saved->nodes);
    cJSON_AddNumberToObject(file, "bytes", (double)r->saved->bytes + (double)r->saved->data);
}

int tile_print_json(const tile_result *r) {
    const sums s = add_up(r->tiling);
    peaks m;
    const int code = peaks_of(r, &m);
    if (code) return code;
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_CreateArray();
    cJSON_AddNumberToObject(root, "schema_version", 2);
    if (*r->device->name) cJSON_AddStringToObject(root, "target", r->device->name);
    cJSON_AddStringToObject(root, "mode", r->mode);
    cJSON_AddStringToObject(root, "sum", r->sum);
    cJSON_AddNumberToObject(root, "tiles", (double)s.tiles);
    cJSON_AddNumberToObject(root, "kept", (double)s.kept);
    cJSON_AddNumberToObject(root, "unaligned", (double)s.unaligned);
    json_number(root, "macs", s.macs, 17);
    json_number(root, "utilisation", s.work > 0 ? s.macs / s.work : 0, 6);
    json_number(root, "bytes", s.bytes, 17);
    json_number(root, "seconds", s.seconds, 6);
    json_number(root, "compute_seconds", s.compute, 6);
    json_number(root, "traffic_seconds", s.traffic, 6);
    json_number(root, "overhead_seconds", s.overhead, 6);
    if (m.before >= 0) json_number(root, "peak_bytes", m.before, 17);
    if (m.after >= 0) json_number(root, "peak_bytes_tiled", m.after, 17);
    add_file(root, r);
    for (int i = 0; i < fac_tiling_rows(r->tiling); i++)
        cJSON_AddItemToArray(rows, row_json(fac_tiling_row(r->tiling, i)));
    cJSON_AddItemToObject(root, "products", rows);
    return json_print(root);
}
