/* How many cores this process may use: the fewest of what is online, what its affinity allows, and
 * what the groups that it is in (containers, services) may spend.
 *
 * A control group limits microseconds of cpu time in each period: version 2 in cpu.max ("200000
 * 100000", or "max 100000"), version 1 in cpu.cfs_quota_us (-1: none) and cpu.cfs_period_us. Limits
 * of all groups above hold too.  /proc/self/cgroup names the groups: "0::/a/b" for version 2,
 * "4:cpu,cpuacct:/a/b" for version 1; in a container that path may not exist, but its root does. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/threads.h"

enum { PATH = 4096, MANY = 1 << 20 };

static bool read_numbers(const char *folder, const char *name, long *a, long *b) {
    char path[PATH + 64];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) return false;
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const int got = fscanf(f, b ? "%ld %ld" : "%ld", a, b);
    fclose(f);
    return got == (b ? 2 : 1);
}

static int cores_of(const char *folder) {
    long quota, period;
    if (!read_numbers(folder, "cpu.max", &quota, &period) &&
        !(read_numbers(folder, "cpu.cfs_quota_us", &quota, NULL) &&
          read_numbers(folder, "cpu.cfs_period_us", &period, NULL)))
        return MANY;
    if (quota <= 0 || period <= 0) return MANY;
    const long cores = quota / period + (quota % period != 0);
    return cores < MANY ? (int)cores : MANY;
}

/* The least of the group at root/path and of those above it. */
static int cores_up_from(const char *root, const char *path) {
    char folder[PATH];
    const size_t top = strlen(root);
    int least = MANY;
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", root, path) >= sizeof folder) return MANY;
    for (;;) {
        const int n = cores_of(folder);
        if (n < least) least = n;
        char *slash = strrchr(folder + top, '/');
        if (!slash) return least;
        *slash = 0;
    }
}

/* Is `word` one of these, separated by commas? */
static bool among(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *s = list; *s; s += strcspn(s, ","), s += *s == ',')
        if (strcspn(s, ",") == n && !strncmp(s, word, n)) return true;
    return false;
}

int fac_quota_cores(const char *groups, const char *mount) {
    char line[PATH], root[PATH];
    int least = MANY;
    FILE *f = fopen(groups, "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'),
             *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        controllers++;
        const bool second = !*controllers;
        if (!second && !among(controllers, "cpu")) continue;
        static const char *const both[2][2] = { { "/cpu", "/cpu,cpuacct" }, { "", "/unified" } };
        const char *const *roots = both[second];
        for (int k = 0; k < 2; k++) {
            snprintf(root, sizeof root, "%s%s", mount, roots[k]);
            const int n = cores_up_from(root, path);
            if (n < least) least = n;
        }
    }
    if (f) fclose(f);
    return least;
}

int fac_cores(void) {
    int n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const int quota = fac_quota_cores("/proc/self/cgroup", "/sys/fs/cgroup");
#ifdef CPU_COUNT
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set)) n = CPU_COUNT(&set);
#endif
    if (n > quota) n = quota;
    return n < 1 ? 1 : n;
}
