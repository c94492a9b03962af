/* The playground: a server on this machine, its key and its sessions. */
#include "studio/server/studio.h"
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"

#define PATIENCE_NS (600 * INT64_C(1000000000))
enum { CONNECTIONS = 16 };

static fac_status serve(fac_studio *s, fac_error *err) {
    FAC_TRY(fac_http_new_key(s->key, err));
    FAC_TRY(fac_sessions_start(&s->sessions, PATIENCE_NS, err));
    const fac_http_opts how = {
        .port = s->with.opts.port, .key = s->key, .connections = CONNECTIONS, .self = s
    };
    const fac_status status =
        fac_http_start(&how, fac_studio_routes, fac_studio_nroutes, &s->http, err);
    if (status) fac_sessions_stop(&s->sessions);
    return status;
}

fac_status fac_studio_open(const fac_studio_opts *opts, fac_studio **out, fac_error *err) {
    fac_studio *s = fac_alloc(1, sizeof *s);
    if (!s) return fac_raise_memory(err, "a studio");
    if (opts) s->with.opts = *opts;
    s->with.notebook = fac_notebook_new();
    const fac_status status = s->with.notebook ? serve(s, err) : fac_raise_memory(err, "a studio");
    if (status) {
        fac_notebook_free(s->with.notebook);
        fac_release(s);
        return status;
    }
    snprintf(s->address, sizeof s->address, "http://127.0.0.1:%d/#key=%s", fac_http_port(s->http),
             s->key);
    *out = s;
    return FAC_OK;
}

const char *fac_studio_address(const fac_studio *s) { return s->address; }

void fac_studio_close(fac_studio *s) {
    if (!s) return;
    fac_sessions_end_all(&s->sessions);
    fac_http_stop(s->http);
    fac_sessions_stop(&s->sessions);
    fac_notebook_free(s->with.notebook);
    fac_release(s);
}

fac_status fac_studio_log(fac_studio *s, double step, int n, const char *const names[],
                          const double values[], fac_error *err) {
    return fac_notebook_log(s->with.notebook, step, n, names, values, err);
}

fac_status fac_studio_weights(fac_studio *s, int n, const char *const names[],
                              fac_tensor *const tensors[], fac_error *err) {
    return fac_notebook_weights(s->with.notebook, n, names, tensors, err);
}

bool fac_studio_stop_asked(const fac_studio *s) { return fac_notebook_stopped(s->with.notebook); }
