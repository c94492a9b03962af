/* Opening libmicrohttpd. */
#include "http/microhttpd.h"
#include <dlfcn.h>
#include <string.h>
#include "base/error.h"

fac_status fac_mhd_open(fac_mhd *m, fac_error *err) {
    static const char *const names[] = { "libmicrohttpd.so.12", "libmicrohttpd.12.dylib",
                                         "libmicrohttpd.dylib", NULL };
    const struct {
        const char *name;
        void *to;
    } calls[] = {
        { "MHD_start_daemon", &m->start_daemon },
        { "MHD_stop_daemon", &m->stop_daemon },
        { "MHD_quiesce_daemon", &m->quiesce_daemon },
        { "MHD_get_connection_info", &m->get_connection_info },
        { "MHD_get_connection_values", &m->get_connection_values },
        { "MHD_create_response_from_callback", &m->create_response_from_callback },
        { "MHD_add_response_header", &m->add_response_header },
        { "MHD_queue_response", &m->queue_response },
        { "MHD_destroy_response", &m->destroy_response },
    };
    m->library = NULL;
    for (int k = 0; names[k] && !m->library; k++)
        m->library = dlopen(names[k], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!m->library)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "a server needs libmicrohttpd, which is not there (Debian: "
                         "libmicrohttpd12)");
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        void *symbol = dlsym(m->library, calls[k].name);
        if (!symbol)
            return fac_raise(err, FAC_E_UNSUPPORTED, "libmicrohttpd has no %s: it is too old",
                             calls[k].name);
        memcpy(calls[k].to, &symbol,
               sizeof symbol); /* C has no cast from an object to a function */
    }
    return FAC_OK;
}
