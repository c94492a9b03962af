// Attention as one recorded call, and its gradient as another.  torch asks which form of scaled_dot_product_attention a device
// has; where ours fits, its "overrideable" one is recorded as the cpu's flash attention, which has a row in the table.  Dropout,
// f64, masks that learn and other dims than four stay torch's decomposition.  The fast paths of nn.MultiheadAttention and
// nn.TransformerEncoderLayer are compositions of it.
#include <ATen/Functions.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <torch/library.h>
#include "lazy.h"

namespace ocl {
using OT = std::optional<at::Tensor>;
static bool is_there(const OT& t) { return t && t->defined(); }

// ---- which form
static bool mask_fits(const at::Tensor& q, const at::Tensor& k, const OT& mask) {
  if (!is_there(mask)) return true;
  if (mask->requires_grad() && at::GradMode::is_enabled()) return false;
  if (mask->scalar_type() != at::kBool && mask->scalar_type() != q.scalar_type()) return false;
  const int64_t scores[4] = {q.size(0), q.size(1), q.size(2), k.size(2)};
  if (mask->dim() < 1 || mask->dim() > 4) return false;
  for (int64_t i = 1; i <= mask->dim(); i++) {
    const int64_t n = mask->size(mask->dim() - i);
    if (n != 1 && n != scores[4 - i]) return false;
  }
  return true;
}
static bool heads_fit(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool shared) {
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4 || !q.numel() || !k.numel()) return false;
  if (q.size(0) != k.size(0) || k.size(0) != v.size(0) || k.size(1) != v.size(1) || k.size(2) != v.size(2)) return false;
  if (q.size(3) != k.size(3) || q.size(3) != v.size(3)) return false;
  return shared ? q.size(1) % k.size(1) == 0 : q.size(1) == k.size(1);
}
static int64_t choice(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OT& mask, double dropout, bool,
                      std::optional<double>, bool shared) {
  const auto t = q.scalar_type();
  const bool plain = t == at::kFloat || t == at::kHalf || t == at::kBFloat16;
  const bool fits = plain && k.scalar_type() == t && v.scalar_type() == t && dropout == 0 && heads_fit(q, k, v, shared) &&
                    mask_fits(q, k, mask) && at::globalContext().userEnabledOverrideableSDP();
  return (int64_t)(fits ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math);
}

// ---- the two calls, their arguments by name: other versions of torch have more of them
struct Arguments {
  const c10::FunctionSchema& schema;
  const Stack* stack;
  const c10::IValue& at(const char* name) const {
    auto i = schema.argumentIndexWithName(name);
    TORCH_CHECK(i, "ocl: ", schema.name(), " has no argument ", name);
    return (*stack)[stack->size() - schema.arguments().size() + *i];
  }
  at::Tensor tensor(const char* name) const { return at(name).isTensor() ? at(name).toTensor() : at::Tensor(); }
  OT optional(const char* name) const {
    auto t = tensor(name);
    return t.defined() ? OT(t) : OT();
  }
  std::optional<double> scale() const { return at("scale").isDouble() ? std::optional<double>(at("scale").toDouble()) : std::nullopt; }
};
// Keys or values in room: see grown.cpp.
static std::shared_ptr<Grown> in_room(const at::Tensor& t) {
  auto g = state_of(t)->grown;
  const bool all = g && t.is_contiguous() && !t.storage_offset() && g->outer == t.size(0) * t.size(1) && g->len == t.size(2);
  return all && g->inner == t.size(3) && t.scalar_type() == g->room.scalar_type() ? g : nullptr;
}
static at::Tensor dark_from(int64_t len, int64_t rows, const at::Tensor& q) {
  auto here = at::zeros({1, 1, 1, rows}, at::TensorOptions().dtype(at::kFloat));
  here.narrow(3, len, rows - len).fill_(-INFINITY);
  auto mask = at::empty({1, 1, 1, rows}, q.options());
  return mask.copy_(here.to(q.scalar_type()));
}
// Keys and values with their room.
static bool into_room(at::Tensor& k, at::Tensor& v, int64_t& len, int64_t& rows) {
  auto gk = in_room(k), gv = in_room(v);
  if (!gk || !gv || gk->room.size(1) != gv->room.size(1)) return false;
  len = gk->len;
  rows = gk->room.size(1);
  k = gk->room.view({k.size(0), k.size(1), rows, k.size(3)});
  v = gv->room.view({v.size(0), v.size(1), rows, v.size(3)});
  return true;
}
static void forward(const c10::OperatorHandle& op, Stack* stack) {
  Arguments a{op.schema(), stack};
  auto q = a.tensor("query"), k = a.tensor("key"), v = a.tensor("value");
  TORCH_CHECK(a.at("dropout_p").toDouble() == 0, "ocl: attention as one call has no dropout");
  auto mask = a.optional("attn_bias");
  const int64_t keys = k.size(2);
  int64_t len, rows;
  if (!mask && !a.at("is_causal").toBool() && into_room(k, v, len, rows)) mask = dark_from(len, rows, q);
  auto [y, lse] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, a.at("is_causal").toBool(), mask, a.scale());
  stack->erase(stack->end() - op.schema().arguments().size(), stack->end());
  stack->emplace_back(y);
  stack->emplace_back(lse);
  for (size_t i = 2; i < op.schema().returns().size(); i++) {
    const bool tensor = op.schema().returns()[i].type()->kind() == c10::TypeKind::TensorType;
    const bool queries = op.schema().returns()[i].name() == "max_q";
    if (tensor) stack->emplace_back(at::Tensor());
    else stack->emplace_back(queries ? q.size(2) : keys);
  }
}
static void backward(const c10::OperatorHandle& op, Stack* stack) {
  Arguments a{op.schema(), stack};
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      a.tensor("grad_out"), a.tensor("query"), a.tensor("key"), a.tensor("value"), a.tensor("out"), a.tensor("logsumexp"), 0.0,
      a.at("is_causal").toBool(), a.optional("attn_bias"), a.scale());
  stack->erase(stack->end() - op.schema().arguments().size(), stack->end());
  for (auto& d : {dq, dk, dv, at::Tensor()}) stack->emplace_back(d);
}

