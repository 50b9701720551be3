// Machine code of one expression stage, as the functions of compiled kernels are called: a nest of loops over the axes, the innermost one
// over vectors, and one pass over the stage's values within it, a register each (assembler.h). stage_code.cc has the loops, registers and
// memory, stage_code_operations.cc what computes the values.
#pragma once
#include <xbyak/xbyak.h>

#include <array>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <vector>

#include "halide_gen/plan/stage_list.h"

namespace dalsegno::halide_gen {

// There are no instructions for it here, or too few registers or places.
struct NotCovered : std::exception {};

// The kernel, the plan and the generator outlive it. One thread at a time. Errors are exceptions, of the constructor and of write():
// NotCovered, StageList's, and Xbyak's where there is no memory. What the generator has by then is of no use.
class StageCode : StageShape {
 public:
  // `rank`: axes of what it is called with.
  StageCode(const KernelSpec& spec, const Stage& stage, int rank, Xbyak::CodeGenerator* to);
  // Appends the function, and the numbers that it reads. Once.
  void write();

 private:
  using Xmm = Xbyak::Xmm;  // and wider ones
  using Opmask = Xbyak::Opmask;
  using Operands = std::array<int, 3>;  // registers

  ValueType type_of(size_t i) const;
  bool is_still(size_t i) const { return is_scalar(i) || inner(i) == Inner::kBroadcast; }
  Xbyak::Address in_frame(int offset) { return c_.ptr[c_.rsp + offset]; }

  // ---- before the loops
  void choose_kept();
  void choose_places();
  void open(size_t i);
  void find_extents();
  void find_steps();
  void find_offsets(size_t i);
  void load_kept();

  // ---- loops
  void loops();
  void whole_vectors(const Xbyak::Label& rest);
  void mask_first(const Xbyak::Reg64& count);
  bool may_stream() const;
  void stream(const Xbyak::Label& ordinary, const Xbyak::Label& rest);
  void go_on(size_t i, int axis);
  void body(bool masked);

  // ---- registers
  static constexpr int kNowhere = -1;
  static constexpr int kMasks = 8;
  static constexpr int kFirstMask = 2;  // k1 says which elements there are, k0 cannot mask

  bool is_mask(int v) const { return list_.value(v).type.is_bool(); }
  int vectors_end() const { return 32 - kept_; }
  template <class Registers>
  static int free_one(const Registers& registers, int first, int end) {
    for (int i = first; i < end; ++i)
      if (registers[static_cast<size_t>(i)] == kNowhere) return i;
    return kNowhere;
  }
  int free_vector(int first = 0) const { return free_one(vectors_, first, vectors_end()); }
  int free_mask() const { return free_one(masks_, kFirstMask, kMasks); }
  int take(int v);
  void vacate(int v, int reg);
  int found(int v);
  void release_dead();
  Xmm vector(int reg, const ValueType& t) const;
  // Where elements are: elsewhere nothing raises a flag.
  Xmm where(const Xmm& x) const { return masked_ ? x | Opmask(1) | Xbyak::EvexModifierZero() : x; }
  Opmask where(const Opmask& k) const { return masked_ ? k | Opmask(1) : k; }

  // ---- memory
  Xbyak::Reg64 row(size_t i);
  Xbyak::Address at(size_t i);
  Xbyak::Address number(uint64_t bits);
  void repeat(const ValueType& t, int reg, const Xbyak::Address& from);
  template <class To, class From>
  void move(const ValueType& t, const To& to, const From& from);
  void load(size_t i, int reg);
  bool is_apart(size_t i) const { return !is_scalar(i) && inner(i) == Inner::kStrided; }
  void find_row_element(size_t i);
  void gather(size_t i, int reg);
  void load_apart(size_t i, int reg);
  void pick(size_t i, int reg, int index, int stride);
  void turn_round(size_t i, int reg, int index);
  void load_each(size_t i, int reg, int part, int group);
  Xbyak::Address table(const std::vector<uint64_t>& bits);
  void store(size_t k);
  void write_numbers();

  // ---- operations
  void compute(const Value& value);
  void number_of(const Value& value, int out, const Operands& in);
  void multiply_bytes(const Xmm& to, const Xmm& a, const Xmm& b);
  void round(const Value& value, const Xmm& to, const Xmm& x);
  void shift(const Value& value, const Xmm& to, const Xmm& x, const Xmm& by);
  void select(const Value& value, int out, const Operands& in);
  void convert(const Value& value, int out, int in);
  void to_float(const Value& value, int out, int in);
  void from_float(const Value& value, const Xmm& y, const Xmm& x);
  void widen(const Xmm& y, const Xmm& x, const ValueType& from, const ValueType& to);
  void narrow(const Xmm& y, const Xmm& x, const ValueType& from, const ValueType& to);

  // ---- truth values: bits of a mask register
  void truth(const Value& value, const Opmask& k, const Operands& in);
  void select_truth(const Opmask& k, const Operands& in);
  void compare(const Value& value, const Opmask& k, const Operands& in);

  const StageList list_;
  const int rank_;
  Xbyak::CodeGenerator& c_;
  const int lanes_;
  Xbyak::Label done_;
  std::vector<std::optional<Xbyak::Reg64>> places_;  // of arrays' rows
  std::vector<int> offsets_;                         // strided operands: in the frame
  int strided_ = 0;
  std::map<int, int> is_kept_;  // values that stay in registers, and these
  int kept_ = 0;
  std::map<uint64_t, Xbyak::Label> numbers_;
  std::map<std::vector<uint64_t>, Xbyak::Label> tables_;

  bool masked_ = false, streaming_ = false;
  int now_ = 0;  // the value that is computed
  std::vector<int> registers_, spills_;
  std::array<int, 32> vectors_{};  // whose value each register holds
  std::array<int, kMasks> masks_{};
  std::vector<int> busy_;  // operands of what is being computed
  int next_spill_ = 0;
};

}  // namespace dalsegno::halide_gen
