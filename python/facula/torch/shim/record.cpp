// Recording: what a schema says of an operator, shapes by meta tensors (kept), one boxed kernel for
// all operators.
#include "lazy.h"
#include <ATen/Functions.h>
#include <cstring>

namespace ocl {
Recorder& rec() {
  static auto* r = new Recorder;
  return *r;
}

// ---- the table of operators, each read once from its schema
static uint8_t kind_of(const c10::Argument& a) {
  auto t = a.real_type();
  auto opt = t->kind() == c10::TypeKind::OptionalType;
  auto inner = opt ? t->castRaw<c10::OptionalType>()->getElementType() : t;
  switch (inner->kind()) {
    case c10::TypeKind::TensorType: return OpInfo::TENSOR;
    case c10::TypeKind::NumberType: return OpInfo::SCALAR;
    case c10::TypeKind::GeneratorType: return OpInfo::GENERATOR;
    case c10::TypeKind::ScalarTypeType: return OpInfo::DTYPE;
    case c10::TypeKind::ListType: {
      auto e = inner->castRaw<c10::ListType>()->getElementType();
      if (e->kind() == c10::TypeKind::TensorType) return OpInfo::LIST;
      if (e->kind() == c10::TypeKind::OptionalType)
        return e->castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::TensorType
                   ? OpInfo::OPTLIST : OpInfo::OTHER;
      return e->kind() == c10::TypeKind::NumberType ? OpInfo::SCALAR : OpInfo::OTHER;
    }
    default: return OpInfo::OTHER;
  }
}

OpInfo::OpInfo(const c10::OperatorHandle& o) : op(o) {
  auto& sc = o.schema();
  lift = sc.name().rfind("aten::_fused_", 0) == 0;
  name = sc.name() + (sc.overload_name().empty() ? "" : "." + sc.overload_name());
  id = std::hash<std::string>()(name);
  product = is_product(sc.name());
  for (auto& a : sc.arguments()) {
    kind.push_back(kind_of(a));
    random |= kind.back() == GENERATOR;
    writes.push_back(a.alias_info() && a.alias_info()->isWrite());
    has_out |= a.is_out();
  }
  if (name == "aten::native_batch_norm") {          // its schema does not say so
    writes[3] = true;
    writes[4] = true;
  }
  for (auto& r : sc.returns()) {
    int8_t al = -1;
    auto k = r.type()->kind();
    for (size_t i = 0; r.alias_info() && i < sc.arguments().size(); i++) {
      auto* ai = sc.arguments()[i].alias_info();
      if (ai && ai->beforeSet() == r.alias_info()->beforeSet()) al = (int8_t)i;
    }
    alias.push_back(al);
    retlist.push_back(k == c10::TypeKind::ListType);
    if (al >= 0) continue;
    fresh = true;
    if (k == c10::TypeKind::ListType)
      dynamic |= r.type()->castRaw<c10::ListType>()->getElementType()->kind() != c10::TypeKind::TensorType;
    else dynamic |= k != c10::TypeKind::TensorType;
  }
  for (auto t : o.getTags()) {
    pointwise |= t == at::Tag::pointwise;
    dynamic |= t == at::Tag::dynamic_output_shape || t == at::Tag::data_dependent_output;
    random |= t == at::Tag::nondeterministic_seeded;
  }
  for (auto* n : {"aten::fill_", "aten::zero_", "aten::copy_", "aten::add_", "aten::mul_"})
    pointwise |= sc.name() == n;
}

bool is_lifted(const OpInfo& I, size_t i, const c10::IValue& v) {
  return I.kind[i] == OpInfo::SCALAR || ((I.pointwise || I.lift) && v.isDouble());
}

// ---- shapes: the call on meta tensors, once for each (operator, types, attributes)
struct Meta { c10::ScalarType dtype; Dims sizes, strides; bool defined; };
using Metas = c10::SmallVector<Meta, 2>;
static std::unordered_map<uint64_t, Metas> shapes;

uint64_t hash_attr(const c10::IValue& v, bool lifted) {
  if (v.isNone()) return 1;
  if (v.isInt()) return lifted ? 2 : mix(2, v.toInt());
  if (v.isBool()) return mix(3, v.toBool());
  if (v.isDouble()) {
    uint64_t u;
    double d = v.toDouble();
    memcpy(&u, &d, 8);
    return lifted ? 4 : mix(4, u);
  }
  if (v.isIntList()) {
    uint64_t h = 5;
    for (int64_t i : v.toIntList()) h = mix(h, i);
    return h;
  }
  if (v.isDevice()) return mix(6, v.toDevice().index());
  if (v.isBoolList()) {
    uint64_t h = 7;
    for (bool b : v.toBoolList()) h = mix(h, b);
    return h;
  }
  if (v.isString()) return std::hash<std::string>()(v.toStringRef());
  if (v.isList()) {
    uint64_t h = 8;
    for (const c10::IValue& e : v.toListRef()) h = mix(h, hash_attr(e, lifted));
    return h;
  }
  return 9;
}
uint64_t hash_type(uint64_t h, const Ref& r) {
  h = mix(h, (uint64_t)r.dtype | r.sizes.size() << 8 | (r.s ? 1 << 16 : 0));
  for (size_t i = 0; i < r.sizes.size(); i++) h = mix(mix(h, r.sizes[i]), r.strides[i]);
  return h;
}

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

static void plain_strides(const Dims& sizes, Dims& strides) {
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

static Metas infer(const Call& c) {
  if (c.op->name == "aten::convolution_overrideable" && c.in[0].sizes.size() == c.in[1].sizes.size())
    return conv_shape(c);
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

// ---- recording
Ref ref_of(const at::Tensor& t) {
  Ref r;
  auto* im = t.unsafeGetTensorImpl();
  r.dtype = t.scalar_type();
  r.sizes.assign(im->sizes().begin(), im->sizes().end());
  r.strides.assign(im->strides().begin(), im->strides().end());
  if (im->is_privateuseone()) {
    r.s = state_of(t);
    r.offset = im->storage_offset();
  } else r.host = t;
  return r;
}
// A tensor of the host with dims is copied when it is recorded: a state that nobody else has.
static void snapshot(Ref& r, int device) {
  at::Tensor plain = r.host.contiguous();
  State* s = state_new(plain.nbytes(), device);
  memcpy(state_memory(s), plain.const_data_ptr(), plain.nbytes());
  s->alive = false;
  r.s = s;
  plain_strides(r.sizes, r.strides);
  r.host = at::Tensor();
}
static uint32_t number_value(Recorder& R, State* s) {
  if (s->segment != R.segment) {
    s->segment = R.segment;
    s->value = R.next_value++;
    s->slot = (uint32_t)R.states.size();
    R.states.push_back(s);
    R.hash = mix(R.hash, s->bytes);
  }
  return s->value;
}
static void append(Recorder& R, Call&& c) {
  auto& I = *c.op;
  uint64_t h = I.id;
  for (int32_t n : c.count) h = mix(h, (uint64_t)(n + 2));      // which arguments are absent
  each_ref(c, [&](size_t, size_t k) {
    auto& r = c.in[k];
    if (!r.s) {
      h = mix(h, r.host.defined() ? 11 + r.host.unsafeGetTensorImpl()->is_wrapped_number() : 10);
      if (r.host.defined()) h = hash_type(h, r);
      return;
    }
    r.s->refs++;
    h = hash_type(mix(mix(h, number_value(R, r.s)), r.offset), r);
  });
  for (size_t i = 0; i < c.other.size(); i++)
    if (I.kind[i] == OpInfo::OTHER || I.kind[i] == OpInfo::SCALAR || I.kind[i] == OpInfo::DTYPE)
      h = mix(h, hash_attr(c.other[i], is_lifted(I, i, c.other[i])));
  each_ref(c, [&](size_t i, size_t k) {
    auto& r = c.in[k];
    if (I.writes[i] && r.s) r.s->value = R.next_value++;
  });
  for (auto& o : c.out)
    if (o.s) {
      o.s->refs++;
      number_value(R, o.s);
      h = hash_type(h, o);
    }
  R.hash = mix(R.hash, h);
  // Where nobody reads for long, a segment ends at a place that the last calls alone tell, so that a
  // loop is cut in the same places each time.
  R.last[R.recorded++ & 7] = mix(I.id, c.in.empty() ? 0 : hash_type(1, c.in[0]));
  uint64_t w = 0;
  for (uint64_t i = 0; i < 8; i++) w = mix(w, R.last[(R.recorded + i) & 7]);
  R.calls.push_back(std::move(c));
  if (R.each) flush("each call");
  else if (R.calls.size() >= R.most || (R.calls.size() >= R.most / 4 && w % 256 == 0)) flush("length");
}

static int device_of(const Call& c, const Stack* stack, size_t base, size_t n) {
  for (auto& r : c.in)
    if (r.s) return r.s->device;
  for (size_t i = 0; i < n; i++) {
    auto& v = (*stack)[base + i];
    if (v.isDevice() && v.toDevice().has_index()) return v.toDevice().index();
  }
  return current_device();
}

void record(const OpInfo& I, Stack* stack) {
  auto& R = rec();
  size_t n = I.kind.size(), base = stack->size() - n;
  Call c;
  c.op = &I;
  c.other.resize(n);
  c.count.resize(n, -1);
  uint64_t key = I.id;
  auto put = [&](const at::Tensor& t) {
    c.in.push_back(ref_of(t));
    auto& r = c.in.back();
    key = hash_type(key, r);
    if (!r.s && r.sizes.empty() && r.host.unsafeGetTensorImpl()->is_wrapped_number()) key = mix(key, 77);
  };
  for (size_t i = 0; i < n; i++) {
    auto& v = (*stack)[base + i];
    switch (I.kind[i]) {
      case OpInfo::TENSOR:
        if (v.isTensor() && v.toTensor().defined()) {
          put(v.toTensor());
          c.count[i] = 1;
        } else {
          c.other[i] = v;
          key = mix(key, 13);
        }
        break;
      case OpInfo::LIST:
        if (v.isNone()) break;
        for (auto& t : v.toTensorVector()) put(t);
        c.count[i] = (int)v.toListRef().size();
        key = mix(key, c.count[i]);
        break;
      case OpInfo::OPTLIST:
        if (v.isNone()) break;
        for (auto& e : v.toListRef()) {
          if (e.isTensor() && e.toTensor().defined()) put(e.toTensor());
          else { c.in.push_back(Ref()); key = mix(key, 14); }
        }
        c.count[i] = (int)v.toListRef().size();
        break;
      case OpInfo::GENERATOR: break;
      default:
        c.other[i] = v;
        key = mix(key, hash_attr(v, I.kind[i] == OpInfo::SCALAR && I.pointwise));
    }
  }
  c.device = device_of(c, stack, base, n);
  for (auto& r : c.in)
    TORCH_CHECK(!r.s || r.s->device == c.device, "Expected all tensors to be on the same device, but "
                "found at least two devices, ocl:", c.device, " and ocl:", r.s ? r.s->device : 0,
                " (", I.name, ")");
  c10::SmallVector<at::Tensor, 4> keep;             // arguments that are results
  for (auto a : I.alias)
    if (a >= 0) {
      auto& v = (*stack)[base + a];
      keep.push_back(v.isTensor() ? v.toTensor() : at::Tensor());
    }
  auto run_now = [&](const char* why) {
    std::lock_guard<std::recursive_mutex> g(R.mu);
    flush(I.name.c_str());
    count_fallback(I.name, why);
    const Stack held(stack->end() - n, stack->end());       // nothing else may hold its arguments
    stack->erase(stack->end() - n, stack->end());
    run_on_host(c, stack);
  };
  if (I.dynamic) return run_now("its result depends on data, or is no tensor");
  if (I.random) {
    std::optional<at::Generator> g;
    for (size_t i = 0; i < n; i++)
      if (I.kind[i] == OpInfo::GENERATOR && (*stack)[base + i].isGenerator())
        g = (*stack)[base + i].toGenerator();
    auto sc = generator_next(g, c.device);
    c.seed = mix(sc.first, sc.second);
  }
  const Metas* m = nullptr;
  Metas local;
  if (I.fresh || I.has_out) {
    {
      std::lock_guard<std::recursive_mutex> g(R.mu);
      auto it = shapes.find(key);
      if (it != shapes.end()) { local = it->second; m = &local; R.hits++; }
    }
    if (!m) {                                       // unlocked: a meta kernel of Python takes the GIL
      try { local = infer(c); }
      catch (c10::NotImplementedError&) { return run_now("torch does not know its shape beforehand"); }
      std::lock_guard<std::recursive_mutex> g(R.mu);
      R.infers++;
      shapes[key] = local;
      m = &local;
    }
  }
  if (I.has_out && m) {
    size_t o = 0;
    each_ref(c, [&](size_t i, size_t k) {
      if (!I.writes[i] || o >= m->size()) return;
      auto& want = (*m)[o++];
      if (c10::IntArrayRef(want.sizes) == c10::IntArrayRef(c.in[k].sizes)) return;
      const at::Tensor& t = (*stack)[base + i].toTensor();
      ocl::resize(t, want.sizes, std::optional<c10::MemoryFormat>());
      c.in[k] = ref_of(t);
    });
  }
  c10::SmallVector<State*, 2> taken;
  for (auto& r : c.in)
    if (!r.s && r.host.defined() && r.host.dim()) { snapshot(r, c.device); taken.push_back(r.s); }
  stack->erase(stack->end() - n, stack->end());
  c10::SmallVector<at::Tensor, 2> made;
  if (I.fresh)
    for (auto& x : *m) {
      Ref r;
      r.dtype = x.dtype;
      if (x.defined) {
        at::Tensor t = make(x.dtype, x.sizes, x.strides, c.device);
        r.sizes = x.sizes;
        r.strides = x.strides;
        r.s = state_of(t);
        made.push_back(std::move(t));
      } else made.emplace_back();
      c.out.push_back(std::move(r));
    }
  {
    std::lock_guard<std::recursive_mutex> g(R.mu);
    if (R.device != c.device) {
      flush("another device");
      R.device = c.device;
    }
    if (I.product) {
      const int now = precision_now();
      if (R.precision != PRECISION_OPEN && R.precision != now) flush("another precision");
      R.precision = now;
    }
    append(R, std::move(c));
  }
  for (State* s : taken) state_drop(s);
  size_t k = 0, a = 0;
  for (size_t i = 0; i < I.alias.size(); i++) {
    if (I.alias[i] >= 0) stack->emplace_back(std::move(keep[a++]));
    else if (I.retlist[i]) {
      c10::List<at::Tensor> l;
      while (k < made.size()) l.push_back(std::move(made[k++]));
      stack->emplace_back(std::move(l));
    } else stack->emplace_back(std::move(made[k++]));
  }
}
}  // namespace ocl
