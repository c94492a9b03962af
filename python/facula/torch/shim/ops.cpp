// Copies, reads, the two recurrent cells, and the registration of everything else in one loop.
#include "lazy.h"
#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <torch/library.h>
#include "flush.h"
#include "memory.h"

namespace ocl {

// ---- copies and reads
static OpInfo& info(const char* n, const char* ov) {
  static std::unordered_map<std::string, std::unique_ptr<OpInfo>> t;
  auto& p = t[std::string(n) + ov];
  if (!p) p = std::make_unique<OpInfo>(c10::Dispatcher::singleton().findSchemaOrThrow(n, ov));
  return *p;
}
// Nothing that was recorded knows the whole storage: the host's contents are written at once.
static bool direct(const at::Tensor& self, const at::Tensor& dst) {
  State* s = state_of(dst);
  std::lock_guard<std::recursive_mutex> g(rec().mu);
  return s->segment != rec().segment && (size_t)dst.numel() * dst.itemsize() == s->bytes &&
         dst.is_non_overlapping_and_dense() && self.sizes() == dst.sizes();
}
// Nothing else has to be computed for it than what makes it.
static void read_by_host(State* s) {
  settle(s);
  if (s->written == rec().segment) flush(true);
  else check_earlier();
  s->known = true;
}
static bool is_same(const at::Tensor& a, const at::Tensor& b) {
  return a.device() == b.device() && a.scalar_type() == b.scalar_type() && a.is_conj() == b.is_conj() &&
         a.is_neg() == b.is_neg() && a.is_set_to(b);
}
static at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool nb) {
  if (is_same(self, dst)) return dst;
  at::assert_no_internal_overlap(dst);
  if (self.is_conj() || self.is_neg() || dst.is_conj() || dst.is_neg()) {  // the lazy conjugate and sign bits: copy plainly, then apply the difference
    auto plain = [](const at::Tensor& t) {
      auto r = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(t.storage()), t.key_set() - c10::DispatchKeySet({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative}), t.dtype());
      r.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
      return r;
    };
    at::Tensor d = plain(dst);
    copy_from(plain(self), d, nb);
    if (self.is_conj() != dst.is_conj()) at::conj_physical_(d);
    if (self.is_neg() != dst.is_neg()) at::neg_(d);
    return dst;
  }
  auto& R = rec();
  if (dst.is_privateuseone()) {
    State* to = state_of(dst);
    settle(to);
    bool other = self.is_privateuseone() && state_of(self)->device != to->device;
    if (!other && (self.is_privateuseone() || !direct(self, dst))) {
      static OpInfo& I = info("aten::copy_", "");
      Stack st{dst, self, false};
      if (!self.is_privateuseone() && !self.dim()) st[1] = self.clone();
      record(I, &st);
      return dst;
    }
    std::lock_guard<std::recursive_mutex> g(R.mu);
    if (other) settle(state_of(self));
    if (other) flush(true);
    if ((size_t)dst.numel() * dst.itemsize() == to->bytes) to->lost = false;
    Below b;
    host_of(ref_of(dst)).copy_(host_of(ref_of(self)));
    state_wrote(to);
    return dst;
  }
  std::lock_guard<std::recursive_mutex> g(R.mu);
  read_by_host(state_of(self));
  Below b;
  dst.copy_(host_of(ref_of(self)));
  return dst;
}
at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) { dst.resize_(self.sizes()); return copy_from(self, dst, false); }
static at::Scalar local_scalar(const at::Tensor& t) {
  std::lock_guard<std::recursive_mutex> g(rec().mu);
  read_by_host(state_of(t));
  Below b;
  return at::_local_scalar_dense(host_of(ref_of(t)));
}

