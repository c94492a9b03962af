/* How many cores: control groups of both versions as a tree of files, and this process's affinity.
 */
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "base/threads.h"
#include "folder.h"

/* A file with all folders above it, in a tree of its own for each case. */
static void put(const char *tree, const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s/%s", folder, tree, path);
    for (char *at = strchr(full + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(full, 0777);
        *at = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int cores(const char *tree) {
    char groups[256], mount[256];
    snprintf(groups, sizeof groups, "%s/%s/groups", folder, tree);
    snprintf(mount, sizeof mount, "%s/%s/mount", folder, tree);
    return fac_quota_cores(groups, mount);
}

enum { NO_LIMIT = 1 << 20 };

static void test_version_2(void **state) {
    (void)state;
    put("v2", "groups", "0::/system.slice/job\n");
    assert_int_equal(cores("v2"), NO_LIMIT);
    put("v2", "mount/system.slice/job/cpu.max", "max 100000\n");
    assert_int_equal(cores("v2"), NO_LIMIT);
    put("v2", "mount/system.slice/job/cpu.max", "300000 100000\n");
    assert_int_equal(cores("v2"), 3);
    put("v2", "mount/system.slice/job/cpu.max", "250000 100000\n"); /* a part of a core is one */
    assert_int_equal(cores("v2"), 3);
    put("v2", "mount/system.slice/job/cpu.max", "5000 100000\n");
    assert_int_equal(cores("v2"), 1);
    put("v2", "mount/system.slice/job/cpu.max", "800000 100000\n");
    put("v2", "mount/system.slice/cpu.max", "200000 100000\n"); /* the group above has less */
    assert_int_equal(cores("v2"), 2);
}

/* In a container the path is that of the host, and its own group is the root. */
static void test_container(void **state) {
    (void)state;
    put("box", "groups", "0::/docker/0123abcd\n");
    put("box", "mount/cpu.max", "400000 100000\n");
    assert_int_equal(cores("box"), 4);
}

static void test_version_1(void **state) {
    (void)state;
    put("v1", "groups", "7:cpuset:/\n4:cpuacct,cpu:/a/b\n2:cpuacct:/c\n1:name=systemd:/\n0::/\n");
    put("v1", "mount/cpu/a/b/cpu.cfs_quota_us", "-1\n");
    put("v1", "mount/cpu/a/b/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cores("v1"), NO_LIMIT);
    put("v1", "mount/cpu/a/cpu.cfs_quota_us", "150000\n");
    put("v1", "mount/cpu/a/cpu.cfs_period_us", "50000\n");
    assert_int_equal(cores("v1"), 3);
    put("v1", "mount/cpu,cpuacct/cpu.cfs_quota_us",
        "100000\n"); /* a second name of the same mount */
    put("v1", "mount/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cores("v1"), 1);
}

static void test_nonsense(void **state) {
    (void)state;
    assert_int_equal(cores("nowhere"), NO_LIMIT);
    put("bad", "groups", "no colons\n:\n::\n4:cpu\n0::/x\n\n");
    put("bad", "mount/x/cpu.max", "lots\n");
    put("bad", "mount/cpu.max", "100 0\n");
    assert_int_equal(cores("bad"), NO_LIMIT);
    put("bad", "mount/x/cpu.max", "0 100\n");
    assert_int_equal(cores("bad"), NO_LIMIT);
    put("bad", "mount/x/cpu.max", "9223372036854775807 1\n");
    assert_int_equal(cores("bad"), NO_LIMIT);
    char text[6000] = "0::/";
    memset(text + 4, 'y', sizeof text - 5);
    put("bad", "groups", text);
    assert_int_equal(cores("bad"), NO_LIMIT);
}

/* One core of however many: a child gives up all others. */
static void test_affinity(void **state) {
    (void)state;
    assert_true(fac_cores() >= 1);
#ifdef CPU_COUNT
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        cpu_set_t all, one;
        CPU_ZERO(&one);
        if (sched_getaffinity(0, sizeof all, &all)) _exit(77);
        for (int i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &all)) {
                CPU_SET(i, &one);
                break;
            }
        if (sched_setaffinity(0, sizeof one, &one)) _exit(77);
        _exit(fac_cores() == 1 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_version_2),
                                        cmocka_unit_test(test_container),
                                        cmocka_unit_test(test_version_1),
                                        cmocka_unit_test(test_nonsense),
                                        cmocka_unit_test(test_affinity) };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
