/* facula/passes.h: what the planner makes of a graph before it chooses solvers, pass by pass.
 * Errors and out-parameters: see status.h.  Any thread. */
#ifndef FACULA_PUBLIC_PASSES_H
#define FACULA_PUBLIC_PASSES_H
#include "facula/program.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* In the order in which they run.  when: which programs have it, "" for all; does: in a few words.
 */
typedef struct fac_pass_info {
    const char *name, *when, *does;
} fac_pass_info;
/* Entry i; false: there are no more.  The texts are the library's. */
bool fac_pass_info_of(int i, fac_pass_info *out);

/* The graph of a program of g on the device after the named pass, or after the last one before it
 * that such a program has: "settle" comes first.  Open sizes are 1, and the batch is not cut into
 * slices.  opts may be NULL.  FAC_E_ARGUMENT: no pass has that name.  The result is the caller's.
 */
fac_status fac_graph_after(const fac_graph *g, fac_device *device, const fac_program_opts *opts,
                           const char *pass, fac_graph **out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