// ---- torch sends LSTM and GRU of this device to "fused cells"; here they are compositions, in facula one op each
using OT = std::optional<at::Tensor>;
static at::Tensor plus(const at::Tensor& a, const OT& b) { return b && b->defined() ? a + *b : a; }
static std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& ig, const at::Tensor& hg, const at::Tensor& cx, const OT& ib, const OT& hb) {
  auto g = plus(plus(ig + hg, ib), hb).chunk(4, 1);
  auto i = g[0].sigmoid(), f = g[1].sigmoid(), z = g[2].tanh(), o = g[3].sigmoid();
  auto cy = f * cx + i * z;
  return {o * cy.tanh(), cy, at::cat({i, f, z, o}, 1)};
}
static std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(const OT& gh, const OT& gc, const at::Tensor& cx, const at::Tensor& cy, const at::Tensor& ws, bool bias) {
  auto g = ws.chunk(4, 1); auto &i = g[0], &f = g[1], &z = g[2], &o = g[3];
  auto t = cy.tanh();
  auto dh = gh && gh->defined() ? *gh : at::zeros_like(cx);
  auto dc = plus(dh * o * (1 - t * t), gc);
  auto d = at::cat({dc * z * i * (1 - i), dc * cx * f * (1 - f), dc * i * (1 - z * z), dh * t * o * (1 - o)}, 1);
  return {d, dc * f, bias ? d.sum(0) : at::Tensor()};
}
static std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& ig, const at::Tensor& hg, const at::Tensor& hx, const OT& ib, const OT& hb) {
  auto a = plus(ig, ib).chunk(3, 1), b = plus(hg, hb).chunk(3, 1);
  auto r = (a[0] + b[0]).sigmoid(), z = (a[1] + b[1]).sigmoid(), n = (a[2] + r * b[2]).tanh();
  return {n + z * (hx - n), at::cat({r, z, n, hx, b[2]}, 1)};
}
static std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(const at::Tensor& gh, const at::Tensor& ws, bool bias) {
  auto g = ws.chunk(5, 1); auto &r = g[0], &z = g[1], &n = g[2], &hx = g[3], &q = g[4];
  auto dn = gh * (1 - z) * (1 - n * n), dz = gh * (hx - n) * z * (1 - z), dr = dn * q * r * (1 - r);
  auto di = at::cat({dr, dz, dn}, 1), dh = at::cat({dr, dz, dn * r}, 1);
  return {di, dh, gh * z, bias ? di.sum(0) : at::Tensor(), bias ? dh.sum(0) : at::Tensor()};
}

