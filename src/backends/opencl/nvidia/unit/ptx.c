/* From the driver's own PTX for sm_90 to a program for sm_90a.
 *
 * OpenCL C cannot ask for sm_90a: the compiler targets sm_90 whatever the options say, and refuses
 * wgmma there.  But what CL_PROGRAM_BINARIES gives on NVIDIA is PTX, as text, and that is taken
 * back by clCreateProgramWithBinary.  So kernels carry such instructions as PTX comments inside of
 * inline asm, with their operands (registers are allocated all the same):
 *
 *   //@@wgmma.fence.sync.aligned;   ->   wgmma.fence.sync.aligned;         .target sm_90   ->
 *       .target sm_90a
 *
 * ptxas ignores setmaxnreg unless it knows how many registers an item begins with.  A text with the
 * mark //@alone says that each of its kernels has a compute unit for itself:  .reqntid 384, 1, 1
 * ->  .minnctapersm 1 .reqntid 384, 1, 1 */
#include <string.h>
#include "backends/opencl/nvidia/unit/nvidia.h"
#include "base/error.h"
#include "base/memory.h"

static const char target[] = ".target sm_90", size[] = ".reqntid", alone[] = ".minnctapersm 1 ";

static bool is(const char *at, size_t left, const char *what) {
    return left >= strlen(what) && !memcmp(at, what, strlen(what));
}

static size_t count(const char *ptx, size_t length, const char *what) {
    size_t n = 0;
    for (size_t i = 0; i < length; i++) n += is(ptx + i, length - i, what);
    return n;
}

fac_status fac_nv_rewrite(const char *ptx, size_t bytes, char **out, size_t *out_bytes,
                          fac_error *err) {
    const size_t mark = strlen(FAC_NV_MARK), aim = strlen(target), length = strnlen(ptx, bytes);
    const size_t more =
        count(ptx, length, FAC_NV_ALONE) ? count(ptx, length, size) : 0; /* kernels that are told */
    char *text =
        fac_alloc(1, length + 2 + more * strlen(alone)); /* one letter more, and the closing zero */
    if (!text) return fac_raise_memory(err, "the PTX of a program");
    size_t n = 0, aims = 0;
    for (size_t i = 0; i < length;) {
        if (length - i >= mark && !memcmp(ptx + i, FAC_NV_MARK, mark)) {
            i += mark;
        } else if (!aims && length - i > aim && !memcmp(ptx + i, target, aim) &&
                   !(ptx[i + aim] >= '0' && ptx[i + aim] <= '9')) {
            memcpy(text + n, target, aim);
            n += aim;
            i += aim;
            aims++;
            if (ptx[i] != 'a') text[n++] = 'a';
        } else {
            if (more && is(ptx + i, length - i, size))
                memcpy(text + n, alone, strlen(alone)), n += strlen(alone);
            text[n++] = ptx[i++];
        }
    }
    text[n] = 0;
    if (!aims) {
        fac_release(text);
        return fac_raise(
            err, FAC_E_UNSUPPORTED,
            "a kernel for compute capability 9.0 was compiled for another one: its PTX has no "
            "\"%s\"",
            target);
    }
    *out = text;
    *out_bytes = n + 1;
    return FAC_OK;
}

fac_status fac_nv_uncovered(const fac_cl_api *cl, cl_context context, cl_device_id device,
                            cl_program from, char **ptx, size_t *bytes, cl_program *out,
                            fac_error *err) {
    size_t plain = 0;
    cl_int each = 0, code = 0;
    char *binary = fac_cl_program_binary(cl, from, &plain), *text;
    if (!binary)
        return fac_raise(err, FAC_E_DEVICE, "the driver does not give the PTX of a program");
    fac_status status = fac_nv_rewrite(binary, plain, &text, bytes, err);
    fac_release(binary);
    if (status) return status;
    const unsigned char *one = (const unsigned char *)text;
    cl_program made = cl->CreateProgramWithBinary(context, 1, &device, bytes, &one, &each, &code);
    if (code) {
        fac_release(text);
        return fac_raise(err, FAC_E_DEVICE,
                         "the driver does not take PTX that was changed: error %d", (int)code);
    }
    *out = made;
    *ptx = text;
    return FAC_OK;
}
