/* The file that describes a matrix unit to `facula tile --target`: one JSON object of known keys.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "json.h"
#include "tile.h"

typedef enum key_kind { WHOLE, POSITIVE, TIME, FLAG, TEXT, DTYPE, DTYPES } key_kind;
typedef struct key {
    const char *name;
    key_kind kind;
    size_t at;
    const char *help;
} key;

#define AT(field) offsetof(tile_device, field)
static const key keys[] = {
    { "name", TEXT, AT(name), "of the device, for the report" },
    { "max_m", WHOLE, AT(target.m), "rows of a product: at most so many" },
    { "max_n", WHOLE, AT(target.n), "columns" },
    { "max_k", WHOLE, AT(target.k), "depth" },
    { "align_m", WHOLE, AT(target.align_m), "rows come in multiples of this" },
    { "align_n", WHOLE, AT(target.align_n), "columns" },
    { "align_k", WHOLE, AT(target.align_k), "depth" },
    { "pad", FLAG, AT(pad), "zeros up to these multiples, as --pad" },
    { "sram_bytes", POSITIVE, AT(target.sram_bytes), "for a tile of A, of B and of C together" },
    { "double_buffer", FLAG, AT(target.double_buffer), "A and B twice there" },
    { "dtypes", DTYPES, 0,
      "what it takes: [\"f32\", \"f16\"], or {\"f32\": 2} with the bytes of an element there" },
    { "accumulator", DTYPE, AT(target.accumulator), "the type of C in SRAM" },
    { "clock_hz", POSITIVE, AT(clock_hz), "cycles a second, for the rates in cycles" },
    { "macs_per_cycle", POSITIVE, AT(macs_per_cycle), "multiply-adds" },
    { "macs_per_second", POSITIVE, AT(target.macs_per_second), "instead of these" },
    { "bytes_per_cycle", POSITIVE, AT(bytes_per_cycle), "between memory and SRAM" },
    { "bytes_per_second", POSITIVE, AT(target.bytes_per_second), "instead of these" },
    { "overhead_cycles", TIME, AT(overhead_cycles), "of starting a tile" },
    { "overhead_seconds", TIME, AT(target.overhead), "instead of these" }
};
#undef AT
enum { KEYS = sizeof keys / sizeof *keys, LONGEST = 1 << 20 };

void tile_device_keys(void) {
    printf("\nA target file is a JSON object; all keys are optional:\n");
    for (int k = 0; k < KEYS; k++) help_row(keys[k].name, 17, keys[k].help);
}

/* ---- values ---- */

static int wrong(const char *path, const char *name, const char *want) {
    return fail_text("%s: \"%s\" must be %s", path, name, want);
}

static int read_dtype(const char *path, const char *name, const cJSON *v, fac_dtype *to) {
    const fac_dtype d = cJSON_IsString(v) ? fac_dtype_find(v->valuestring) : FAC_NONE;
    if (d == FAC_NONE || d == FAC_TEXT || d == FAC_BIT)
        return wrong(path, name, "a type such as \"f32\"");
    *to = d;
    return EXIT_OK;
}

/* A list of types, or an object of types and bytes. */
static int read_dtypes(const char *path, const cJSON *types, fac_tile_target *to) {
    static const char want[] = "a list of types, or an object of types and the bytes of an element";
    if (!cJSON_IsArray(types) && !cJSON_IsObject(types)) return wrong(path, "dtypes", want);
    for (const cJSON *v = types->child; v; v = v->next) {
        const char *name = cJSON_IsObject(types) ? v->string
                           : cJSON_IsString(v)   ? v->valuestring
                                                 : "";
        const fac_dtype d = fac_dtype_find(name);
        if (d == FAC_NONE || d == FAC_TEXT)
            return fail_text("%s: \"dtypes\": there is no type \"%s\"", path, name);
        if (cJSON_IsObject(types) &&
            (!cJSON_IsNumber(v) || !(v->valuedouble > 0 && v->valuedouble <= 64)))
            return fail_text("%s: \"dtypes\": the bytes of %s must be a number above 0, at most 64",
                             path, name);
        to->bytes[d] = cJSON_IsObject(types) ? v->valuedouble : fac_dtype_get(d)->block_bytes;
    }
    return types->child
               ? EXIT_OK
               : wrong(path, "dtypes", "more than nothing: leave it out, and every type is taken");
}