// ---- registration
struct Kernel final : c10::OperatorKernel {
  OpInfo info;
  explicit Kernel(const c10::OperatorHandle& o) : info(o) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* s) { record(info, s); }
};
static void fallback(const c10::OperatorHandle& op, Stack* stack) {
  static std::unordered_map<const void*, std::unique_ptr<OpInfo>> t; static std::mutex mu;
  OpInfo* I;
  { std::lock_guard<std::mutex> g(mu); auto& p = t[&op.schema()]; if (!p) p = std::make_unique<OpInfo>(op); I = p.get(); }
  for (auto& a : op.schema().arguments()) TORCH_CHECK_NOT_IMPLEMENTED(!a.alias_info() || a.alias_info()->isWrite(), "ocl: view operator without a kernel: ", I->name);
  record(*I, stack);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  m.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  m.impl("_thnn_fused_gru_cell", TORCH_FN(gru_cell));
  m.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar));
}
// mode "direct": every functional/in-place/out op that has no decomposition gets its own boxed kernel, so structured ops skip meta + .out
static int64_t register_all(bool foreach) {
  static auto* lib = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  auto& D = c10::Dispatcher::singleton();
  int64_t n = 0;
  for (auto& name : D.getAllOpNames()) {
    if (name.name.rfind("aten::", 0)) continue;
    auto op = D.findSchema(name);
    if (!op) continue;
    using K = c10::DispatchKey;
    // decomposed by torch although its backward is not, or better kept whole
    bool keep = name.name == "aten::native_layer_norm" || name.name == "aten::native_group_norm" ||
      name.name == "aten::conj_physical" || name.name == "aten::conj_physical_" ||
      name.name == "aten::ldexp" || name.name == "aten::ldexp_";  // their default kernel calls a DispatchStub that has no entry for this device
    bool fe = keep || foreach && name.name.rfind("aten::_foreach_", 0) == 0;
    if (op->hasKernelForDispatchKey(K::CompositeImplicitAutograd) || op->hasKernelForDispatchKey(K::PrivateUse1)) continue;
    if (op->hasKernelForDispatchKey(K::CompositeExplicitAutograd) && !fe && name.name != "aten::convolution_overrideable" && name.name != "aten::convolution_backward_overrideable") continue;
    auto& sc = op->schema();
    bool tensor = false, isview = false;
    for (auto& a : sc.arguments()) {
      auto s = a.type()->str(); tensor |= s.find("Tensor") != std::string::npos;
      isview |= a.alias_info() && !a.alias_info()->isWrite();
      if (s.find("Storage") != std::string::npos || s.find("Stream") != std::string::npos) isview = true;
    }
    for (auto t : op->getTags()) isview |= t == at::Tag::inplace_view;  // as_strided_ changes the tensor, not the data
    if (!tensor || isview || name.name == "aten::new_empty_strided") continue;
    lib->impl((name.name + (name.overload_name.empty() ? "" : "." + name.overload_name)).c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(*op)));
    n++;
  }
  return n;
}
// without these the conjugate fallback clones the source, whose copy comes back here, for ever
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough()); }
// ---- what Python calls as torch.ops.ocl.*: no header of Python's, one binary for every Python
void count_fallback(const std::string& op, const char* why) {
  auto& R = rec();
  std::lock_guard<std::recursive_mutex> g(R.mu);
  if (why) R.fallbacks[op + "\t" + why]++;
  else R.native[op]++;
}
static std::vector<std::string> counts(bool reset) {
  auto& R = rec();
  std::lock_guard<std::recursive_mutex> g(R.mu);
  std::vector<std::string> o;
  for (auto& [k, n] : R.fallbacks) o.push_back(k + "\t" + std::to_string(n));
  for (auto& [k, n] : R.native) o.push_back(k + "\t\t" + std::to_string(n));
  if (reset) { R.fallbacks.clear(); R.native.clear(); }
  return o;
}
static std::vector<int64_t> stats() {
  auto& R = rec();
  std::lock_guard<std::recursive_mutex> g(R.mu);
  return {(int64_t)R.recorded, (int64_t)R.flushes, (int64_t)R.builds, (int64_t)R.replays, (int64_t)R.infers,
          (int64_t)R.hits, (int64_t)R.calls.size(), (int64_t)entry_count(), (int64_t)(R.build_seconds * 1e6), (int64_t)R.kept};
}
static std::vector<int64_t> memory() {
  auto m = memory_stat();
  return {(int64_t)m.now, (int64_t)m.peak, (int64_t)m.kept, (int64_t)m.states};
}
TORCH_LIBRARY(ocl, m) {
  m.def("flush", [] { flush(true); });
  m.def("register_all", &register_all);
  m.def("set_api", [](int64_t at) { set_api((const void*)at); });
  m.def("set_builder", [](int64_t at) { set_builder((Builder)at); });
  m.def("answer", [](std::vector<int64_t> code) { set_answer(std::move(code)); });
  m.def("retired", &retired);
  m.def("failure", [](std::string why) { set_failure(std::move(why)); });
  m.def("set_devices", [](std::vector<int64_t> at) { set_devices(at); });
  m.def("set_device", [](int64_t n) { set_current_device((int)n); });
  m.def("current_device", []() -> int64_t { return current_device(); });
  m.def("forget_plans", &forget_plans);
  m.def("set_precision", &set_precision);
  m.def("precision", []() -> std::string { return precision_name(precision_now()); });
  m.def("set_each", [](bool on) { rec().each = on; });
  m.def("set_ahead", [](int64_t calls) { rec().ahead = (size_t)calls; });
  m.def("stats", &stats);
  m.def("memory", &memory);
  m.def("memory_trim", &memory_trim);
  m.def("memory_reset_peak", &memory_reset_peak);
  m.def("counts", &counts);
  m.def("default_generator", [](int64_t i) -> at::Generator { return default_generator((c10::DeviceIndex)i); });
}
}  // namespace ocl
