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
  void whole_vectors(const Xbyak::Label& rest);
  void mask_first(const Xbyak::Reg64& count);
  void stream(const Xbyak::Label& ordinary, const Xbyak::Label& rest);
  void body_of(bool masked);

  // ---- registers
  bool is_mask(int v) const override { return list_.value(v).type.is_bool(); }
  void spill(int v, int reg, const Xbyak::Address& to) override;
  void reload(int v, int reg, const Xbyak::Address& from) override;
  void make_truth(int reg, bool value) override;
  // Where elements are: elsewhere nothing raises a flag.
  Xmm where(const Xmm& x) const { return masked_ ? x | Opmask(1) | Xbyak::EvexModifierZero() : x; }
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
  void store(size_t k) override;

  // ---- operations
  void number_of(const Value& value, int out, const Operands& in) override;
  void multiply_bytes(const Xmm& to, const Xmm& a, const Xmm& b);
  void round(const Value& value, const Xmm& to, const Xmm& x);
  void shift(const Value& value, const Xmm& to, const Xmm& x, const Xmm& by);
  void select(const Value& value, int out, const Operands& in);
  void convert(const Value& value, int out, int in);
  void to_float(const Value& value, int out, int in);
  void from_float(const Value& value, const Xmm& y, const Xmm& x);
  void narrow(const Xmm& y, const Xmm& x, const ValueType& from, const ValueType& to);

  // ---- truth values
  void truth(const Value& value, int out, const Operands& in) override;
  void select_truth(const Opmask& k, const Operands& in);
  void compare(const Value& value, const Opmask& k, const Operands& in);

  std::vector<int> offsets_;  // strided operands: in the frame
  int strided_ = 0;
  bool masked_ = false, streaming_ = false;
};

}  // namespace dalsegno::halide_gen
