/* A text for mma.sync as a library of this machine: functions with inline PTX become declarations,
 * which tests/tools/warp_machine.c defines.  Needs clang and cc. */
#ifndef WARP_EMULATION_H
#define WARP_EMULATION_H
#include <dlfcn.h>
#include "base/text.h"
#include "cl_prelude.h"

typedef int warp_machine(const size_t *groups, int each, const long *words, void *const *buffers);

static const char emulated_words[] =
    "extern const long *emu_words(void);\nextern size_t emu_buffer(int i);\n"
    "extern size_t emu_local_id(uint d);\nextern size_t emu_group_id(uint d);\n"
    "extern void emu_barrier(void);\nextern uint emu_local(size_t at, size_t bytes);\n"
    "extern void emu_commit(void);\nextern void emu_wait(int n);\n"
    "#define get_local_id(d) emu_local_id(d)\n#define get_group_id(d) emu_group_id(d)\n"
    "#define get_num_groups(d) 1\n#define barrier(x) emu_barrier()\n#define asm __asm__\n"
    "#define fma(a, b, c) __builtin_fmaf(a, b, c)\n#define fmax(a, b) __builtin_fmaxf(a, b)\n"
    "#define log2(a) __builtin_log2f(a)\n#define min(a, b) ((a) < (b) ? (a) : (b))\n"
    "#define max(a, b) ((a) > (b) ? (a) : (b))\n#define clamp(x, a, b) min(max(x, a), b)\n"
    "#define popcount(x) __builtin_popcount(x)\n"
    "#define mul_hi(a, b) ((uint)(((ulong)(uint)(a) * (uint)(b)) >> 32))\n";
/* In front of the kernel: macros with PTX. */
static const char emulated_macros[] =
    "#undef NV_COPIES_COMMIT\n#define NV_COPIES_COMMIT() emu_commit()\n#undef NV_COPIES_WAIT\n"
    "#define NV_COPIES_WAIT(n) emu_wait(n)\n#undef LOCAL_AT\n"
    "#define LOCAL_AT(p) emu_local((size_t)(p), sizeof(p))\n";

/* Where the function that begins at s ends. */
static inline const char *end_of_function(const char *s) {
    int depth = 0;
    for (s = strchr(s, '{'); *s; s++) {
        depth += (*s == '{') - (*s == '}');
        if (!depth) return s + 1;
    }
    return s;
}

static inline void emulated_text(const char *s, const char *entry, fac_text *to) {
    fac_text_add(to, emulated_words);
    fac_text_add(to, fac_kernel_prelude);
    for (const char *next; (next = strstr(s, "\nINLINE "));) {
        const char *end = end_of_function(next), *name = next + strlen("\nINLINE "),
                   *body = strchr(next, '{'), *ptx = strstr(body, "asm");
        fac_text_print(to, "%.*s", (int)(next + 1 - s), s);
        if (ptx && ptx < end)
            fac_text_print(to, "extern %.*s;", (int)(body - name), name);
        else
            fac_text_print(to, "%.*s", (int)(end - next - 1), next + 1);
        s = end;
    }
    const char *kernel = strstr(s, "\nkernel ");
    assert_non_null(kernel);
    fac_text_print(to, "%.*s\n%s%s\n%s", (int)(kernel - s), s, emulated_macros, kernel, entry);
}

/* NULL: there is no clang that can. */
static inline void *emulated_library(const char *text, const char *entry, const char *folder,
                                     warp_machine **run) {
    char path[512], command[4096];
    fac_text t = { 0 };
    emulated_text(text, entry, &t);
    assert_false(t.failed);
    snprintf(path, sizeof path, "%s/kernel.cl", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(t.s, f);
    fclose(f);
    fac_text_free(&t);
    static int number;
    number++;
    snprintf(command, sizeof command,
             "clang -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -O1 -fPIC -w -c "
             "-o %s/kernel.o %s/kernel.cl && cc -O1 -w -shared -fPIC -o %s/kernel_%d.so " TEST_DIR
             "/tools/warp_machine.c %s/kernel.o -lm",
             folder, folder, folder, number, folder);
    if (system("clang --version > /dev/null 2>&1")) return NULL;
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/kernel_%d.so", folder, number);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    *(void **)run = dlsym(library, "machine_run");
    assert_non_null(*run);
    return library;
}
#endif
