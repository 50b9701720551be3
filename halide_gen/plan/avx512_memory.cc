// How values come from memory and go there.
#include <iterator>

#include "halide_gen/plan/avx512_code.h"
#include "halide_gen/plan/stage_frame.h"

namespace dalsegno::halide_gen {
namespace {

using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Zmm;
using namespace frame;

}  // namespace

void Avx512Code::find_offsets(size_t i) {
  if (!is_apart(i)) return;
  const int size = type_of(i).bytes();
  if ((lanes_ != 8 && (lanes_ != 16 || size != 4)) || (size != 4 && size != 8) || strided_ == kMostStrided) throw NotCovered();
  offsets_[i] = kOffsets + 64 * strided_++;
  c_.xor_(c_.eax, c_.eax);
  for (int lane = 0; lane < kGathered; ++lane) {
    c_.mov(in_frame(offsets_[i] + 8 * lane), c_.rax);
    c_.add(c_.rax, in_frame(step(i, 0)));
  }
}

// Under a mask `to` has it already.
template <class To, class From>
void Avx512Code::move(const ValueType& t, const To& to, const From& from) {
  if (!masked_) return t.bits * lanes_ < 128 ? c_.vmovq(to, from) : c_.vmovdqu64(to, from);
  t.bits == 64   ? c_.vmovdqu64(to, from)
  : t.bits == 32 ? c_.vmovdqu32(to, from)
  : t.bits == 16 ? c_.vmovdqu16(to, from)
                 : c_.vmovdqu8(to, from);
}

void Avx512Code::load(size_t i, int reg) {
  const ValueType t = type_of(i);
  if (is_still(i)) return repeat(t, reg, at(i));
  if (is_apart(i)) return masked_ ? gather(i, reg) : load_apart(i, reg);
  move(t, where(vector(reg, t)), at(i));
}

// Under the mask.
void Avx512Code::gather(size_t i, int reg) {
  const int offsets = free_vector(), mask = free_mask();
  if (offsets == kNowhere || mask == kNowhere) throw NotCovered();
  const Opmask k(mask);
  c_.vmovdqu64(Zmm(offsets), in_frame(offsets_[i]));
  find_row_element(i);
  const Xbyak::Address from = c_.ptr[c_.rax + Zmm(offsets)];
  c_.vpxorq(Zmm(reg), Zmm(reg), Zmm(reg));
  if (lanes_ > kGathered) {  // the second half first, as what is written below it is dropped
    const int half = free_vector(offsets + 1);
    if (half == kNowhere) throw NotCovered();
    c_.lea(*kThrice, c_.ptr[c_.rax]);
    c_.mov(c_.rax, in_frame(step(i, 0)));
    c_.lea(c_.rax, c_.ptr[*kThrice + c_.rax * kGathered]);
    c_.kshiftrq(k, c_.k1, kGathered);
    c_.vpxorq(Zmm(half), Zmm(half), Zmm(half));
    c_.vpgatherqd(Xbyak::Ymm(half) | k, from);
    c_.mov(c_.rax, *kThrice);
    c_.kmovq(k, c_.k1);
    c_.vpgatherqd(Xbyak::Ymm(reg) | k, from);
    return c_.vinserti32x8(Zmm(reg), Zmm(reg), Xbyak::Ymm(half), 1);
  }
  c_.kmovq(k, c_.k1);
  type_of(i).bits == 64 ? c_.vpgatherqq(Zmm(reg) | k, from) : c_.vpgatherqd(Xbyak::Ymm(reg) | k, from);
}

// A whole vector of elements that lie apart, or backwards. Where no more than three lie between two of them, all are read and they are
// picked; else each is read by itself. (Instructions that gather take three times as long on processors of AMD's.)
void Avx512Code::load_apart(size_t i, int reg) {
  const int part = free_vector(), group = part == kNowhere ? kNowhere : free_vector(part + 1);
  if (group == kNowhere) throw NotCovered();
  find_row_element(i);
  Xbyak::Label done;
  for (const int stride : {2, 3, kMostPicked, -1}) {
    Xbyak::Label other;
    c_.cmp(c_.qword[c_.rsp + step(i, 0)], stride * type_of(i).bytes());
    c_.jne(other, Xbyak::CodeGenerator::T_NEAR);
    stride > 0 ? pick(i, reg, part, stride) : turn_round(i, reg, part);
    c_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
    c_.L(other);
  }
  load_each(i, reg, part, group);
  c_.L(done);
}

// From vectors of memory, the last one of which ends where the last element does, so that nothing behind it is read.
void Avx512Code::pick(size_t i, int reg, int index, int stride) {
  const ValueType t = type_of(i);
  const Xmm to = vector(reg, t), which = vector(index, t);
  c_.vmovdqu64(to, c_.ptr[c_.rax]);
  for (int k = 1; k < stride; ++k) {
    const int begin = k + 1 < stride ? k * lanes_ : (stride - 1) * (lanes_ - 1);
    std::vector<uint64_t> bits(static_cast<size_t>(lanes_ * t.bits / 64), 0);
    for (int lane = 0; lane < lanes_; ++lane) {
      const int element = stride * lane, vector = element / lanes_;
      const auto from = static_cast<uint64_t>(vector == k ? lanes_ + element - begin : k == 1 && vector == 0 ? element : lane);
      bits[static_cast<size_t>(lane * t.bits / 64)] |= from << (lane * t.bits % 64);
    }
    c_.vmovdqu64(which, table(bits));
    const Xbyak::Address more = c_.ptr[c_.rax + begin * t.bytes()];
    t.bits == 64 ? c_.vpermt2q(to, which, more) : c_.vpermt2d(to, which, more);
  }
}

void Avx512Code::turn_round(size_t i, int reg, int index) {
  const ValueType t = type_of(i);
  std::vector<uint64_t> bits(static_cast<size_t>(lanes_ * t.bits / 64), 0);
  for (int lane = 0; lane < lanes_; ++lane)
    bits[static_cast<size_t>(lane * t.bits / 64)] |= static_cast<uint64_t>(lanes_ - 1 - lane) << (lane * t.bits % 64);
  c_.vmovdqu64(vector(index, t), table(bits));
  const Xbyak::Address from = c_.ptr[c_.rax - (lanes_ - 1) * t.bytes()];
  if (t.bits == 64) return c_.vpermq(Zmm(reg), Zmm(index), from);
  lanes_ > kGathered ? c_.vpermd(Zmm(reg), Zmm(index), from) : c_.vpermd(Xbyak::Ymm(reg), Xbyak::Ymm(index), from);
}

// One after the other, four to a group of 128 bits or two.
void Avx512Code::load_each(size_t i, int reg, int part, int group) {
  const bool wide = type_of(i).bits == 64;
  const Xmm x(part), y(group);
  const std::array<Xbyak::Address, 4> from = four_apart(i);
  for (int k = 0; k < lanes_ / 4; ++k) {
    if (k > 0) next_four();
    if (wide) {
      c_.vmovq(y, from[0]);
      c_.vpinsrq(y, y, from[1], 1);
      c_.vmovq(x, from[2]);
      c_.vpinsrq(x, x, from[3], 1);
      c_.vinserti64x2(Xbyak::Ymm(group), Xbyak::Ymm(group), x, 1);
      k == 0 ? c_.vmovdqa64(Xbyak::Ymm(reg), Xbyak::Ymm(group)) : c_.vinserti64x4(Zmm(reg), Zmm(reg), Xbyak::Ymm(group), 1);
      continue;
    }
    c_.vmovd(y, from[0]);
    for (int j = 1; j < 4; ++j) c_.vpinsrd(y, y, from[j], static_cast<uint8_t>(j));
    if (k == 0)
      c_.vmovdqa64(Xmm(reg), y);
    else if (lanes_ > kGathered)
      c_.vinserti32x4(Zmm(reg), Zmm(reg), y, static_cast<uint8_t>(k));
    else
      c_.vinserti32x4(Xbyak::Ymm(reg), Xbyak::Ymm(reg), y, static_cast<uint8_t>(k));
  }
}

void Avx512Code::put(const ValueType& t, const Xbyak::Address& to, const Xmm& x) { move(t, masked_ ? to | Opmask(1) : to, x); }

}  // namespace dalsegno::halide_gen
