#!/bin/sh
# Kernels for NVIDIA without a GPU: every DIR/*.cl is compiled by clang to PTX as the driver would, its instructions of sm_90a are
# uncovered, and ptxas assembles it: registers, spills and local memory of each kernel are printed, errors end with 1.
#   sh scripts/check_ptx.sh DIR [ARCH]          ARCH: sm_90a; sm_80 and the like for kernels without wgmma
# The first line of a text may hold options: // -DX=1 -cl-nv-maxrregcount=128.  Texts are written by the tests when
# FACULA_KERNELS names a folder.  Needs clang with the NVPTX target, and ptxas of a CUDA toolkit (PTXAS=... or on the PATH).
dir=$1 arch=${2:-sm_90a} bad=0
ptxas=${PTXAS:-$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)}
prelude=$(dirname "$0")/../src/backends/opencl/device/prelude.cl
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cat > "$work/builtins.h" <<'END'
#define get_local_id(d) ((size_t)((d) == 0 ? __nvvm_read_ptx_sreg_tid_x() : (d) == 1 ? __nvvm_read_ptx_sreg_tid_y() : __nvvm_read_ptx_sreg_tid_z()))
#define get_group_id(d) ((size_t)((d) == 0 ? __nvvm_read_ptx_sreg_ctaid_x() : (d) == 1 ? __nvvm_read_ptx_sreg_ctaid_y() : __nvvm_read_ptx_sreg_ctaid_z()))
#define get_local_size(d) ((size_t)((d) == 0 ? __nvvm_read_ptx_sreg_ntid_x() : (d) == 1 ? __nvvm_read_ptx_sreg_ntid_y() : __nvvm_read_ptx_sreg_ntid_z()))
#define get_num_groups(d) ((size_t)((d) == 0 ? __nvvm_read_ptx_sreg_nctaid_x() : (d) == 1 ? __nvvm_read_ptx_sreg_nctaid_y() : __nvvm_read_ptx_sreg_nctaid_z()))
#define get_global_id(d) (get_group_id(d) * get_local_size(d) + get_local_id(d))
#define get_global_size(d) (get_num_groups(d) * get_local_size(d))
#define barrier(x) __syncthreads()
#define fma(a, b, c) __nvvm_fma_rn_f(a, b, c)
#define fmax(a, b) __nvvm_fmax_f(a, b)
#define fmin(a, b) __nvvm_fmin_f(a, b)
#define log2(a) __nvvm_lg2_approx_f(a)
#define exp(a) __nvvm_ex2_approx_f((a) * 1.44269504f)
#define mul_hi(a, b) ((uint)(((ulong)(uint)(a) * (uint)(b)) >> 32))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define clamp(x, a, b) min(max(x, a), b)
#define fabs(a) __builtin_fabsf(a)
#define sqrt(a) __nvvm_sqrt_rn_f(a)
#define popcount(a) __builtin_popcount(a)
static inline void atomic_max_local(__local unsigned *p, unsigned v) {
    __asm__ volatile("red.shared.max.u32 [%0], %1;" ::"r"((unsigned)(unsigned long)p), "r"(v) : "memory");
}
#define atomic_max(p, v) atomic_max_local(p, v)
#define vload_half(i, p) __builtin_load_halff((p) + (i))
#define vstore_half_rte(v, i, p) __builtin_store_halff(v, (p) + (i))
#define asm __asm__
END
for f in "$dir"/*.cl; do
    name=$(basename "$f" .cl)
    options=$(sed -n '1s,^// *,,p' "$f" | sed 's/-cl-nv-maxrregcount=[0-9]*//; s/-cl-single-precision-constant//')
    most=$(sed -n '1s/.*-cl-nv-maxrregcount=\([0-9]*\).*/--maxrregcount=\1/p' "$f")
    cat "$work/builtins.h" "$prelude" "$f" > "$work/$name.cl"
    if ! clang -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -target nvptx64-nvidia-cuda -Xclang -target-cpu -Xclang sm_80 \
            -Xclang -target-feature -Xclang +ptx72 -O3 -cl-single-precision-constant -w $options -S -o "$work/$name.ptx" "$work/$name.cl"; then
        echo "$name: does not compile"; bad=1; continue
    fi
    sed -e 's,//@@,,' -e "s/^\.target .*/.target $arch/" -e 's/^\.version .*/.version 8.3/' "$work/$name.ptx" > "$work/$name.90.ptx"
    if grep -q '//@alone' "$work/$name.ptx"; then         # as ptx.c does; this clang tells no sizes of groups, the driver's does
        items=$(($(clang -E -P -x cl $options "$work/$name.cl" 2> "$work/log" | tr '\n' ' ' |
                   sed 's/.*reqd_work_group_size(\([^,]*\),.*/\1/')))
        sed -i "/^\.visible .entry/,/^)/ s/^)/) .reqntid $items, 1, 1 .minnctapersm 1/" "$work/$name.90.ptx"
    fi
    if ! "$ptxas" -arch="$arch" $most -v -o "$work/$name.cubin" "$work/$name.90.ptx" > "$work/log" 2>&1; then
        echo "$name: does not assemble"; head -20 "$work/log"; bad=1; continue
    fi
    grep -E 'warning|C75' "$work/log" | head -5
    awk -v name="$name" '/Compiling entry/ { k = $6 } /bytes stack frame/ { spill = $0; sub(/^ */, "", spill) }
        /Used [0-9]+ registers/ { sub(/.*Used/, "used"); printf "%-36s %s %s; %s\n", name, k, $0, spill }' "$work/log"
done
exit $bad
