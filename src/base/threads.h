/* A pool of threads that spin a little and then sleep.  See fac_pool in facula/device.h for the
 * contract. */
#ifndef FACULA_BASE_THREADS_H
#define FACULA_BASE_THREADS_H
#include <stdbool.h>
#include "facula/device.h"

typedef struct fac_threads fac_threads;

int fac_cores(void); /* cores.c: that this process may use, at least 1 */
int fac_quota_cores(const char *groups, const char *mount); /* cores.c: by control groups, listed as
                                                       in /proc/self/cgroup, mounted at `mount` */
enum { FAC_MOST_THREADS = 256 };
fac_threads *fac_threads_new(int threads); /* 0 = fac_cores(); NULL when memory is gone; fewer
                                              threads than asked for are not an error */
void fac_threads_free(fac_threads *t);     /* waits for them; NULL is fine */
fac_pool fac_threads_pool(fac_threads *t);

/* Items 0..n-1 in contiguous shares, first the own share, then stolen from the others: data stays
 * on the core that wrote it.  Two callers at once are served one after the other: the second runs
 * its items itself. task gets the item; `thread` is below pool->threads and no two running tasks of
 * one call share it. */
typedef void fac_task(void *arg, int item, int thread);
void fac_parallel(const fac_pool *pool, int n, fac_task *task, void *arg);
#endif
