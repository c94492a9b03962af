/* facula/studio.h: the playground.  A page on this machine where one builds networks, watches them
 * learn and looks inside; what it computes is computed here, the browser only draws.
 *
 * A studio serves on 127.0.0.1 alone, in threads of its own.  Whoever has its address, which holds
 * a key of 128 random bits, may use it; others are refused (see docs/STUDIO.md for all rules). */
#ifndef FACULA_STUDIO_H
#define FACULA_STUDIO_H

#include "facula/device.h"
#include "facula/tensor.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_studio fac_studio;

typedef struct fac_studio_opts {
    int port;           /* 0: any that is free */
    const char *device; /* where the page Points begins: a name of fac_device_open; NULL: "cpu" */
    int threads;        /* of the cpu; 0: 1, which is fastest for small networks, and one a core for
                           the pages Images and Text */
    const char *data;   /* a folder with the four files of MNIST, in it or in mnist/, for the page
                           Images, else these are Debian's Fashion-MNIST; and with train.tsv and
                           dev.tsv of SST-2, in it, in sst2/ or in text/sst2/, for the page Text.
                           NULL: none */
    const char *model;  /* an ONNX file or a name of the zoo for the page Graph, or NULL; a file
                           that takes waveforms also for the page Sound */
    const char *watch;  /* a folder of trainings (`facula train --out` below it) for the page Runs,
                           or NULL */
} fac_studio_opts;

/* Serves until fac_studio_close.  opts may be NULL; its texts are not copied, so they must live as
 * long as the studio.  FAC_E_UNSUPPORTED where libmicrohttpd is not installed, FAC_E_IO where the
 * port is taken. */
fac_status fac_studio_open(const fac_studio_opts *opts, fac_studio **out, fac_error *err);
/* "http://127.0.0.1:41733/#key=..."; lives as long as the studio. */
const char *fac_studio_address(const fac_studio *s);
void fac_studio_close(fac_studio *s); /* ends all sessions; NULL is fine */

/* ---- a training of one's own, on the page Notebook; any thread may call these ---- */

/* The next point of each of these curves, at this step.  At most 16 names of at most 95 bytes in
 * all calls together, else FAC_E_ARGUMENT; long curves are thinned out.  A value may be NaN or
 * infinite. */
fac_status fac_studio_log(fac_studio *s, double step, int n, const char *const names[],
                          const double values[], fac_error *err);
/* Pictures, histograms and numbers of these tensors as they are now, in place of those before; the
 * first 200.  Nothing is kept of the tensors.  FAC_E_ARGUMENT: a name of no bytes or of more than
 * 95; also what fac_tensor_convert to f32 fails with.  Then the pictures before stay. */
fac_status fac_studio_weights(fac_studio *s, int n, const char *const names[],
                              fac_tensor *const tensors[], fac_error *err);
/* Somebody pressed Stop on the page: the training may end when it likes. */
bool fac_studio_stop_asked(const fac_studio *s);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