// ---- the gradient where somebody wants its gradient: the same by calls that torch can differentiate
static at::Tensor scores_of(const at::Tensor& q, const at::Tensor& k, const OT& mask, bool causal, double scale) {
  auto scores = at::matmul(q, k.transpose(-2, -1)) * scale;
  if (causal) {
    auto seen = at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(seen.logical_not(), -INFINITY);
  }
  if (!is_there(mask)) return scores;
  if (mask->scalar_type() == at::kBool) return scores.masked_fill(mask->logical_not(), -INFINITY);
  return scores + *mask;
}
static std::array<at::Tensor, 3> differentiable(const at::Tensor& dy, at::Tensor q, at::Tensor k, at::Tensor v, const OT& mask,
                                                bool causal, double scale) {
  const int64_t heads = k.size(1), shared = q.size(1) / heads;
  auto spread = [&](const at::Tensor& x) { return shared == 1 ? x : x.repeat_interleave(shared, 1); };
  auto gathered = [&](const at::Tensor& x) { return shared == 1 ? x : x.unflatten(1, {heads, shared}).sum(2); };
  k = spread(k);
  v = spread(v);
  auto p = at::_safe_softmax(scores_of(q, k, mask, causal, scale), -1);
  auto dp = at::matmul(dy, v.transpose(-2, -1));
  auto ds = p * (dp - (p * dp).sum(-1, true)) * scale;
  return {at::matmul(ds, k), gathered(at::matmul(ds.transpose(-2, -1), q)), gathered(at::matmul(p.transpose(-2, -1), dy))};
}
static void backward_twice(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  Arguments a{op.schema(), stack};
  auto dy = a.tensor("grad_out"), q = a.tensor("query"), k = a.tensor("key"), v = a.tensor("value");
  const bool again = at::GradMode::is_enabled() &&
                     (dy.requires_grad() || q.requires_grad() || k.requires_grad() || v.requires_grad());
  if (!again) {
    at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
    return;
  }
  const double scale = a.scale().value_or(1 / std::sqrt((double)q.size(3)));
  auto mask = a.optional("attn_bias");
  if (mask && mask->is_floating_point()) mask = mask->to(at::kFloat);
  const auto t = q.scalar_type();
  auto wide = [](const at::Tensor& x) { return x.to(at::kFloat); };
  auto d = differentiable(wide(dy), wide(q), wide(k), wide(v), mask, a.at("is_causal").toBool(), scale);
  stack->erase(stack->end() - op.schema().arguments().size(), stack->end());
  for (auto& x : d) stack->emplace_back(x.to(t));
  stack->emplace_back(at::Tensor());
}

