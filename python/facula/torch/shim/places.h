// Equal segments on the same tensors: what their programs keep, and whether it still is that.
#pragma once
#include "segment.h"

namespace ocl {
struct Seen { uint64_t uid = 0, writes = 0; int same = 0, still = 0; };
// What equal calls were made on.  The blocks of a transformer are equal segments on other
// parameters: each has a program that keeps its own.
struct Place {
  std::vector<Seen> seen;                           // by slot
  Plan bound;
  std::vector<uint64_t> held;                       // the tensors of bound slots
  int binds = 0;
  uint64_t used = 0;                                // the flush that used it last
};
struct Variant {
  std::vector<Num> values;
  std::vector<uint8_t> varying;
  Plan plain;
  std::vector<uint32_t> leaves;                     // slots `plain` reads and programs may keep
  std::vector<Place> places;
  uint64_t born = 0;                                // states below this uid were there before
};

std::vector<uint32_t> leaves_of(const Run&, const Plan& plain);
Place& place_of(const Run&, Variant&);              // of this run: one that was there, or a new one
// Slots that a program of this place may keep; it looks at the place's leaves.
std::vector<uint32_t> stable(const Run&, const Variant&, Place&);
bool still_held(const Run&, const Place&);          // its program keeps the tensors of now
void hold(const Run&, Place&);
void retire(const Plan&);                           // Python may free its programs: flush.cpp
}  // namespace ocl
