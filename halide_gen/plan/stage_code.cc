#include "halide_gen/plan/stage_code.h"

#include <HalideRuntime.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>

#include "halide_gen/plan/expressions.h"
#include "halide_gen/plan/stage_frame.h"
#include "halide_gen/runtime/launch.h"
#include "trace/fault.h"

namespace dalsegno::halide_gen {
namespace {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Xmm;
using Generator = Xbyak::CodeGenerator;
using namespace frame;

using OfFloats = void (Generator::*)(const Xmm&, const Operand&, const Operand&);
using OfIntegers = void (Generator::*)(const Xmm&, const Xmm&, const Operand&);
// By kind and by bits: 8, 16, 32, 64; null: there is no such instruction.
struct Binary {
  Node node;
  OfFloats of_float[2];
  OfIntegers of_integer[4];
};

constexpr Binary kBinaries[] = {
    {Node::kAdd,
     {&Generator::vaddps, &Generator::vaddpd},
     {&Generator::vpaddb, &Generator::vpaddw, &Generator::vpaddd, &Generator::vpaddq}},
    {Node::kSub,
     {&Generator::vsubps, &Generator::vsubpd},
     {&Generator::vpsubb, &Generator::vpsubw, &Generator::vpsubd, &Generator::vpsubq}},
    {Node::kMul, {&Generator::vmulps, &Generator::vmulpd}, {nullptr, &Generator::vpmullw, &Generator::vpmulld, &Generator::vpmullq}},
    {Node::kDiv, {&Generator::vdivps, &Generator::vdivpd}, {}},
};

int by_bits(const ValueType& t) { return t.bits == 8 ? 0 : t.bits == 16 ? 1 : t.bits == 32 ? 2 : 3; }

}  // namespace

StageCode::StageCode(const KernelSpec& spec, const Stage& stage, int rank, const VectorRegisters& registers, Generator* to)
    : StageShape(spec, stage), list_(spec, stage), c_(*to), lanes_(StageShape::lanes(registers.bytes)), rank_(rank), with_(registers) {
  if (rank_ > kMostRank || operands() > kMostOperands) throw NotCovered();
  places_.assign(operands(), std::nullopt);
}

void StageCode::write() {
  for (const Reg64* r : kSaved) c_.push(*r);
  c_.mov(c_.rbp, c_.rsp);
  c_.and_(c_.rsp, -64);
  c_.sub(c_.rsp, kFrame);
  choose_kept();
  choose_places();
  for (size_t i = 0; i < operands(); ++i) open(i);
  find_extents();
  find_steps();
  for (size_t i = 0; i < operands(); ++i) find_offsets(i);
  load_kept();
  for (size_t i = 0; i < operands(); ++i)
    if (places_[i]) c_.mov(*places_[i], in_frame(pointer(i)));
  loops();
  if (may_stream()) c_.sfence();
  c_.L(done_);
  c_.xor_(c_.eax, c_.eax);
  c_.vzeroupper();
  c_.mov(c_.rsp, c_.rbp);
  for (size_t k = std::size(kSaved); k > 0; --k) c_.pop(*kSaved[k - 1]);
  c_.ret();
  write_numbers();
}

ValueType StageCode::type_of(size_t i) const { return memory_type(dtype(i)); }

// ---- before the loops

// Numbers of the program's and the kernel's stay in registers, if there are few of them.
void StageCode::choose_kept() {
  registers_.assign(list_.size(), kNowhere);
  for (int v = 0; v < static_cast<int>(list_.size()); ++v) {
    const Value& value = list_.value(v);
    const bool number = value.node == Node::kNumber && !value.type.is_bool();
    const bool scalar = value.node == Node::kVariable && is_scalar(static_cast<size_t>(value.source));
    if ((!number && !scalar) || kept_ == with_.kept) continue;
    registers_[static_cast<size_t>(v)] = is_kept_[v] = with_.count - 1 - kept_++;
  }
}

// The first arrays' rows begin at what general registers hold.
void StageCode::choose_places() {
  bool apart = false;
  for (size_t i = 0; i < operands(); ++i) apart |= is_apart(i);
  size_t next = 0;
  const size_t end = std::size(kPlaces) - (apart ? kStrideRegisters : 0);
  for (size_t i = 0; i < operands() && next < end; ++i)
    if (!is_scalar(i)) places_[i] = *kPlaces[next++];
}

void StageCode::open(size_t i) {
  c_.mov(c_.rax, c_.ptr[c_.rdi + 8 * static_cast<int>(i)]);
  if (is_scalar(i)) return c_.mov(in_frame(pointer(i)), c_.rax);
  c_.mov(c_.rdx, c_.ptr[c_.rax + offsetof(halide_buffer_t, host)]);
  c_.mov(in_frame(pointer(i)), c_.rdx);
  c_.mov(c_.rax, c_.ptr[c_.rax + offsetof(halide_buffer_t, dim)]);
  for (int axis = 0; axis < rank_; ++axis) {
    c_.movsxd(c_.rdx, c_.dword[c_.rax + axis * sizeof(halide_dimension_t) + offsetof(halide_dimension_t, stride)]);
    c_.imul(c_.rdx, c_.rdx, type_of(i).bytes());
    c_.mov(in_frame(step(i, axis)), c_.rdx);
  }
}

void StageCode::find_extents() {
  c_.mov(c_.rax, c_.ptr[c_.rdi + 8 * static_cast<int>(reads())]);
  c_.mov(c_.rdx, c_.ptr[c_.rax + offsetof(halide_buffer_t, flags)]);
  c_.shr(c_.rdx, std::countr_zero(rt::kStreams));
  c_.mov(in_frame(kStreaming), c_.rdx);
  c_.mov(c_.rax, c_.ptr[c_.rax + offsetof(halide_buffer_t, dim)]);
  for (int axis = 0; axis < rank_; ++axis) {
    c_.movsxd(c_.rdx, c_.dword[c_.rax + axis * sizeof(halide_dimension_t) + offsetof(halide_dimension_t, extent)]);
    c_.test(c_.rdx, c_.rdx);
    c_.jle(done_, Generator::T_NEAR);
    c_.mov(in_frame(extent(axis)), c_.rdx);
    c_.mov(in_frame(counter(axis)), c_.rdx);
  }
}

// What a pointer moves by as an axis goes on, those within it being at their ends.
void StageCode::find_steps() {
  for (size_t i = 0; i < operands(); ++i) {
    for (int axis = rank_ - 1; axis > 1 && !is_scalar(i); --axis) {
      c_.mov(c_.rax, in_frame(step(i, axis - 1)));
      c_.imul(c_.rax, in_frame(extent(axis - 1)));
      c_.sub(in_frame(step(i, axis)), c_.rax);
    }
  }
}

void StageCode::load_kept() {
  for (const auto& [v, reg] : is_kept_) {
    const Value& value = list_.value(v);
    if (value.node == Node::kVariable) c_.mov(c_.rax, in_frame(pointer(static_cast<size_t>(value.source))));
    repeat(value.type, reg, value.node == Node::kVariable ? c_.ptr[c_.rax] : number(value.bits));
  }
}

// ---- loops

void StageCode::loops() {
  Xbyak::Label row, row_done;
  c_.L(row);
  c_.xor_(c_.ecx, c_.ecx);
  c_.mov(c_.rdx, in_frame(extent(0)));
  one_row(row_done);
  c_.L(row_done);
  for (int axis = 1; axis < rank_; ++axis) {
    for (size_t i = 0; i < operands(); ++i) go_on(i, axis);
    c_.dec(c_.qword[c_.rsp + counter(axis)]);
    c_.jnz(row, Generator::T_NEAR);
    c_.mov(c_.rax, in_frame(extent(axis)));
    c_.mov(in_frame(counter(axis)), c_.rax);
  }
}

void StageCode::compare_end() {
  c_.lea(c_.rax, c_.ptr[c_.rcx + lanes_]);
  c_.cmp(c_.rax, c_.rdx);
}

// From element rcx of a row of rdx on. Whoever has no room for one more goes to `rest`, or on.
void StageCode::whole_vectors(const Xbyak::Label& rest) {
  Xbyak::Label whole;
  compare_end();
  c_.jg(rest, Generator::T_NEAR);
  c_.L(whole);
  body();
  c_.add(c_.rcx, lanes_);
  compare_end();
  c_.jle(whole, Generator::T_NEAR);
}

bool StageCode::may_stream() const { return list_.stored().size() == 1 && list_.stored_type(0).bits * lanes_ == 8 * with_.bytes; }

// What is larger than the caches is written without being read into them before: whole vectors of memory. What is not goes on.
void StageCode::stream(const Xbyak::Label& ordinary, const Xbyak::Label& rest) {
  if (!may_stream()) return;
  Xbyak::Label aligned;
  c_.cmp(c_.qword[c_.rsp + kStreaming], 0);
  c_.je(ordinary, Generator::T_NEAR);
  c_.mov(c_.rax, row(reads()));
  c_.neg(c_.rax);
  c_.and_(c_.rax, with_.bytes - 1);
  c_.shr(c_.rax, std::countr_zero(static_cast<unsigned>(type_of(reads()).bytes())));
  c_.mov(in_frame(kHead), c_.rax);
  c_.jz(aligned, Generator::T_NEAR);
  begin_stream(ordinary);
  c_.mov(c_.rcx, in_frame(kHead));
  c_.L(aligned);
  streaming_ = true;
  whole_vectors(rest);
  streaming_ = false;
  c_.jmp(rest, Generator::T_NEAR);
}

void StageCode::go_on(size_t i, int axis) {
  if (is_scalar(i)) return;
  if (places_[i]) return c_.add(*places_[i], in_frame(step(i, axis)));
  c_.mov(c_.rax, in_frame(step(i, axis)));
  c_.add(in_frame(pointer(i)), c_.rax);
}

void StageCode::body() {
  const int n = static_cast<int>(list_.size());
  for (int v = 0; v < n; ++v)
    if (!is_kept_.contains(v)) registers_[static_cast<size_t>(v)] = kNowhere;
  spills_.assign(list_.size(), kNowhere);
  vectors_.fill(kNowhere), masks_.fill(kNowhere);
  next_spill_ = 0;
  for (now_ = 0; now_ < n; ++now_) {
    const Value& value = list_.value(now_);
    if (value.node != Node::kNumber && value.node != Node::kVariable) compute(value);
  }
  for (size_t k = 0; k < list_.stored().size(); ++k) store(k);
}

// ---- registers

// A register for value v; one whose value is used last is vacated for it. `busy_` are left alone.
int StageCode::take(int v) {
  const bool mask = is_mask(v);
  const int first = mask ? kFirstMask : 0, end = mask ? kMasks : vectors_end();
  const auto held = [&](int reg) -> int& { return mask ? masks_[static_cast<size_t>(reg)] : vectors_[static_cast<size_t>(reg)]; };
  int reg = mask ? free_mask() : free_vector();
  if (reg == kNowhere) {
    int latest = -1;
    for (int i = first; i < end; ++i) {
      const int other = held(i), last_use = list_.value(other).last_use;
      const bool busy = std::find(busy_.begin(), busy_.end(), other) != busy_.end();
      if (busy || last_use <= latest) continue;
      latest = last_use, reg = i;
    }
    if (reg == kNowhere) throw NotCovered();
    vacate(held(reg), reg);
  }
  held(reg) = v;
  return registers_[static_cast<size_t>(v)] = reg;
}

void StageCode::vacate(int v, int reg) {
  const Node node = list_.value(v).node;
  registers_[static_cast<size_t>(v)] = kNowhere;
  int& slot = spills_[static_cast<size_t>(v)];
  if (node == Node::kVariable || node == Node::kNumber || slot != kNowhere) return;
  if (next_spill_ == kMostSpills) throw NotCovered();
  slot = kSpills + 64 * next_spill_++;
  spill(v, reg, in_frame(slot));
}

// The register of a value that was computed before, or lies in memory.
int StageCode::found(int v) {
  busy_.push_back(v);
  if (registers_[static_cast<size_t>(v)] != kNowhere) return registers_[static_cast<size_t>(v)];
  const int reg = take(v), slot = spills_[static_cast<size_t>(v)];
  const Value& value = list_.value(v);
  if (slot != kNowhere) {
    reload(v, reg, in_frame(slot));
  } else if (value.node == Node::kVariable) {
    load(static_cast<size_t>(value.source), reg);
  } else if (value.type.is_bool()) {
    make_truth(reg, value.bits != 0);
  } else {
    repeat(value.type, reg, number(value.bits));
  }
  return reg;
}

void StageCode::release_dead() {
  const auto release = [&](auto& registers) {
    for (int& v : registers)
      if (v != kNowhere && list_.value(v).last_use <= now_) registers_[static_cast<size_t>(v)] = kNowhere, v = kNowhere;
  };
  release(vectors_), release(masks_);
  busy_.clear();
}

Xbyak::Xmm StageCode::vector(int reg, const ValueType& t) const {
  const int bits = t.bits * lanes_;
  return Xmm(bits > 256 ? Operand::ZMM : bits > 128 ? Operand::YMM : Operand::XMM, reg);
}

// ---- memory

// Where the operand's row begins; in rax, if it has no register of its own.
Reg64 StageCode::row(size_t i) {
  if (places_[i]) return *places_[i];
  c_.mov(c_.rax, in_frame(pointer(i)));
  return c_.rax;
}

Xbyak::Address StageCode::at(size_t i) {
  const Reg64 from = row(i);
  return is_still(i) ? c_.ptr[from] : c_.ptr[from + c_.rcx * type_of(i).bytes()];
}

void StageCode::repeat(const ValueType& t, int reg, const Xbyak::Address& from) {
  const Xmm x = vector(reg, t);
  t.bits == 64   ? c_.vpbroadcastq(x, from)
  : t.bits == 32 ? c_.vpbroadcastd(x, from)
  : t.bits == 16 ? c_.vpbroadcastw(x, from)
                 : c_.vpbroadcastb(x, from);
}

// rax: where element rcx of the operand's row is.
void StageCode::find_row_element(size_t i) {
  c_.mov(c_.rax, c_.rcx);
  c_.imul(c_.rax, in_frame(step(i, 0)));
  places_[i] ? c_.add(c_.rax, *places_[i]) : c_.add(c_.rax, in_frame(pointer(i)));
}

// Elements that lie apart, from rax on. The registers with what lies between them have no row (choose_places()).
std::array<Xbyak::Address, 4> StageCode::four_apart(size_t i) {
  c_.mov(*kOnce, in_frame(step(i, 0)));
  c_.lea(*kThrice, c_.ptr[*kOnce + *kOnce * 2]);
  return {c_.ptr[c_.rax], c_.ptr[c_.rax + *kOnce], c_.ptr[c_.rax + *kOnce * 2], c_.ptr[c_.rax + *kThrice]};
}

void StageCode::next_four() { c_.lea(c_.rax, c_.ptr[c_.rax + *kOnce * 4]); }

void StageCode::store(size_t k) {
  const ValueType t = list_.stored_type(k);
  const Xmm x = vector(found(list_.stored()[k]), t);
  const Xbyak::Address to = at(reads() + k);
  streaming_ ? c_.vmovntdq(to, x) : put(t, to, x);
  busy_.clear();
}

Xbyak::Address StageCode::number(uint64_t bits) {
  const auto [found, fresh] = numbers_.try_emplace(bits);
  return c_.ptr[c_.rip + found->second];
}

Xbyak::Address StageCode::table(const std::vector<uint64_t>& bits) {
  const auto [found, fresh] = tables_.try_emplace(bits);
  return c_.ptr[c_.rip + found->second];
}

void StageCode::write_numbers() {
  c_.align(64);
  for (auto& [bits, label] : tables_) {
    c_.L(label);
    for (const uint64_t eight : bits) c_.dq(eight);
  }
  c_.align(8);
  for (auto& [bits, label] : numbers_) {
    c_.L(label);
    c_.dq(bits);
  }
}

// ---- operations

void StageCode::compute(const Value& value) {
  Operands in{};
  for (size_t k = 0; k < in.size() && value.operands[k] >= 0; ++k) in[k] = found(value.operands[k]);
  // An operand's register may be the result's, but for what is made of several instructions.
  if (!value.type.is_bool()) release_dead();
  const int out = take(now_);
  value.type.is_bool() ? truth(value, out, in) : number_of(value, out, in);
  release_dead();
}

void StageCode::number_of(const Value& value, int out, const Operands& in) {
  constexpr uint8_t kQuietly = 8;  // "inexact" is not raised
  const Xmm to = vector(out, value.type), a = vector(in[0], value.of), b = vector(in[1], value.of);
  switch (value.node) {
    case Node::kSelect:
      return select(value, out, in);
    case Node::kConvert:
      return convert(value, out, in[0]);
    case Node::kSqrt:
      return value.type.bits == 64 ? c_.vsqrtpd(where(to), a) : c_.vsqrtps(where(to), a);
    case Node::kRound:
      return round(value.type, to, a, 0 | kQuietly);
    case Node::kFloor:
      return round(value.type, to, a, 1 | kQuietly);
    case Node::kCeil:
      return round(value.type, to, a, 2 | kQuietly);
    case Node::kTrunc:
      return round(value.type, to, a, 3 | kQuietly);
    case Node::kBitNot:
    case Node::kBitAnd:
    case Node::kBitOr:
    case Node::kBitXor:
      return bitwise(value.node, out, in);
    case Node::kShiftLeft:
    case Node::kShiftRight:
      return shift(value, to, a, b);
    default:
      return value.node == Node::kMul && !value.type.is_float() ? multiply(value, to, a, b) : arithmetic(value, to, a, b);
  }
}

// What is one instruction of two operands.
void StageCode::arithmetic(const Value& value, const Xmm& to, const Xmm& a, const Xmm& b) {
  for (const Binary& known : kBinaries) {
    if (known.node != value.node) continue;
    if (value.type.is_float()) return (c_.*known.of_float[value.type.bits == 64])(where(to), a, b);
    const OfIntegers f = known.of_integer[by_bits(value.type)];
    if (f == nullptr) throw NotCovered();
    return (c_.*f)(to, a, b);
  }
  throw NotCovered();
}

void StageCode::convert(const Value& value, int out, int in) {
  const ValueType &to = value.type, &from = value.of;
  const Xmm y = vector(out, to), x = vector(in, from);
  if (to.is_float() && from.is_float()) return to.bits == 64 ? c_.vcvtps2pd(where(y), x) : c_.vcvtpd2ps(where(y), x);
  if (from.is_float()) return from_float(value, out, in);
  if (!to.is_float()) return to.bits > from.bits ? widen(y, x, from, to) : narrow(from, to, out, in);
  if (from.bits >= 32) return to_float(from, to, out, in);
  constexpr ValueType kWider{ValueType::kInt, 32};
  widen(vector(out, kWider), x, from, kWider);
  to_float(kWider, to, out, out);
}

void StageCode::widen(const Xmm& y, const Xmm& x, const ValueType& from, const ValueType& to) {
  const bool sign = from.is_int();
  switch (from.bits * 100 + to.bits) {
    case 816:
      return sign ? c_.vpmovsxbw(y, x) : c_.vpmovzxbw(y, x);
    case 832:
      return sign ? c_.vpmovsxbd(y, x) : c_.vpmovzxbd(y, x);
    case 864:
      return sign ? c_.vpmovsxbq(y, x) : c_.vpmovzxbq(y, x);
    case 1632:
      return sign ? c_.vpmovsxwd(y, x) : c_.vpmovzxwd(y, x);
    case 1664:
      return sign ? c_.vpmovsxwq(y, x) : c_.vpmovzxwq(y, x);
    case 3264:
      return sign ? c_.vpmovsxdq(y, x) : c_.vpmovzxdq(y, x);
    default:
      throw NotCovered();
  }
}

// What the instructions call a comparison.
uint8_t StageCode::predicate(Node node, bool of_floats) {
  switch (node) {
    case Node::kEq:
      return 0;  // (of floats: ordered, quiet)
    case Node::kNe:
      return 4;  // (unordered, quiet)
    case Node::kIsNan:
      return 3;  // (quiet)
    case Node::kQuietLt:
      return 17;
    case Node::kQuietLe:
      return 18;
    case Node::kLt:
      return 1;
    case Node::kLe:
      return 2;
    case Node::kGt:
      if (of_floats) throw NotCovered();
      return 6;
    case Node::kGe:
      if (of_floats) throw NotCovered();
      return 5;
    default:
      throw NotCovered();
  }
}

}  // namespace dalsegno::halide_gen