// ---- the fast paths of nn.MultiheadAttention and nn.TransformerEncoderLayer, which are for inference
// mask_type 0: queries by keys, 1: batch by keys, 2: batch by heads by queries by keys; true is masked out
static OT mask_of(const OT& mask, std::optional<int64_t> type, int64_t batch, int64_t heads, int64_t n) {
  if (!is_there(mask)) return {};
  at::Tensor m = *mask;
  if (type.value_or(2) == 1) m = m.view({batch, 1, 1, n});
  else if (m.dim() == 3) m = m.view({batch, heads, n, n});
  return m.scalar_type() == at::kBool ? m.logical_not() : m;
}
static std::tuple<at::Tensor, at::Tensor> multi_head(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, int64_t dim,
                                                     int64_t heads, const at::Tensor& w, const at::Tensor& b, const at::Tensor& wo,
                                                     const at::Tensor& bo, const OT& mask, bool weights, bool average,
                                                     std::optional<int64_t> type) {
  const int64_t batch = query.size(0), n = query.size(1), each = dim / heads;
  auto ws = w.chunk(3, 0), bs = b.chunk(3, 0);
  auto part = [&](const at::Tensor& x, int i) { return at::linear(x, ws[i], bs[i]).view({x.size(0), x.size(1), heads, each}).transpose(1, 2); };
  auto q = part(query, 0), k = part(key, 1), v = part(value, 2);
  auto m = mask_of(mask, type, batch, heads, n);
  at::Tensor y, shown;
  if (!weights) y = at::scaled_dot_product_attention(q, k, v, m);
  else {
    auto scores = at::matmul(q / std::sqrt((double)each), k.transpose(-2, -1));
    if (m) scores = m->scalar_type() == at::kBool ? scores.masked_fill(m->logical_not(), -INFINITY) : scores + *m;
    shown = scores.softmax(-1);
    y = at::matmul(shown, v);
    if (average) shown = shown.mean(1);
  }
  return {at::linear(y.transpose(1, 2).reshape({batch, n, dim}), wo, bo), shown};
}
static at::Tensor encoder_layer(const at::Tensor& src, int64_t dim, int64_t heads, const at::Tensor& w, const at::Tensor& b,
                                const at::Tensor& wo, const at::Tensor& bo, bool gelu, bool norm_first, double eps, const at::Tensor& g1,
                                const at::Tensor& b1, const at::Tensor& g2, const at::Tensor& b2, const at::Tensor& f1,
                                const at::Tensor& c1, const at::Tensor& f2, const at::Tensor& c2, const OT& mask,
                                std::optional<int64_t> type) {
  auto norm = [&](const at::Tensor& x, const at::Tensor& g, const at::Tensor& c) { return at::layer_norm(x, {dim}, g, c, eps); };
  auto attend = [&](const at::Tensor& x) { return std::get<0>(multi_head(x, x, x, dim, heads, w, b, wo, bo, mask, false, true, type)); };
  auto feed = [&](const at::Tensor& x) {
    auto h = at::linear(x, f1, c1);
    return at::linear(gelu ? at::gelu(h) : at::relu(h), f2, c2);
  };
  if (norm_first) {
    auto x = src + attend(norm(src, g1, b1));
    return x + feed(norm(x, g2, b2));
  }
  auto x = norm(src + attend(src), g1, b1);
  return norm(x + feed(x), g2, b2);
}

// ---- masks over what grows: booleans that a model makes of few integers, which the host has.  torch makes numbers of them, of
// another size in each step, and the program would be another one; so they are spread over the room before that.  A mask that
// the device computes goes with the cat itself.
static OT dark_too(const at::Tensor& mask, int64_t len, int64_t rows) {
  at::Tensor here;
  {
    std::lock_guard<std::recursive_mutex> g(rec().mu);
    if (!is_known(state_of(mask))) return {};
    Below b;
    Dims sizes(mask.sizes().begin(), mask.sizes().end());
    sizes.back() = rows;
    here = at::zeros(sizes, at::TensorOptions().dtype(at::kBool));
    here.narrow(-1, 0, len).copy_(host_of(ref_of(mask)));
  }
  return at::empty(here.sizes(), mask.options()).copy_(here);
}
static at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OT& mask, double dropout, bool causal,
                            std::optional<double> scale, bool shared) {
  const bool learns = at::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad());
  const bool ours = !learns && !causal && is_there(mask) && mask->scalar_type() == at::kBool && mask->is_privateuseone() &&
                    k.is_privateuseone() && v.is_privateuseone() &&
                    choice(q, k, v, mask, dropout, causal, scale, shared) == (int64_t)sdp::SDPBackend::overrideable;
  auto kr = k, vr = v;
  int64_t len, rows;
  if (ours && into_room(kr, vr, len, rows))
    if (auto dark = dark_too(*mask, len, rows))
      return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(q, kr, vr, 0.0, false, dark, scale));
  return at::native::scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale, shared);
}

// nn.TransformerEncoder would make nested tensors, which are not here, of a batch whose padding is at the end.
static bool is_left_aligned(const at::Tensor&, const at::Tensor&) { return false; }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("scaled_dot_product_attention", TORCH_FN(attention));
  m.impl("_nested_tensor_from_mask_left_aligned", TORCH_FN(is_left_aligned));
  m.impl("_scaled_dot_product_fused_attention_overrideable", torch::CppFunction::makeFromBoxedFunction<&forward>());
  m.impl("_scaled_dot_product_fused_attention_overrideable_backward", torch::CppFunction::makeFromBoxedFunction<&backward>());
  m.impl("_native_multi_head_attention", TORCH_FN(multi_head));
  m.impl("_transformer_encoder_layer_fwd", TORCH_FN(encoder_layer));
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("scaled_dot_product_attention", TORCH_FN(attention));
  m.impl("_scaled_dot_product_fused_attention_overrideable_backward", torch::CppFunction::makeFromBoxedFunction<&backward_twice>());
}
}  // namespace ocl

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &ocl::choice);
}
