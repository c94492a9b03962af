// Shapes of results: the call on meta tensors, and where torch's meta kernels are not enough.
#include "lazy.h"
#include <ATen/Functions.h>

namespace ocl {
c10::OperatorHandle real_op(const Call& c, Stack& st) {
  auto& D = c10::Dispatcher::singleton();
  if (c.op->name == "aten::convolution_overrideable") return *D.findSchema({"aten::convolution", ""});
  if (c.op->name == "aten::convolution_backward_overrideable") {
    auto& w = c.in[2];
    bool tr = st[6].toBool();
    c10::List<int64_t> bias;
    bias.push_back(tr ? w.sizes[1] * st[8].toInt() : w.sizes[0]);
    st.insert(st.begin() + 3, c10::IValue(bias));
    return *D.findSchema({"aten::convolution_backward", ""});
  }
  return c.op->op;
}

void plain_strides(const Dims& sizes, Dims& strides) {
  strides.resize(sizes.size());
  int64_t n = 1;
  for (int i = (int)sizes.size() - 1; i >= 0; i--) {
    strides[i] = n;
    n *= std::max<int64_t>(sizes[i], 1);
  }
}
static bool channels_last(const Ref& r) {
  return r.sizes.size() == 4 && c10::is_channels_last_strides_2d(r.sizes, r.strides) &&
         c10::get_channels_last_strides_2d(r.sizes) ==
             std::vector<int64_t>(r.strides.begin(), r.strides.end());
}
// torch's meta kernel forgets channels_last
static Metas conv_shape(const Call& c) {
  auto &x = c.in[0], &w = c.in[1];
  auto st = c.other[3].toIntVector(), pad = c.other[4].toIntVector();
  auto dil = c.other[5].toIntVector(), op = c.other[7].toIntVector();
  bool tr = c.other[6].toBool();
  int64_t groups = c.other[8].toInt(), nd = (int64_t)x.sizes.size() - 2;
  Meta m{x.dtype, {}, {}, true};
  m.sizes = {x.sizes[0], tr ? w.sizes[1] * groups : w.sizes[0]};
  for (int64_t i = 0; i < nd; i++) {
    int64_t s = st[i % st.size()], p = pad[i % pad.size()], d = dil[i % dil.size()];
    int64_t n = x.sizes[i + 2], k = d * (w.sizes[i + 2] - 1) + 1;
    int64_t out = tr ? (n - 1) * s - 2 * p + k + op[i % op.size()] : (n + 2 * p - k) / s + 1;
    TORCH_CHECK(tr || n + 2 * p >= k, "Calculated padded input size per channel: ", n + 2 * p,
                ". Kernel size: ", k, ". Kernel size can't be greater than actual input size");
    m.sizes.push_back(out);
  }
  TORCH_CHECK(tr || x.sizes[1] == w.sizes[1] * groups, "Given groups=", groups, ", weight of size ",
              c10::IntArrayRef(w.sizes), ", expected input", c10::IntArrayRef(x.sizes), " to have ",
              w.sizes[1] * groups, " channels, but got ", x.sizes[1], " channels instead");
  if (nd == 2 && (channels_last(x) || channels_last(w)) && !(x.sizes[1] == 1 && w.sizes[1] == 1)) {
    auto v = c10::get_channels_last_strides_2d(m.sizes);
    m.strides.assign(v.begin(), v.end());
  } else plain_strides(m.sizes, m.strides);
  return {m};
}

// Meta kernels that are Python's refuse with an assert where the CPU's have an error of their own:
// throws that one, if there is one.  Contents do not matter, so there are none.
enum { REFUSED_BYTES = 1 << 30 };
void refuse_as_cpu(const Call& c) {
  int64_t bytes = 0;
  for (auto& r : c.in)
    if (r.s) bytes += r.s->bytes;
  if (bytes > REFUSED_BYTES) return;
  Stack st;
  Below b;
  rebuild(c, st, [](const Ref& r) {
    if (!r.s) return r.host;
    return at::empty_strided(r.sizes, r.strides, at::TensorOptions().dtype(r.dtype)).zero_();
  });
  auto op = real_op(c, st);
  for (auto& v : st)
    if (v.isDevice()) v = c10::Device(c10::kCPU);
  op.callBoxed(&st);
}

Metas infer(const Call& c) {
  if (c.op->name == "aten::convolution_overrideable" && c.in[0].sizes.size() == c.in[1].sizes.size())
    return conv_shape(c);
  if (c.op->name == "aten::bernoulli.out") {        // the meta kernel wants the result's type to hold probabilities
    Meta m{c.in[1].dtype, c.in[0].sizes, {}, true};
    plain_strides(m.sizes, m.strides);
    return {m};
  }
  Stack st;
  Below b;
  rebuild(c, st, [](const Ref& r) {
    if (!r.s && r.sizes.empty()) return r.host;     // a number keeps its rules of promotion
    return at::empty_strided(r.sizes, r.strides, at::TensorOptions().dtype(r.dtype).device(c10::kMeta));
  });
  auto op = real_op(c, st);
  for (size_t i = 0; c.op->has_out && i < st.size(); i++)   // it resizes its empty results itself
    if (c.op->writes[i] && st[i].isTensor())
      st[i] = at::empty({0}, st[i].toTensor().options());
  for (auto& v : st)
    if (v.isDevice()) v = c10::Device(c10::kMeta);
  op.callBoxed(&st);
  Metas m;
  auto add = [&](const at::Tensor& t) {
    if (!t.defined()) m.push_back({c10::ScalarType::Float, {}, {}, false});
    else m.push_back({t.scalar_type(), Dims(t.sizes().begin(), t.sizes().end()),
                      Dims(t.strides().begin(), t.strides().end()), true});
  };
  for (auto& v : st) {
    if (v.isTensor()) add(v.toTensor());
    else if (v.isNone()) add(at::Tensor());
    else if (v.isTensorList())
      for (const at::Tensor& t : v.toTensorList()) add(t);
  }
  return m;
}
}  // namespace ocl
