/* Kernels as text, for people and for comparing two builds of the library: see
 * fac_device_opts.kernel_texts.
 *
 * The name is a hash of text and options alone, not of the driver: two machines that make the same
 * kernels write the same files.  The first line holds the options, as scripts/check_ptx.sh reads
 * them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "backends/opencl/device/build.h"
#include "base/error.h"
#include "base/file/file.h"

fac_status fac_cl_write_text(const char *folder, const char *source, const char *options,
                             fac_error *err) {
    const fac_hash h = fac_hash_text(fac_hash_text(fac_hash_start(0xc1), source), options);
    char path[4096];
    const int n =
        snprintf(path, sizeof path, "%s/%016" PRIx64 "%016" PRIx64 ".cl", folder, h.a, h.b);
    if (n < 0 || (size_t)n >= sizeof path)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "the name of the folder for kernel texts is too long: %.80s...", folder);
    fac_writer *w;
    FAC_TRY(fac_writer_open(path, &w, err));
    fac_status status = fac_writer_put(w, "// ", 3, err);
    if (!status) status = fac_writer_put(w, options, strlen(options), err);
    if (!status) status = fac_writer_put(w, "\n", 1, err);
    if (!status) status = fac_writer_put(w, source, strlen(source), err);
    if (!status) return fac_writer_close(w, err);
    fac_writer_cancel(w);
    return status;
}
