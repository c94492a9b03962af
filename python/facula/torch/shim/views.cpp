// Tensors without contents, and views: torch's own TensorImpl has sizes and strides, the storage has
// the state.  What torch writes for any device (`at::native`) makes the views and refuses bad sizes.
#include "lazy.h"
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <torch/library.h>
#include "memory.h"

namespace ocl {
using OD = std::optional<c10::ScalarType>;
using OL = std::optional<c10::Layout>;
using OP = std::optional<c10::Device>;
using OB = std::optional<bool>;
using OM = std::optional<c10::MemoryFormat>;

static const c10::DispatchKeySet kKeys{c10::DispatchKey::PrivateUse1};
static int index_of(OP d) {
  int i = d && d->has_index() ? d->index() : current_device();
  TORCH_CHECK(i < device_count(), "ocl: there is no device ocl:", i, ", but ", device_count());
  return i;
}
static at::Tensor wrapped(State* s, size_t n, c10::ScalarType dt, c10::IntArrayRef sizes,
                          c10::IntArrayRef strides, int64_t offset) {
  auto st = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), n, data_of(s),
                                                  allocator(), true);
  auto t = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(st)), kKeys,
                                                    c10::scalarTypeToTypeMeta(dt));
  t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return t;
}
at::Tensor make(c10::ScalarType dt, c10::IntArrayRef sizes, c10::IntArrayRef strides, int device) {
  size_t n = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dt), 0);
  return wrapped(state_new(n, device), n, dt, sizes, strides, 0);
}
at::Tensor make_with_state(State* s, const Ref& r) {
  return wrapped(s, s->bytes, r.dtype, r.sizes, r.strides, r.offset);
}
State* state_of(const at::Tensor& t) {
  return state_in(*t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

// torch.use_deterministic_algorithms: nothing is left of what memory held before.
static bool fills() {
  auto& all = at::globalContext();
  return all.deterministicAlgorithms() && all.deterministicFillUninitializedMemory();
}
static at::Tensor filled(at::Tensor t) {
  return fills() && t.numel() ? at::native::fill_empty_deterministic_(t) : t;
}
static void check_new(c10::IntArrayRef size, OB pinned) {
  at::detail::check_size_nonnegative(size);
  TORCH_CHECK(!pinned.value_or(false), "Only dense CPU tensors can be pinned");
}
static at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, OD dt, OL, OP dev,
                                OB pinned) {
  check_new(size, pinned);
  TORCH_CHECK(size.size() == stride.size(), "dimensionality of sizes (", size.size(),
              ") must match dimensionality of strides (", stride.size(), ")");
  return filled(make(dt.value_or(c10::get_default_dtype_as_scalartype()), size, stride, index_of(dev)));
}
static at::Tensor empty(c10::IntArrayRef size, OD dt, OL, OP dev, OB pinned, OM mf) {
  check_new(size, pinned);
  Dims st(size.size());
  int64_t n = 1;
  for (int i = (int)size.size() - 1; i >= 0; i--) {
    st[i] = n;
    n *= std::max<int64_t>(size[i], 1);
  }
  auto t = make(dt.value_or(c10::get_default_dtype_as_scalartype()), size, st, index_of(dev));
  if (mf && *mf != c10::MemoryFormat::Contiguous && *mf != c10::MemoryFormat::Preserve)
    t.unsafeGetTensorImpl()->empty_tensor_restride(*mf);
  return filled(t);
}

// ---- a tensor's own sizes and storage
static void reach(const at::Tensor& t) {
  auto item = t.dtype().itemsize();
  size_t need = at::detail::computeStorageNbytes(t.sizes(), t.strides(), item, t.storage_offset());
  if (t.numel() && need > t.storage().nbytes())
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(t.storage(), need);
}
const at::Tensor& resize(const at::Tensor& t, c10::IntArrayRef size, OM mf) {
  at::detail::check_size_nonnegative(size);
  auto* im = t.unsafeGetTensorImpl();
  if (t.sizes() != size) im->set_sizes_contiguous(size);
  if (mf) {
    TORCH_CHECK(*mf != c10::MemoryFormat::Preserve, "Unsupported memory format", *mf);
    im->empty_tensor_restride(*mf);
  }
  auto before = (int64_t)t.storage().nbytes();
  reach(t);
  if (fills()) at::native::fill_resize_deterministic_(t, before);
  return t;
}
static at::Tensor& set_storage(at::Tensor& t, at::Storage st, int64_t off, c10::IntArrayRef size,
                               c10::IntArrayRef stride) {
  at::detail::check_size_nonnegative(size);
  at::native::checkSetStorage<int64_t>(t, std::move(st), off, size, stride);
  auto* im = t.unsafeGetTensorImpl();
  im->set_storage_offset(off);
  if (stride.data()) im->set_sizes_and_strides(size, stride, off);
  else im->set_sizes_contiguous(size);
  reach(t);
  return t;
}
static at::Tensor& set_source(at::Tensor& t, at::Storage st) {
  int64_t n = st.nbytes() / t.dtype().itemsize();
  return set_storage(t, std::move(st), 0, {n}, {});
}
static at::Tensor& set_tensor(at::Tensor& t, const at::Tensor& s) {
  return set_storage(t, s.storage(), s.storage_offset(), s.sizes(), s.strides());
}
static at::Tensor& set_none(at::Tensor& t) {
  return set_storage(t, make(t.scalar_type(), {0}, {1}, t.device().index()).storage(), 0, {0}, {});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("is_set_to", TORCH_FN(at::native::is_set_to));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("resize_", TORCH_FN(resize));
  m.impl("set_", TORCH_FN(set_none));
  m.impl("set_.source_Storage", TORCH_FN(set_source));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
}
}  // namespace ocl
