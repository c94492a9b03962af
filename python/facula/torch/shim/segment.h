// A segment that is being computed, and what it became: shared by the files of a flush.
#pragma once
#include "lazy.h"
#include <cmath>

namespace ocl {
// A scalar, or a tensor of the host without dims.  Constants of a program until they change.
struct Num {
  bool whole = false;
  double d = 0;
  int64_t i = 0;
  bool operator==(const Num& o) const {
    return whole == o.whole && (whole ? i == o.i : d == o.d || (std::isnan(d) && std::isnan(o.d)));
  }
};
void numbers_of(const Call& c, std::vector<Num>& out);  // in the order in which put() counts them

// What a segment became.
struct Port {
  int kind;                                         // 0 a state, 1 a number
  uint32_t index;
  fac_dtype dtype;
  fac_dims dims;
};
struct Part {
  bool host = false;
  uint32_t call = 0;
  fac_program* program = nullptr;
  std::vector<Port> in, out;
  std::vector<std::pair<uint32_t, bool>> bound;     // slots the program keeps; does it write them?
};
struct Plan {
  int64_t id = 0;
  std::vector<Part> parts;
};

struct Run {                                        // a segment that is being computed
  std::vector<Call> calls;
  std::vector<State*> states;
  std::vector<Num> numbers;
  int device = 0;
  const char* precision = "default";
  bool read = false;                                // it ends because results are about to be read
  size_t next = 0;                                  // first call of the part being computed
  bool refused = false;                             // a call refused its data
  ~Run() {                                          // the next segment records into the same memory
    for (auto& c : calls) drop(c);
    for (State* s : states) state_drop(s);
    calls.clear();
    states.clear();
    if (rec().calls.empty()) rec().calls.swap(calls);
    if (rec().states.empty()) rec().states.swap(states);
  }
};

// For Python: see segment.py.
std::string json(const Run& run, const std::vector<uint8_t>& varying,
                 const std::vector<uint8_t>& fixed, const Plan* bind_to,
                 const std::vector<uint32_t>& bind);
void run_plan(Run& run, const Plan& plan);
// Throws as torch would; was it a call that refused its data?
[[noreturn]] void tell(const fac_error& err, bool* refused);
// false: some data was wrong, that of a segment before this one if there are `earlier` ones.
bool ask(int device, bool* earlier, fac_error* err);
void rescue(Run& run);                              // what does not depend on what failed
void lose(const Call&);                             // what it should have made
}  // namespace ocl