static int read_value(const char *path, const key *k, const cJSON *v, tile_device *d) {
    char *to = (char *)d + k->at;
    const double x = cJSON_IsNumber(v) ? v->valuedouble : -1;
    switch (k->kind) {
    case WHOLE:
        if (!(x >= 1 && x <= 1e15) || x != (double)(int64_t)x)
            return wrong(path, k->name, "a whole number from 1 on");
        *(int64_t *)(void *)to = (int64_t)x;
        return EXIT_OK;
    case POSITIVE:
    case TIME:
        if (!(x > 0 || (k->kind == TIME && x >= 0)) || x > 1e30)
            return wrong(path, k->name,
                         k->kind == TIME ? "a number, 0 or more" : "a number above 0");
        *(double *)(void *)to = x;
        return EXIT_OK;
    case FLAG:
        if (!cJSON_IsBool(v)) return wrong(path, k->name, "true or false");
        *(bool *)(void *)to = cJSON_IsTrue(v);
        return EXIT_OK;
    case TEXT:
        if (!cJSON_IsString(v)) return wrong(path, k->name, "a text");
        snprintf(to, sizeof d->name, "%s", v->valuestring);
        return EXIT_OK;
    case DTYPE:
        return read_dtype(path, k->name, v, (fac_dtype *)(void *)to);
    default:
        return read_dtypes(path, v, &d->target);
    }
}

/* ---- rates ---- */

/* What is given by the cycle becomes what it is by the second; both are one too many. */
static int rate(const char *path, const char *name, double cycles, double clock, bool time,
                double *to) {
    if (!(cycles > 0)) return EXIT_OK;
    const char *cycle = time ? "cycles" : "per_cycle";
    const char *second = time ? "seconds" : "per_second";
    if (*to > 0)
        return fail_text("%s: \"%s_%s\" and \"%s_%s\": give only one of them", path, name, cycle,
                         name, second);
    if (!(clock > 0)) return fail_text("%s: \"%s_%s\" needs \"clock_hz\"", path, name, cycle);
    *to = time ? cycles / clock : cycles * clock;
    return EXIT_OK;
}

static int read_object(const char *path, const cJSON *object, tile_device *d) {
    bool seen[KEYS] = { false };
    for (const cJSON *v = object->child; v; v = v->next) {
        int k = 0;
        while (k < KEYS && strcmp(keys[k].name, v->string)) k++;
        if (k == KEYS)
            return fail_text("%s: there is no \"%s\"; `facula help tile` lists the keys", path,
                             v->string);
        if (seen[k]) return fail_text("%s: \"%s\" is there twice", path, v->string);
        seen[k] = true;
        const int code = read_value(path, &keys[k], v, d);
        if (code) return code;
    }
    int code =
        rate(path, "macs", d->macs_per_cycle, d->clock_hz, false, &d->target.macs_per_second);
    if (!code)
        code = rate(path, "bytes", d->bytes_per_cycle, d->clock_hz, false,
                    &d->target.bytes_per_second);
    return code
               ? code
               : rate(path, "overhead", d->overhead_cycles, d->clock_hz, true, &d->target.overhead);
}

int tile_device_load(const char *path, tile_device *to) {
    tile_device d = { .target = { 0 } };
    fac_error err = { 0 };
    char *text;
    if (fac_read_text(path, LONGEST, FAC_READ_FILE_OR_PIPE, &text, NULL, &err)) return fail(&err);
    cJSON *object = cJSON_ParseWithOpts(text, NULL, true);
    fac_read_free(text);
    if (!object && json_lost()) return fail_text("out of memory");
    const int code = cJSON_IsObject(object)
                         ? read_object(path, object, &d)
                         : fail_text("%s: not a JSON object; expected {\"max_m\": 64, \"max_n\": "
                                     "64, \"max_k\": 64, ...}",
                                     path);
    cJSON_Delete(object);
    if (!code) *to = d;
    return code;
}
