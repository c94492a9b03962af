/* facula/tune.h: choosing solvers by measurement, and what the machine can do at best.
 *
 * Without wisdom the planner believes the solvers' estimates.  Tuning runs a program many times, in
 * each pass with other solvers for its nodes, so that each is measured where it will work: with its
 * neighbours' layouts and what they leave in the caches. What was fastest, and right, is remembered
 * as wisdom: text that can be merged, shipped and read.
 *
 *   facula wisdom 1
 *   device cpu, avx512, 2 threads, Intel(R) Xeon(R) Processor
 *   conv2d/winograd_4x4:3 1 204.1 251.7 conv2d(f32[1,64,56,56], f32[64,64,3,3], f32[64])
 *       pad=1,1,1,1 {relu}
 *
 * A line after its device: solver and, after a colon, its variant; version of the solver;
 * microseconds of it and of the choice by estimates; the problem, with "!highest" (!high, !medium)
 * and "!run=1,2" after it when reduced precision was forbidden and when these operands are not
 * parameters.  Lines that begin with # are remarks.  What a device, solver or version does not know
 * is not used; a line that cannot be read is an error that names it.
 *
 * The library brings wisdom of its own (src/backends/shipped.wisdom), which serves where nothing
 * was measured here, for devices named by some parts of their keys; a device that is opened with
 * the path "" uses none at all. */
#ifndef FACULA_TUNE_H
#define FACULA_TUNE_H

#include "facula/device.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- wisdom ---- */

typedef struct fac_wisdom fac_wisdom;

typedef struct fac_wisdom_entry {
    const char *device; /* fac_device_key                                          */
    const char *problem, *solver;
    int variant, version;
    double seconds, otherwise; /* of one run of the node, and of the choice by estimates   */
} fac_wisdom_entry;

fac_status fac_wisdom_new(fac_wisdom **out, fac_error *err); /* an empty one */
/* A file of wisdom; FAC_E_FORMAT names the line at fault, FAC_E_IO the path. */
fac_status fac_wisdom_load(const char *path, fac_wisdom **out, fac_error *err);
fac_status fac_wisdom_save(const fac_wisdom *w, const char *path,
                           fac_error *err); /* appears whole or not at all */
void fac_wisdom_free(fac_wisdom *w);        /* NULL is fine */

fac_status fac_wisdom_put(fac_wisdom *w, const fac_wisdom_entry *e,
                          fac_error *err); /* replaces one of the same key */
/* Of two entries for one device and problem that of the higher version stays, else that of the
 * larger gain. */
fac_status fac_wisdom_merge(fac_wisdom *into, const fac_wisdom *from, fac_error *err);

/* How many entries there are. */
size_t fac_wisdom_count(const fac_wisdom *w);
fac_wisdom_entry fac_wisdom_at(
    const fac_wisdom *w, size_t i); /* texts live as long as w, or until the entry is replaced */
/* The entry of a device and a problem; false: there is none. */
bool fac_wisdom_find(const fac_wisdom *w, const char *device, const char *problem,
                     fac_wisdom_entry *out);

/* What entries of this device are kept under: "cpu, avx512, 2 threads, MODEL"; of a GPU its name,
 * units, memory and driver, and of NVIDIA's "sm_90" after them. */
const char *fac_device_key(const fac_device *d);
/* The file that a device opened without a path would read: FACULA_WISDOM, else
 * XDG_DATA_HOME/facula/wisdom, else
 * ~/.local/share/facula/wisdom.  false: there is none (FACULA_WISDOM is empty, or there is no
 * home). */
bool fac_wisdom_path(char *to, size_t size);

/* ---- tuning ---- */

typedef struct fac_program fac_program;

typedef struct fac_tuned {
    const char *solver;
    int variant;
    double estimate, seconds;
} fac_tuned;

typedef struct fac_tune_opts { /* zero is the default everywhere */
    double seconds;            /* of measuring in each pass; 0 = 0.2, and at least three runs */
    int rounds; /* through all candidates; 0 = 2: the fastest run of each counts                */
    void (*progress)(void *self, int pass, int passes);
    void *self;
    int most; /* candidates of a problem, those with the least estimates; 0: all that may win */
    /* Once for each candidate, after the last pass; texts live for the call.  seconds: infinite
     * when it did not run. */
    void (*measured)(void *self, const char *problem, const fac_tuned *t);
} fac_tune_opts;

typedef struct fac_tune_stat {
    int problems, candidates; /* different ones; solvers and variants that were measured for them */
    int changed,
        refused; /* another solver than by estimates; faster ones whose results were wrong        */
    double before, after;   /* seconds of a run by estimates and with what was learnt, alternating:
                               lower quartiles */
    int winners, confirmed; /* problems with a faster choice: at first; timed again, and right */
    double together;        /* seconds of a run with all of these, whether they were kept or not */
} fac_tune_stat;

/* Tunes the program for inputs of these types and adds what was learnt to `into`; the program
 * itself stays as it is: save the wisdom and open the device with it, or hand it to
 * fac_program_opts.  Nothing is learnt that does not give what the reference kernels give (on other
 * devices than the cpu: what the cpu gives) or did not win twice, and no change at all unless the
 * whole is faster with it in 10 of 12 turns.  Runs the program: one with updates writes its
 * parameters. */
fac_status fac_program_tune(fac_program *p, fac_tensor *const in[], const fac_tune_opts *opts,
                            fac_wisdom *into, fac_tune_stat *stat, fac_error *err);

/* ---- the machine at its best ---- */

enum { FAC_CACHES = 3 };

/* Measured on this device in a fraction of a second.  Bandwidths are bytes a second of all threads
 * together. */
typedef struct fac_peaks {
    int threads; /* of a GPU: compute units                                                       */
    double flops,
        flops_one; /* f32 multiplications and additions a second: of all threads, of one */
    size_t cache[FAC_CACHES];        /* bytes; first and second: of one core        */
    double cache_read[FAC_CACHES];   /* 0: there is none   */
    double memory_read, memory_copy; /* copy: what is read and what is written, together */
    double fork_join; /* seconds to start all threads and wait for them; of a GPU, a kernel */
    /* Of a GPU, else 0.  tensor: products of matrix units, sums in f32; launch: seconds of one
     * kernel more in a chain.  */
    double tensor_tf32, tensor_half, launch;
} fac_peaks;
fac_status fac_device_peaks(fac_device *d, fac_peaks *out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
