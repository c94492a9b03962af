// One call by torch's CPU kernels on the memory of its states: what no row computes.
#include "lazy.h"
#include <ATen/Functions.h>
#include <cstring>

namespace ocl {
at::Tensor host_of(const Ref& r) {
  if (!r.s) return r.host;
  int64_t last = r.offset, n = 1;
  for (size_t i = 0; i < r.sizes.size(); i++) {
    n *= r.sizes[i];
    last += (r.sizes[i] - 1) * r.strides[i];
  }
  size_t item = c10::elementSize(r.dtype);
  TORCH_CHECK(!n || (size_t)(last + 1) * item <= r.s->bytes, "ocl: a view reaches byte ",
              (last + 1) * item, " of a storage of ", r.s->bytes);
  return at::from_blob((char*)state_memory(r.s) + r.offset * item, r.sizes, r.strides,
                       at::TensorOptions().dtype(r.dtype));
}

// Random calls draw from a generator of the CPU that the recorded seed begins.
struct Seeded {
  std::optional<at::Tensor> saved;
  Seeded(Call& c, Stack& st) {
    if (!c.op->random) return;
    auto& usual = const_cast<at::Generator&>(at::globalContext().defaultGenerator(c10::kCPU));
    bool given = false;
    for (size_t i = 0; i < st.size(); i++)
      if (c.op->kind[i] == OpInfo::GENERATOR) {
        at::Generator g = usual.clone();
        g.set_current_seed(c.seed);
        st[i] = g;
        given = true;
      }
    if (given) return;
    saved = usual.get_state();
    usual.set_current_seed(c.seed);
  }
  ~Seeded() {
    auto& usual = const_cast<at::Generator&>(at::globalContext().defaultGenerator(c10::kCPU));
    if (saved) usual.set_state(*saved);
  }
};

void replay(Call& c, Stack& st) {
  Below b;
  rebuild(c, st, host_of);
  Seeded seeded(c, st);
  for (auto& v : st)
    if (v.isDevice()) v = c10::Device(c10::kCPU);
  auto op = real_op(c, st);
  op.callBoxed(&st);
  each_ref(c, [&](size_t i, size_t k) {
    if (c.op->writes[i] && c.in[k].s) state_wrote(c.in[k].s);
  });
}

at::Tensor up(const at::Tensor& t, int device) {
  if (!t.defined()) return t;
  auto r = make(t.scalar_type(), t.sizes(), t.strides(), device);
  Below b;
  host_of(ref_of(r)).copy_(t);
  state_wrote(state_of(r));
  return r;
}
void run_on_host(Call& c, Stack* out) {
  Stack st;
  replay(c, st);
  size_t k = 0;
  for (auto& v : st) {
    int8_t alias = k < c.op->alias.size() ? c.op->alias[k] : -1;
    k++;
    if (alias >= 0) {                           // an argument: the very tensor that was given
      size_t at = 0;
      const Ref* own = nullptr;
      each_ref(c, [&](size_t i, size_t q) { if ((int)i == alias && !own) own = &c.in[at = q]; });
      if (own && own->s) { own->s->refs++; out->emplace_back(make_with_state(own->s, *own)); continue; }
    }
    if (v.isTensor()) out->emplace_back(up(v.toTensor(), c.device));
    else if (v.isTensorList()) {
      c10::List<at::Tensor> l;
      for (const at::Tensor& t : v.toTensorVector()) l.push_back(up(t, c.device));
      out->emplace_back(std::move(l));
    } else out->push_back(std::move(v));
  }
}

void run_into(Call& c, const Stack& arguments, Stack* out) {
  Stack st;
  std::vector<at::Tensor> made;
  {
    Below b;
    rebuild(c, st, host_of);
    for (size_t i = 0; i < st.size(); i++)
      if (c.op->writes[i] && st[i].isTensor()) st[i] = at::empty({0}, st[i].toTensor().options());
    c.op->op.callBoxed(&st);
    for (auto& v : st)
      if (v.isTensor()) made.push_back(v.toTensor());
  }
  size_t k = 0;
  for (size_t i = 0; i < arguments.size(); i++) {
    if (!c.op->writes[i] || !arguments[i].isTensor() || k >= made.size()) continue;
    const at::Tensor& to = arguments[i].toTensor();
    ocl::resize(to, made[k].sizes(), std::optional<c10::MemoryFormat>());
    Below b;
    host_of(ref_of(to)).copy_(made[k++]);
    state_wrote(state_of(to));
    out->emplace_back(to);
  }
}

void store(Call& c, Stack& st) {
  if (!c.op->fresh) return;
  size_t k = 0;
  Below b;
  auto take = [&](const at::Tensor& t) {
    if (k >= c.out.size()) return;
    auto& o = c.out[k++];
    if (!o.s || !t.defined()) return;
    if (o.s->alive && c10::multiply_integers(o.sizes) != t.numel()) {   // torch's kernels of meta and of the cpu disagree
      o.s->lost = true;
      return;
    }
    at::Tensor to = host_of(o);
    if (to.numel() == t.numel()) to.copy_(t.reshape(to.sizes()));
    state_wrote(o.s);
  };
  for (auto& v : st) {
    if (v.isTensor()) take(v.toTensor());
    else if (v.isNone()) k++;
    else if (v.isTensorList())
      for (const at::Tensor& t : v.toTensorVector()) take(t);
  }
}
}  // namespace ocl
