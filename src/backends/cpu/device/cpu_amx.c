/* Asking for AMX: a thread's tiles are 8 KB that the system saves only for processes that said
 * that they will use them. */
#include "backends/cpu/bytes/amx.h"

#if FAC_AMX
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TILE_BIT = 1 << 24, INT8_BIT = 1 << 25 }; /* EDX of leaf 7 */
enum { OSXSAVE_BIT = 1 << 27 };                  /* ECX of leaf 1 */
enum { TILE_STATES = 3 << 17, TILE_DATA = 18 };  /* of XCR0: shapes and contents */
enum { ASK_FOR_STATE = 0x1023 };                 /* arch_prctl: ARCH_REQ_XCOMP_PERM */

static unsigned saved_states(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return low;
}

bool fac_cpu_amx(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE_BIT)) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    if (!(d & TILE_BIT) || !(d & INT8_BIT)) return false;
    if ((saved_states() & TILE_STATES) != TILE_STATES) return false;
    return syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0; /* again: nothing changes */
}
#else
bool fac_cpu_amx(void) { return false; }
#endif
