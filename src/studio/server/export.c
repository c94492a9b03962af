/* A network as the bytes of a file.  The library writes files, so this uses a temporary folder. */
#include "studio/server/export.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "base/file/file.h"
#include "facula/onnx.h"
#include "facula/train.h"
#include "studio_run_c.h"
#include "studio_run_py.h"

static fac_status take_file(const char *path, fac_text *to, fac_error *err) {
    fac_file *f;
    FAC_TRY(fac_file_map(path, &f, err));
    fac_text_add_bytes(to, fac_file_data(f), fac_file_size(f));
    fac_file_free(f);
    return FAC_OK;
}

static fac_status save_onnx(const fac_graph *model, const char *path, fac_error *err) {
    fac_graph *quiet = fac_graph_inference(model);
    if (!quiet) return fac_raise_memory(err, "a copy of the network");
    const fac_status status = fac_onnx_save(quiet, path, NULL, err);
    fac_graph_free(quiet);
    return status;
}

/* The reader of the error does not know the temporary file. */
static void without_path(const char *path, fac_error *err) {
    const size_t n = strlen(path);
    if (!err || strncmp(err->text, path, n) || strncmp(err->text + n, ": ", 2)) return;
    memmove(err->text, err->text + n + 2, strlen(err->text + n + 2) + 1);
}

fac_status fac_export_model(const fac_graph *model, bool onnx, fac_text *to, fac_error *err) {
    const char *at = getenv("TMPDIR");
    char dir[512], path[600];
    if (snprintf(dir, sizeof dir, "%s/facula-studio-XXXXXX", at && *at ? at : "/tmp") >=
            (int)sizeof dir ||
        !mkdtemp(dir))
        return fac_raise(err, FAC_E_IO, "cannot make a folder for the exported file");
    snprintf(path, sizeof path, "%s/model", dir);
    fac_status status =
        onnx ? save_onnx(model, path, err) : fac_graph_save_weights(model, path, err);
    if (status) without_path(path, err);
    if (!status) status = take_file(path, to, err);
    unlink(path);
    rmdir(dir);
    return status;
}

fac_status fac_export_file(const fac_graph *model, const char *name, fac_text *to,
                           const char **type, fac_error *err) {
    *type = "application/octet-stream";
    if (!strcmp(name, "model.onnx")) return fac_export_model(model, true, to, err);
    if (!strcmp(name, "model.safetensors")) return fac_export_model(model, false, to, err);
    *type = "text/plain; charset=utf-8";
    if (!strcmp(name, "net.c"))
        fac_text_add(to, studio_run_c);
    else if (!strcmp(name, "net.py"))
        fac_text_add(to, studio_run_py);
    else
        return fac_raise(err, FAC_E_ARGUMENT, "unknown file");
    return FAC_OK;
}
