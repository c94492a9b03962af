/* See kind.h. */
#include "kind.h"
#include <dirent.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

static bool regular(const char *path) {
    struct stat s;
    return !stat(path, &s) && S_ISREG(s.st_mode);
}

static fac_content content_of(const char *path) {
    char first[4096];
    FILE *f = regular(path) ? fopen(path, "rb") : NULL;
    const size_t n = f ? fread(first, 1, sizeof first, f) : 0;
    if (f) fclose(f);
    return n ? fac_content_of(first, n) : (fac_content){ FAC_CONTENT_UNKNOWN, NULL };
}

bool kind_is_picture(const char *path) { return content_of(path).kind == FAC_CONTENT_PICTURE; }

/* ---- folders ---- */

static bool has(const char *folder, const char *name) {
    char path[4096];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && regular(path);
}

/* Pictures in the folder, or, one level deeper, in those in it. */
static bool has_pictures(const char *folder, int deeper) {
    enum { LOOKED_AT = 1000 };
    DIR *dir = opendir(folder);
    bool found = false;
    int n = 0;
    for (struct dirent *e; dir && !found && n < LOOKED_AT && (e = readdir(dir)); n++) {
        char path[4096];
        const int length = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || length >= (int)sizeof path) continue;
        found = called_image(path) || (deeper && is_folder(path) && has_pictures(path, deeper - 1));
    }
    if (dir) closedir(dir);
    return found;
}

bool kind_is_album(const char *path) { return is_folder(path) && has_pictures(path, 0); }

/* ---- models ---- */

#define MODELS "a model is an ONNX file, zoo:NAME or a text of `facula show`"

static int folder_as_model(const char *path) {
    const size_t n = strlen(path);
    const char *slash = n && path[n - 1] == '/' ? "" : "/";
    if (has(path, "run.json"))
        return fail_text("%s is the folder of a training: its model is %s%smodel.onnx; `facula "
                         "predict` and `facula evaluate` take "
                         "the folder",
                         path, path, slash);
    if (has(path, "saved_model.pb"))
        return fail_text("%s is a TensorFlow SavedModel: convert it to ONNX, as tf2onnx does",
                         path);
    if (has(path, "model.onnx"))
        return fail_text("%s is a folder: the model in it is %s%smodel.onnx", path, path, slash);
    if (has_pictures(path, 2)) return fail_text("%s is a folder of photos; " MODELS, path);
    return fail_text("%s is a folder; " MODELS, path);
}

int kind_check_model(const char *path) {
    if (is_folder(path)) return folder_as_model(path);
    const fac_content is = content_of(path);
    switch (is.kind) {
    case FAC_CONTENT_PICTURE:
    case FAC_CONTENT_OTHER_PICTURE:
        return fail_text("%s is %s, no model; " MODELS, path, is.name);
    case FAC_CONTENT_ARRAYS:
        return fail_text("%s is %s, no model; " MODELS, path, is.name);
    case FAC_CONTENT_WEIGHTS:
        return fail_text("%s is %s: weights without their network; give them with --weights to the "
                         "same network of `facula zoo`, or export the network as ONNX; a language "
                         "model runs with `facula generate`",
                         path, is.name);
    case FAC_CONTENT_OTHER_MODEL:
        return fail_text("%s is %s: convert it to ONNX", path, is.name);
    case FAC_CONTENT_OTHER:
        return fail_text("%s is %s, no model; " MODELS, path, is.name);
    case FAC_CONTENT_UNKNOWN:
    case FAC_CONTENT_MODEL:
        break;
    }
    return EXIT_OK;
}

/* ---- inputs ---- */

static fac_status refuse(fac_error *err, const char *format, ...) FAC_PRINTF(2, 3);
static fac_status refuse(fac_error *err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return err->status = FAC_E_UNSUPPORTED;
}

fac_status kind_check_input(const char *path, fac_error *err) {
    static const char inputs[] = "inputs are photos and tensors, .npy, .npz and .pb files";
    if (is_folder(path)) {
        if (kind_is_album(path))
            return refuse(err, "%s is a folder of photos: give the photos in it", path);
        return refuse(err, "%s is a folder; %s", path, inputs);
    }
    const fac_content is = content_of(path);
    switch (is.kind) {
    case FAC_CONTENT_OTHER_PICTURE:
        return refuse(err, "%s is %s; facula reads PNG, JPEG, BMP and PNM: convert it", path,
                      is.name);
    case FAC_CONTENT_WEIGHTS:
        return refuse(err, "%s is %s, which holds weights (--weights); %s", path, is.name, inputs);
    case FAC_CONTENT_MODEL:
    case FAC_CONTENT_OTHER_MODEL:
        return refuse(err, "%s is %s, and the model was given already; %s", path, is.name, inputs);
    case FAC_CONTENT_OTHER:
        return refuse(err, "%s is %s; %s", path, is.name, inputs);
    case FAC_CONTENT_PICTURE:
    case FAC_CONTENT_ARRAYS:
    case FAC_CONTENT_UNKNOWN:
        break;
    }
    return FAC_OK;
}

/* ---- runs ---- */

int kind_fail_run(const fac_error *err, const fac_graph *g, const bool *random) {
    const char *first = NULL;
    char word[1024];
    int n = 0;
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        const fac_value *x = fac_graph_input(g, i);
        const char kind = fac_dtype_get(fac_value_type(x).dtype)->kind;
        if (random[i] && kind != 'f' && !n++) first = fac_value_name(x);
    }
    if (!n || err->status == FAC_E_NOMEM) return fail(err);
    return fail_text("%s; %s%s%s random integers from 0 to 9 here: give what the model expects "
                     "with --input %s=FILE",
                     err->text, first, text_if(n > 1, " and others"), n > 1 ? " hold" : " holds",
                     shell_word(first, word, sizeof word));
}
