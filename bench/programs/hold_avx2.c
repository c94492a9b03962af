/* For LD_PRELOAD: the program sees a processor without AVX-512, whatever library asks.
 *
 *     cc -O2 -shared -fPIC bench/programs/hold_avx2.c -o hold_avx2.so
 *     LD_PRELOAD=./hold_avx2.so python
 *         ...
 *
 * ONNX Runtime has no switch for its instruction set: it asks the processor.  Linux can make the
 * instruction that asks fault (arch_prctl, on processors with CPUID faulting), and the handler
 * answers it with the bits of AVX-512 and AMX taken out. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SET_CPUID = 0x1012 }; /* ARCH_SET_CPUID: asm/prctl.h may be older */
enum { LEAF_FEATURES = 7 };
static const unsigned EBX = 1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 |
                            1u << 30 | 1u << 31,              /* F DQ IFMA PF ER CD BW VL */
    ECX = 1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14, /* VBMI VBMI2 VNNI BITALG VPOPCNTDQ */
    EDX = 1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 |
          1u << 25, /* 4VNNIW 4FMAPS VP2INTERSECT FP16 AMX */
    BF16 = 1u << 5; /* of subleaf 1                               */

static struct sigaction before;

static void answer(int number, siginfo_t *info, void *context) {
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)r[REG_RIP];
    if (at[0] != 0x0F || at[1] != 0xA2) { /* something else went wrong: as without us */
        sigaction(SIGSEGV, &before, NULL);
        return;
    }
    (void)number, (void)info;
    const unsigned leaf = (unsigned)r[REG_RAX], sub = (unsigned)r[REG_RCX];
    unsigned a, b, c, d;
    syscall(SYS_arch_prctl, SET_CPUID, 1);
    __cpuid_count(leaf, sub, a, b, c, d);
    syscall(SYS_arch_prctl, SET_CPUID, 0);
    if (leaf == LEAF_FEATURES && sub == 0) {
        b &= ~EBX;
        c &= ~ECX;
        d &= ~EDX;
    }
    if (leaf == LEAF_FEATURES && sub == 1) a &= ~BF16;
    r[REG_RAX] = a;
    r[REG_RBX] = b;
    r[REG_RCX] = c;
    r[REG_RDX] = d;
    r[REG_RIP] += 2;
}

static void __attribute__((constructor)) hold(void) {
    struct sigaction s = { .sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER };
    if (sigaction(SIGSEGV, &s, &before) || syscall(SYS_arch_prctl, SET_CPUID, 0)) {
        fprintf(stderr, "hold_avx2: this processor or kernel has no CPUID faulting\n");
        exit(1);
    }
}
