/* Whether products of bytes may use AMX, whose instructions multiply tiles of 16 x 64 bytes. */
#ifndef FACULA_CPU_AMX_H
#define FACULA_CPU_AMX_H
#include <stdbool.h>

/* Compilers that know it, on Linux.  MemorySanitizer does not see what tiles write. */
#if defined(__x86_64__) && defined(__linux__) && defined(__has_include)
#if __has_include(<amxint8intrin.h>) || __has_include(<amxintrin.h>) /* of gcc, of clang */
#define FAC_AMX 1
#endif
#endif
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#undef FAC_AMX
#endif
#endif
#ifndef FAC_AMX
#define FAC_AMX 0
#endif

/* Whether this processor has it and the system lets this process use it, which it is asked here. */
bool fac_cpu_amx(void);
#endif
