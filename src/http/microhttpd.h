/* libmicrohttpd, opened at run time: what of its interface is used here, in our words.  It is that
 * of version 0.9.71 and later (https://www.gnu.org/software/libmicrohttpd/manual/), whose library
 * is called libmicrohttpd.so.12.  tests/http compares the numbers with its header where that is
 * there. */
#ifndef FACULA_HTTP_MICROHTTPD_H
#define FACULA_HTTP_MICROHTTPD_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "facula/status.h"

enum { /* of daemons */
       FAC_MHD_USE_THREAD_PER_CONNECTION = 4,
       FAC_MHD_USE_INTERNAL_POLLING_THREAD = 8,
       FAC_MHD_USE_POLL = 64,
       FAC_MHD_USE_ITC = 1024,
};
enum { /* options of daemons, and what follows them */
       FAC_MHD_OPTION_END = 0,
       FAC_MHD_OPTION_CONNECTION_MEMORY_LIMIT = 1, /* size_t */
       FAC_MHD_OPTION_CONNECTION_LIMIT = 2,        /* unsigned */
       FAC_MHD_OPTION_NOTIFY_COMPLETED = 4,        /* function, void * */
       FAC_MHD_OPTION_LISTEN_SOCKET = 12,          /* int */
       FAC_MHD_OPTION_UNESCAPE_CALLBACK = 16,      /* function, void * */
       FAC_MHD_OPTION_NOTIFY_CONNECTION = 27,      /* function, void * */
};
enum { FAC_MHD_NO, FAC_MHD_YES };
enum { FAC_MHD_HEADER_KIND = 1 };
enum { FAC_MHD_CONNECTION_NOTIFY_STARTED, FAC_MHD_CONNECTION_NOTIFY_CLOSED };
enum { FAC_MHD_CONNECTION_INFO_CONNECTION_FD = 6, FAC_MHD_CONNECTION_INFO_SOCKET_CONTEXT = 7 };
enum { FAC_MHD_STREAM_END = -1, FAC_MHD_STREAM_ERROR = -2 };
#define FAC_MHD_SIZE_UNKNOWN UINT64_MAX

typedef int (*fac_mhd_access)(void *self, void *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *bytes, void **request);
typedef int (*fac_mhd_header)(void *self, int kind, const char *name, const char *value);
typedef ssize_t (*fac_mhd_reader)(void *self, uint64_t at, char *to, size_t room);

typedef struct fac_mhd {
    void *library;
    void *(*start_daemon)(unsigned flags, uint16_t port, void *policy, void *policy_self,
                          fac_mhd_access access, void *self, ...);
    void (*stop_daemon)(void *daemon);
    int (*quiesce_daemon)(void *daemon);
    const void *(*get_connection_info)(void *connection, int what, ...);
    int (*get_connection_values)(void *connection, int kind, fac_mhd_header each, void *self);
    void *(*create_response_from_callback)(uint64_t size, size_t block, fac_mhd_reader read,
                                           void *self, void (*done)(void *self));
    int (*add_response_header)(void *response, const char *name, const char *value);
    int (*queue_response)(void *connection, unsigned status, void *response);
    void (*destroy_response)(void *response);
} fac_mhd;

/* FAC_E_UNSUPPORTED names what is missing. */
fac_status fac_mhd_open(fac_mhd *m, fac_error *err);
#endif
