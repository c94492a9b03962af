/* Which files beside a model are looked at, and what they say of classes.  What they say of photos:
 * sidecar_preset.c. */
#include "sidecar.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "facula/read.h"
#include "json.h"
#include "sidecar_preset.h"

enum { LONGEST = 16 << 20, CLASSES = 1 << 20 };

/* ---- files ---- */

/* NULL in *root: there is no such file. */
static int read_json(const char *path, cJSON **root) {
    char *text;
    size_t n;
    fac_error err = { 0 };
    *root = NULL;
    if (access(path, F_OK)) return EXIT_OK;
    if (fac_read_text(path, LONGEST, FAC_READ_FILE, &text, &n, &err)) return fail(&err);
    *root = cJSON_ParseWithLength(text, n);
    fac_read_free(text);
    if (*root) return EXIT_OK;
    if (json_lost()) return fail_text("out of memory");
    return fail_text(
        "%s: is beside the model and is not JSON (--preset and --labels leave it alone)", path);
}

/* ---- names of classes ---- */

static fac_status parse_names(FILE *f, char **text, size_t *size, const char *path,
                              fac_labels **out, fac_error *err) {
    const bool lost = ferror(f);
    if (fclose(f) || lost) return err->status = FAC_E_NOMEM;
    return fac_labels_parse(*text, *size, path, out, err);
}

static void put_name(FILE *f, const char *name) {
    for (const char *c = name ? name : ""; *c; c++)
        out_char(*c == '\n' || *c == '\r' ? ' ' : *c, f);
    putc('\n', f);
}

/* ["cat", "dog"] */
static bool put_list(const cJSON *names, FILE *f) {
    const cJSON *name;
    cJSON_ArrayForEach(name, names) {
        if (!cJSON_IsString(name)) return false;
        put_name(f, name->valuestring);
    }
    return cJSON_GetArraySize(names) > 0;
}

/* {"0": "cat", "1": "dog"}, in any order: every number below the count. */
static bool put_table(const cJSON *table, FILE *f) {
    const int n = cJSON_GetArraySize(table);
    const char **names = n > 0 && n <= CLASSES ? calloc((size_t)n, sizeof *names) : NULL;
    const cJSON *name;
    bool good = names;
    if (!names) return false;
    cJSON_ArrayForEach(name, table) {
        char *end;
        const long k = strtol(name->string, &end, 10);
        good &= !*end && end != name->string && k >= 0 && k < n && cJSON_IsString(name);
        if (good) names[k] = name->valuestring;
    }
    for (int k = 0; k < n && good; k++) put_name(f, names[k]);
    free(names);
    return good;
}

static int labels_in(const cJSON *root, const char *path, fac_labels **out) {
    static const char *const keys[] = { "labels", "id2label", "label_names" };
    const cJSON *found = NULL;
    const char *key = NULL;
    fac_error err = { 0 };
    for (int k = 0; k < 3 && !found; k++)
        found = cJSON_GetObjectItemCaseSensitive(root, key = keys[k]);
    if (!found || cJSON_IsNull(found)) return EXIT_OK;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) return fail_text("out of memory");
    const bool good =
        cJSON_IsArray(found) ? put_list(found, f) : cJSON_IsObject(found) && put_table(found, f);
    const fac_status status = parse_names(f, &text, &size, path, out, &err);
    free(text);
    if (!good) {
        fac_labels_free(status ? NULL : *out);
        *out = NULL;
        return fail_text("%s: %s is not a list of class names (--labels leaves it alone)", path,
                         key);
    }
    return status ? fail(&err) : EXIT_OK;
}

/* ---- where they are ---- */

/* Of DIR/onnx/model.onnx, as Hugging Face has it, the files stand in DIR. */
static bool in_onnx_folder(const char *path, int dir) {
    return dir >= 4 && !strncmp(path + dir - 4, "onnx", 4) && (dir == 4 || path[dir - 5] == '/');
}

static void place(const char *path, int k, char *to, size_t size) {
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    const char *dot = strrchr(file, '.');
    const int dir = slash ? (int)(slash - path) : 0;
    const int stem = (int)((dot ? dot : file + strlen(file)) - path);
    static const char *const names[] = { "preprocessor_config.json", "config.json" };
    *to = 0;
    if (k == 0)
        snprintf(to, size, "%.*s.json", stem, path);
    else if (k < 3)
        snprintf(to, size, "%.*s%s%s", dir, path, slash ? "/" : "", names[k - 1]);
    else if (in_onnx_folder(path, dir))
        snprintf(to, size, "%.*s%s", dir - 4, path, names[k - 3]);
}

int sidecar_read(const char *path, sidecar_want want, sidecar *out) {
    enum { PLACES = 5 };
    int code = EXIT_OK;
    *out = (sidecar){ 0 };
    for (int k = 0; path && k < PLACES && !code && !out->preset && !out->labels; k++) {
        cJSON *root = NULL;
        if (want == SIDECAR_LABELS && k && k % 2) continue; /* a file of photos alone */
        place(path, k, out->file, sizeof out->file);
        if (*out->file) code = read_json(out->file, &root);
        if (!root) continue;
        if (want == SIDECAR_LABELS)
            code = labels_in(root, out->file, &out->labels);
        else
            code = sidecar_preset(root, out->file, &out->preset, &out->how);
        cJSON_Delete(root);
    }
    return code;
}
