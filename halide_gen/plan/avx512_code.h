// Stages by instructions of AVX-512 (F, VL, BW, DQ; and BMI2): truth values are bits of mask registers, and what is left of a row is done
// by one vector under a mask.
#pragma once
#include "halide_gen/plan/stage_code.h"

namespace dalsegno::halide_gen {

class Avx512Code final : public StageCode {
 public:
  Avx512Code(const KernelSpec& spec, const Stage& stage, int rank, Xbyak::CodeGenerator* to);

 private:
  using Opmask = Xbyak::Opmask;
  static constexpr VectorRegisters kRegisters{.bytes = 64, .count = 32, .kept = 10};

  // ---- loops
  void one_row(const Xbyak::Label& done) override;
  void begin_stream(const Xbyak::Label& ordinary) override;
  void mask_first(const Xbyak::Reg64& count);
  void masked_body();

  // ---- registers
  bool is_mask(int v) const override { return list_.value(v).type.is_bool(); }
  void spill(int v, int reg, const Xbyak::Address& to) override;
  void reload(int v, int reg, const Xbyak::Address& from) override;
  void make_truth(int reg, bool value) override;
  Xmm where(const Xmm& x) const override { return masked_ ? x | Opmask(1) | Xbyak::EvexModifierZero() : x; }
  Opmask where(const Opmask& k) const { return masked_ ? k | Opmask(1) : k; }

  // ---- memory
  void find_offsets(size_t i) override;
  template <class To, class From>
  void move(const ValueType& t, const To& to, const From& from);
  void load(size_t i, int reg) override;
  void gather(size_t i, int reg);
  void load_apart(size_t i, int reg);
  void pick(size_t i, int reg, int index, int stride);
  void turn_round(size_t i, int reg, int index);
  void load_each(size_t i, int reg, int part, int group);
  void put(const ValueType& t, const Xbyak::Address& to, const Xmm& x) override;

  // ---- operations
  void bitwise(Node node, int out, const Operands& in) override;
  void multiply(const Value& value, const Xmm& to, const Xmm& a, const Xmm& b) override;
  void multiply_bytes(const Xmm& to, const Xmm& a, const Xmm& b);
  void round(const ValueType& t, const Xmm& to, const Xmm& x, uint8_t how) override;
  void shift(const Value& value, const Xmm& to, const Xmm& x, const Xmm& by) override;
  void select(const Value& value, int out, const Operands& in) override;
  void to_float(const ValueType& from, const ValueType& to, int out, int in) override;
  void from_float(const Value& value, int out, int in) override;
  void narrow(const ValueType& from, const ValueType& to, int out, int in) override;

  // ---- truth values
  void truth(const Value& value, int out, const Operands& in) override;
  void select_truth(const Opmask& k, const Operands& in);
  void compare(const Value& value, const Opmask& k, const Operands& in);

  std::vector<int> offsets_;  // strided operands: in the frame
  int strided_ = 0;
  bool masked_ = false;
};

}  // namespace dalsegno::halide_gen
