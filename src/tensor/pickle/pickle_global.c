/* See pickle_global.h.  What is in none of these tables is refused, for in Python it could run
 * code. */
#include "tensor/pickle/pickle_global.h"
#include <string.h>

static const fac_pickle_name rows[] = {
    { .name = "collections.OrderedDict", .is = FAC_PICKLE_ORDERED_DICT },
    { .name = "collections.defaultdict", .is = FAC_PICKLE_DEFAULT_DICT },
    { .name = "torch._utils._rebuild_tensor",
      .is = FAC_PICKLE_REBUILD }, /* files before PyTorch 0.4 */
    { .name = "torch._utils._rebuild_tensor_v2", .is = FAC_PICKLE_REBUILD },
    { .name = "torch._utils._rebuild_tensor_v3",
      .is = FAC_PICKLE_REBUILD_TYPED }, /* of types without a class of storages */
    { .name = "torch._utils._rebuild_parameter", .is = FAC_PICKLE_PARAMETER },
    { .name = "torch._utils._rebuild_parameter_with_state", .is = FAC_PICKLE_PARAMETER },
    { .name = "torch.nn.parameter.Parameter",
      .is = FAC_PICKLE_PARAMETER }, /* files before PyTorch 0.4 */

#define STORAGE(class, type)                                                                       \
    { "torch." class, FAC_PICKLE_STORAGE_CLASS, type, 0, NULL }
#define NO_STORAGE(class, bytes, what)                                                             \
    { "torch." class, FAC_PICKLE_STORAGE_CLASS, FAC_NONE, bytes, "elements of type " what }
    STORAGE("FloatStorage", FAC_F32),
    STORAGE("DoubleStorage", FAC_F64),
    STORAGE("HalfStorage", FAC_F16),
    STORAGE("BFloat16Storage", FAC_BF16),
    STORAGE("CharStorage", FAC_I8),
    STORAGE("ShortStorage", FAC_I16),
    STORAGE("IntStorage", FAC_I32),
    STORAGE("LongStorage", FAC_I64),
    STORAGE("ByteStorage", FAC_U8),
    STORAGE("BoolStorage", FAC_BOOL),
    STORAGE("storage.UntypedStorage", FAC_U8),
    NO_STORAGE("ComplexFloatStorage", 8, "complex64"),
    NO_STORAGE("ComplexDoubleStorage", 16, "complex128"),
    NO_STORAGE("QInt8Storage", 1, "qint8"),
    NO_STORAGE("QUInt8Storage", 1, "quint8"),
    NO_STORAGE("QInt32Storage", 4, "qint32"),
    NO_STORAGE("QUInt4x2Storage", 1, "quint4x2"),
    NO_STORAGE("QUInt2x4Storage", 1, "quint2x4"),

#define TYPE(name, type)                                                                           \
    { "torch." name, FAC_PICKLE_TYPE, type, 0, "elements of type " name }
    TYPE("float32", FAC_F32),
    TYPE("float64", FAC_F64),
    TYPE("float16", FAC_F16),
    TYPE("bfloat16", FAC_BF16),
    TYPE("int8", FAC_I8),
    TYPE("int16", FAC_I16),
    TYPE("int32", FAC_I32),
    TYPE("int64", FAC_I64),
    TYPE("uint8", FAC_U8),
    TYPE("uint16", FAC_U16),
    TYPE("uint32", FAC_U32),
    TYPE("uint64", FAC_U64),
    TYPE("bool", FAC_BOOL),
    TYPE("float8_e4m3fn", FAC_NONE),
    TYPE("float8_e5m2", FAC_NONE),
    TYPE("float8_e4m3fnuz", FAC_NONE),
    TYPE("float8_e5m2fnuz", FAC_NONE),
    TYPE("float8_e8m0fnu", FAC_NONE),
    TYPE("float4_e2m1fn_x2", FAC_NONE),
    TYPE("complex32", FAC_NONE),
    TYPE("complex64", FAC_NONE),
    TYPE("complex128", FAC_NONE),
    TYPE("qint8", FAC_NONE),
    TYPE("quint8", FAC_NONE),
    TYPE("qint32", FAC_NONE),
    TYPE("quint4x2", FAC_NONE),
    TYPE("quint2x4", FAC_NONE),

#define STRANGE(function, what)                                                                    \
    { "torch." function, FAC_PICKLE_STRANGE, FAC_NONE, 0, what }
    STRANGE("_utils._rebuild_qtensor", "a quantized tensor"),
    STRANGE("_utils._rebuild_sparse_tensor", "a sparse tensor"),
    STRANGE("_utils._rebuild_sparse_csr_tensor", "a sparse tensor"),
    STRANGE("_utils._rebuild_nested_tensor", "a nested tensor"),
    STRANGE("_utils._rebuild_meta_tensor_no_storage", "a tensor without contents"),
    STRANGE("_tensor._rebuild_from_type_v2", "a tensor of a class of its own"),

    { .name = "numpy.core.multiarray._reconstruct", .is = FAC_PICKLE_RECONSTRUCT }, /* NumPy 1 */
    { .name = "numpy._core.multiarray._reconstruct", .is = FAC_PICKLE_RECONSTRUCT },
    { .name = "numpy.dtype", .is = FAC_PICKLE_NUMPY_DTYPE },
    { .name = "_codecs.encode",
      .is = FAC_PICKLE_ENCODE }, /* Python 3 says bytes so in protocol 2 */

#define PLAIN(name)                                                                                \
    { name, FAC_PICKLE_PLAIN, FAC_NONE, 0, name }
    PLAIN("numpy.ndarray"),
    PLAIN("numpy.core.multiarray.scalar"),
    PLAIN("numpy._core.multiarray.scalar"),
    PLAIN("torch.Size"),
    PLAIN("torch.device"),
    PLAIN("torch.serialization._get_layout"),
    PLAIN("torch.strided"),
    PLAIN("torch.contiguous_format"),
    PLAIN("torch.channels_last"),
    PLAIN("torch.channels_last_3d"),
    PLAIN("torch.preserve_format"),
    PLAIN("collections.Counter"),
    PLAIN("collections.deque"),
    PLAIN("argparse.Namespace"),
    PLAIN("types.SimpleNamespace"),
    PLAIN("datetime.datetime"),
    PLAIN("datetime.date"),
    PLAIN("datetime.time"),
    PLAIN("datetime.timedelta"),
    PLAIN("datetime.timezone"),
    PLAIN("decimal.Decimal"),
    PLAIN("fractions.Fraction"),
    PLAIN("uuid.UUID"),
    PLAIN("pathlib.PosixPath"),
    PLAIN("pathlib.PurePosixPath"),
    PLAIN("pathlib.WindowsPath"),
    PLAIN("pathlib._local.PosixPath"),
    PLAIN("copy_reg._reconstructor"),
    PLAIN("__builtin__.object"),
    PLAIN("__builtin__.set"),
    PLAIN("__builtin__.frozenset"),
    PLAIN("__builtin__.complex"),
    PLAIN("__builtin__.bytearray"),
    PLAIN("__builtin__.slice"),
    PLAIN("__builtin__.xrange"),
    PLAIN("__builtin__.int"),
    PLAIN("__builtin__.float"),
    PLAIN("__builtin__.bool"),
    PLAIN("__builtin__.str"),
    PLAIN("__builtin__.unicode"),
    PLAIN("__builtin__.list"),
    PLAIN("__builtin__.dict"),
    PLAIN("__builtin__.tuple"),
    PLAIN("builtins.set"),
    PLAIN("builtins.complex"),
    PLAIN("builtins.range"),
    PLAIN("builtins.bytearray"),
};
enum { ROWS = sizeof rows / sizeof *rows };
_Static_assert(ROWS < 256, "a value keeps its row in a byte");

int fac_pickle_name_find(const char *module, size_t a, const char *name, size_t b) {
    for (int k = 0; k < ROWS; k++) {
        const char *known = rows[k].name;
        if (strlen(known) == a + 1 + b && !memcmp(known, module, a) && known[a] == '.' &&
            !memcmp(known + a + 1, name, b))
            return k;
    }
    return -1;
}

const fac_pickle_name *fac_pickle_name_at(int row) { return &rows[row]; }
