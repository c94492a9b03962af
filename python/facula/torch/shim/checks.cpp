// What torch's CPU kernels refuse and its meta kernels, which know shapes only, let pass.
#include "lazy.h"
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <unordered_set>

namespace ocl {
static double number(const c10::IValue& v) {
  if (v.isDouble()) return v.toDouble();
  return v.isInt() ? (double)v.toInt() : NAN;
}

static void check_parameters(const OpInfo& I, const c10::IValue* a) {
  auto& name = I.op.schema().name();
  if (name == "aten::normal_") {
    TORCH_CHECK(!(number(a[2]) < 0), "normal expects std >= 0.0, but found std ", number(a[2]));
  } else if (name == "aten::uniform_") {
    TORCH_CHECK(!(number(a[1]) > number(a[2])), "uniform_ expects to return a [from, to) range, but found from=",
                number(a[1]), " > to=", number(a[2]));
  } else if (I.name == "aten::bernoulli_.float") {
    TORCH_CHECK(!(number(a[1]) < 0 || number(a[1]) > 1), "bernoulli_ expects p to be in [0, 1], but got p=", number(a[1]));
  } else if (name == "aten::exponential_") {
    TORCH_CHECK(!(number(a[1]) <= 0), "exponential_ expects lambda > 0.0, but found lambda=", number(a[1]));
  } else if (name == "aten::cauchy_") {
    TORCH_CHECK(!(number(a[2]) <= 0), "cauchy_ expects sigma > 0.0, but found sigma=", number(a[2]));
  } else if (name == "aten::log_normal_") {
    TORCH_CHECK(!(number(a[2]) <= 0), "log_normal_ expects std > 0.0, but found std=", number(a[2]));
  } else if (name == "aten::geometric_") {
    TORCH_CHECK(!(number(a[1]) <= 0 || number(a[1]) >= 1), "geometric_ expects p to be in (0, 1), but got p=", number(a[1]));
  } else if (I.name == "aten::random_.from") {
    TORCH_CHECK(!(number(a[1]) >= number(a[2])), "random_ expects 'from' to be less than 'to', but got from=", number(a[1]),
                " >= to=", number(a[2]));
  } else if (I.name == "aten::random_.to") {
    TORCH_CHECK(!(number(a[1]) <= 0), "random_ expects 'from' to be less than 'to', but got from=0 >= to=", number(a[1]));
  }
}

// Elementwise calls may read what they write, element by element.  These may not read any of it.
static const std::unordered_set<std::string> kApart = {
    "aten::gather", "aten::index_select", "aten::index", "aten::take", "aten::cat", "aten::kthvalue", "aten::masked_select",
    "aten::scatter", "aten::scatter_add", "aten::scatter_reduce", "aten::scatter_", "aten::scatter_add_", "aten::scatter_reduce_",
    "aten::index_add", "aten::index_add_", "aten::index_copy", "aten::index_copy_", "aten::masked_scatter_", "aten::aminmax"};
// The same number everywhere, or the last of several: what is one place may be written more than once.
static const std::unordered_set<std::string> kRepeats = {"aten::fill_", "aten::zero_", "aten::masked_fill_", "aten::index_put_",
                                                          "aten::_index_put_impl_", "aten::threshold",
                                                          "aten::threshold_"};

bool reads_apart(const std::string& name) { return kApart.count(name); }
bool may_repeat(const std::string& name) { return kRepeats.count(name); }

static void check_overlap(const OpInfo& I, const c10::IValue* a) {
  const bool apart = I.apart;
  if ((!apart && !I.pointwise && !I.random) || I.repeats) return;
  for (size_t w = 0; w < I.kind.size(); w++) {
    if (!I.writes[w] || !a[w].isTensor() || !a[w].toTensor().defined()) continue;
    const at::Tensor& to = a[w].toTensor();
    at::assert_no_internal_overlap(to);
    auto read = [&](const at::Tensor& from) {
      if (!from.defined() || !from.is_privateuseone() || !from.numel() || !to.numel()) return;
      if (apart) at::assert_no_overlap(to, from);
      else at::assert_no_partial_overlap(to, from);
    };
    for (size_t r = 0; r < I.kind.size(); r++) {
      if (r == w || (I.writes[r] && !apart)) continue;
      if (a[r].isTensor()) read(a[r].toTensor());
      else if (a[r].isTensorList())
        for (const c10::IValue& e : a[r].toListRef()) read(e.toTensor());
    }
  }
}

// What is written in place keeps its shape.
static void check_shape(const OpInfo& I, const c10::IValue* a) {
  if (I.has_out || !I.writes[0] || !a[0].isTensor()) return;
  auto to = a[0].toTensor().sizes();
  if (I.name == "aten::masked_scatter_") {
    auto mask = a[1].toTensor().sizes();
    TORCH_CHECK(at::is_expandable_to(mask, to), "masked_scatter_: expected a mask that expands to ", to, ", but got ", mask);
  }
  if (!I.pointwise) return;
  std::vector<int64_t> all(to.begin(), to.end());
  for (size_t i = 1; i < I.kind.size(); i++)
    if (a[i].isTensor() && a[i].toTensor().defined()) all = at::infer_size(all, a[i].toTensor().sizes());
  TORCH_CHECK(to == c10::IntArrayRef(all), "output with shape ", to, " doesn't match the broadcast shape ", c10::IntArrayRef(all));
}

void check(const OpInfo& I, const c10::IValue* arguments) {
  if (I.random) check_parameters(I, arguments);
  if (!I.has_writes) return;
  check_shape(I, arguments);
  check_overlap(I, arguments);
}

// Numbers of the host, copies from it, and indices may be there; other tensors are a mistake of the caller.
void check_places(const Call& c) {
  if (c.op->masks || c.op->dynamic || c.op->name == "aten::copy_") return;
  const Ref* host = nullptr;
  bool here = false;
  for (auto& r : c.in) {
    here |= r.s != nullptr;
    if (!r.s && r.host.defined() && r.host.dim() && r.host.device().is_cpu()) host = &r;
  }
  TORCH_CHECK(!here || !host, "Expected all tensors to be on the same device, but found at least two devices, ocl:", c.device,
              " and cpu! (", c.op->name, ")");
}

// ---- types that do not go together
static bool is_about_types(const std::string& why) {
  if (why.find("not implemented for") != std::string::npos) return false;
  return why.find("type") != std::string::npos || why.find("boolean") != std::string::npos;
}

// Tensors of several types: whether torch takes them is asked of its CPU kernel, once for each call and types.  What one type says,
// or contents, is left to others: a kernel may be missing on the CPU, and the contents here are zeros.
void check_types(const Call& c) {
  enum { MOST = 4 << 20 };
  if (c.op->has_out || c.op->dynamic || c.op->random || c.op->masks || c.op->name == "aten::copy_") return;
  if (c.op->name.find("backward") != std::string::npos) return;     // the call before it was asked
  for (auto k : c.op->kind)
    if (k == OpInfo::LIST) return;
  static std::unordered_set<uint64_t> fit;
  uint64_t key = c.op->id, bytes = 0;
  for (auto& r : c.in) {
    key = mix(key, r.s ? 2 + 2 * (uint64_t)r.dtype + r.sizes.empty() : 1);
    bytes += r.s ? c10::multiply_integers(r.sizes) * c10::elementSize(r.dtype) : 0;
  }
  if (bytes > MOST) return;
  {
    std::lock_guard<std::recursive_mutex> g(rec().mu);
    if (fit.count(key)) return;
  }
  try { refuse_as_cpu(c); }
  catch (const c10::NotImplementedError&) {}
  catch (const c10::Error& error) {
    if (is_about_types(error.what_without_backtrace())) throw;
  }
  std::lock_guard<std::recursive_mutex> g(rec().mu);
  fit.insert(key);
}
}  // namespace ocl
