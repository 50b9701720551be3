// Machine code of one expression stage, as the functions of compiled kernels are called: a nest of loops over the axes, the innermost one
// over vectors, and one pass over the stage's values within it, a register each (assembler.h). Here are the loops, the registers and what
// the instructions of all processors do alike; the rest is said by the class that knows them (avx512_code.h, avx2_code.h).
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

// Of the instructions: how long a vector is, in bytes, how many there are for values, and how many of them hold what stays the same.
struct VectorRegisters {
  int bytes, count, kept;
};

// The kernel, the plan and the generator outlive it. One thread at a time. Errors are exceptions, of the constructor and of write():
// NotCovered, StageList's, and Xbyak's where there is no memory. What the generator has by then is of no use.
class StageCode : protected StageShape {
 public:
  virtual ~StageCode() = default;
  StageCode(const StageCode&) = delete;
  // Appends the function, and the numbers that it reads. Once.
  void write();

 protected:
  using Xmm = Xbyak::Xmm;               // and wider ones
  using Operands = std::array<int, 3>;  // registers
  static constexpr int kNowhere = -1;
  static constexpr int kMasks = 8;
  static constexpr int kFirstMask = 2;  // k1 says which elements there are, k0 cannot mask

  // `rank`: axes of what it is called with.
  StageCode(const KernelSpec& spec, const Stage& stage, int rank, const VectorRegisters& registers, Xbyak::CodeGenerator* to);

  // ---- what the instructions say
  // The elements of a row, rdx of them, from rcx = 0 on. It is through at `done`, or at its end.
  virtual void one_row(const Xbyak::Label& done) = 0;
  virtual bool is_mask(int) const { return false; }  // has the value a register of masks?
  virtual void spill(int v, int reg, const Xbyak::Address& to) = 0;
  virtual void reload(int v, int reg, const Xbyak::Address& from) = 0;
  virtual void make_truth(int reg, bool value) = 0;
  virtual void find_offsets(size_t) {}  // of what lies apart; before the loops
  virtual void load(size_t i, int reg) = 0;
  virtual void put(const ValueType& t, const Xbyak::Address& to, const Xmm& x) = 0;
  // Before the first whole vector of memory: rax elements from rcx = 0 on. Where the row has too few it goes to `ordinary`.
  virtual void begin_stream(const Xbyak::Label& ordinary) = 0;
  virtual void truth(const Value& value, int out, const Operands& in) = 0;
  // What follows may have the register of an operand for its result.
  virtual Xmm where(const Xmm& x) const { return x; }  // x, but nothing is computed where no element is
  virtual void bitwise(Node node, int out, const Operands& in) = 0;
  virtual void multiply(const Value& value, const Xmm& to, const Xmm& a, const Xmm& b) = 0;  // integers
  virtual void round(const ValueType& t, const Xmm& to, const Xmm& x, uint8_t how) = 0;
  virtual void shift(const Value& value, const Xmm& to, const Xmm& x, const Xmm& by) = 0;
  virtual void select(const Value& value, int out, const Operands& in) = 0;
  virtual void to_float(const ValueType& from, const ValueType& to, int out, int in) = 0;  // from integers of 32 or 64 bits
  virtual void from_float(const Value& value, int out, int in) = 0;
  virtual void narrow(const ValueType& from, const ValueType& to, int out, int in) = 0;

  // ---- for them
  ValueType type_of(size_t i) const;
  bool is_still(size_t i) const { return is_scalar(i) || inner(i) == Inner::kBroadcast; }
  bool is_apart(size_t i) const { return !is_scalar(i) && inner(i) == Inner::kStrided; }
  Xbyak::Address in_frame(int offset) { return c_.ptr[c_.rsp + offset]; }
  void body();
  void whole_vectors(const Xbyak::Label& rest);
  void stream(const Xbyak::Label& ordinary, const Xbyak::Label& rest);
  template <class Registers>
  static int free_one(const Registers& registers, int first, int end) {
    for (int i = first; i < end; ++i)
      if (registers[static_cast<size_t>(i)] == kNowhere) return i;
    return kNowhere;
  }
  int free_vector(int first = 0) const { return free_one(vectors_, first, vectors_end()); }
  int free_mask() const { return free_one(masks_, kFirstMask, kMasks); }
  int found(int v);
  Xmm vector(int reg, const ValueType& t) const;
  Xbyak::Reg64 row(size_t i);
  Xbyak::Address at(size_t i);
  void find_row_element(size_t i);
  std::array<Xbyak::Address, 4> four_apart(size_t i);
  void next_four();
  Xbyak::Address number(uint64_t bits);
  Xbyak::Address table(const std::vector<uint64_t>& bits);
  void repeat(const ValueType& t, int reg, const Xbyak::Address& from);
  static uint8_t predicate(Node node, bool of_floats);
  void arithmetic(const Value& value, const Xmm& to, const Xmm& a, const Xmm& b);
  void widen(const Xmm& y, const Xmm& x, const ValueType& from, const ValueType& to);

  const StageList list_;
  Xbyak::CodeGenerator& c_;
  const int lanes_;

 private:
  // ---- before the loops
  void choose_kept();
  void choose_places();
  void open(size_t i);
  void find_extents();
  void find_steps();
  void load_kept();

  // ---- loops
  void loops();
  void compare_end();
  bool may_stream() const;
  void go_on(size_t i, int axis);

  // ---- registers
  int vectors_end() const { return with_.count - kept_; }
  int take(int v);
  void vacate(int v, int reg);
  void release_dead();

  void store(size_t k);
  void write_numbers();

  void compute(const Value& value);
  void number_of(const Value& value, int out, const Operands& in);
  void convert(const Value& value, int out, int in);

  const int rank_;
  const VectorRegisters with_;
  std::vector<std::optional<Xbyak::Reg64>> places_;  // of arrays' rows
  Xbyak::Label done_;
  std::map<int, int> is_kept_;  // values that stay in registers, and these
  int kept_ = 0;
  std::map<uint64_t, Xbyak::Label> numbers_;
  std::map<std::vector<uint64_t>, Xbyak::Label> tables_;
  bool streaming_ = false;
  int now_ = 0;            // the value that is computed
  std::vector<int> busy_;  // its operands
  std::vector<int> registers_, spills_;
  std::array<int, 32> vectors_{};  // whose value each register holds
  std::array<int, kMasks> masks_{};
  int next_spill_ = 0;
};

}  // namespace dalsegno::halide_gen
