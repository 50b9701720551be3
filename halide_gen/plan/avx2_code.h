// Stages by instructions of AVX2: a truth value is a vector of elements as wide as the widest type that occurs, all bits set or none. What
// is left of a row is done by the vector that ends where it ends (its first elements are computed once more), so that nothing is computed
// where no element is; a row shorter than a vector by vectors that hold one element many times.
#pragma once
#include "halide_gen/plan/stage_code.h"

namespace dalsegno::halide_gen {

class Avx2Code final : public StageCode {
 public:
  Avx2Code(const KernelSpec& spec, const Stage& stage, int rank, Xbyak::CodeGenerator* to);

 private:
  static constexpr VectorRegisters kRegisters{.bytes = 32, .count = 14, .kept = 5};
  static constexpr int kFirst = 14, kSecond = 15;  // for what takes several instructions; no value's

  // ---- loops
  void one_row(const Xbyak::Label& done) override;
  void begin_stream(const Xbyak::Label&) override { body(); }  // the row has a vector at least

  // ---- registers
  void spill(int v, int reg, const Xbyak::Address& to) override;
  void reload(int v, int reg, const Xbyak::Address& from) override;
  void make_truth(int reg, bool value) override;
  ValueType truth_type() const { return {ValueType::kInt, static_cast<uint8_t>(8 * kRegisters.bytes / lanes_)}; }

  // ---- memory
  void load(size_t i, int reg) override;
  void load_apart(size_t i, int reg);
  void put(const ValueType& t, const Xbyak::Address& to, const Xmm& x) override;
  void put_one(const ValueType& t, const Xbyak::Address& to, const Xmm& x);

  // ---- operations
  void bitwise(Node node, int out, const Operands& in) override;
  void multiply(const Value& value, const Xmm& to, const Xmm& a, const Xmm& b) override;
  void invert(const Xmm& to, const Xmm& x);
  void multiply_bytes(const Xmm& to, const Xmm& a, const Xmm& b);
  void multiply_wide(const Xmm& to, const Xmm& a, const Xmm& b);
  void round(const ValueType& t, const Xmm& to, const Xmm& x, uint8_t how) override;
  void shift(const Value& value, const Xmm& to, const Xmm& x, const Xmm& by) override;
  void select(const Value& value, int out, const Operands& in) override;
  Xbyak::Address in_all_lanes(double x);
  void to_float(const ValueType& from, const ValueType& to, int out, int in) override;
  void wide_to_double(bool sign, int out, int in);
  void from_float(const Value& value, int out, int in) override;
  void double_to_wide(int out, int in);
  void narrow(const ValueType& from, const ValueType& to, int out, int in) override;

  // ---- truth values
  void truth(const Value& value, int out, const Operands& in) override;
  void compare(const Value& value, int out, const Operands& in);
  void compare_integers(const Value& value, const Xmm& to, const Xmm& a, const Xmm& b);

  bool single_ = false;
};

}  // namespace dalsegno::halide_gen
