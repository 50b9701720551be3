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
using Xbyak::Zmm;
using Generator = Xbyak::CodeGenerator;
using namespace frame;

}  // namespace

StageCode::StageCode(const KernelSpec& spec, const Stage& stage, int rank, Generator* to)
    : StageShape(spec, stage), list_(spec, stage), rank_(rank), c_(*to), lanes_(StageShape::lanes()) {
  if (rank_ > kMostRank || operands() > kMostOperands) throw NotCovered();
  offsets_.assign(operands(), -1);
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
  constexpr int kMostKept = 10;
  registers_.assign(list_.size(), kNowhere);
  for (int v = 0; v < static_cast<int>(list_.size()); ++v) {
    const Value& value = list_.value(v);
    const bool number = value.node == Node::kNumber && !value.type.is_bool();
    const bool scalar = value.node == Node::kVariable && is_scalar(static_cast<size_t>(value.source));
    if ((!number && !scalar) || kept_ == kMostKept) continue;
    registers_[static_cast<size_t>(v)] = is_kept_[v] = 31 - kept_++;
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

void StageCode::find_offsets(size_t i) {
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

void StageCode::load_kept() {
  for (const auto& [v, reg] : is_kept_) {
    const Value& value = list_.value(v);
    if (value.node == Node::kVariable) c_.mov(c_.rax, in_frame(pointer(static_cast<size_t>(value.source))));
    repeat(value.type, reg, value.node == Node::kVariable ? c_.ptr[c_.rax] : number(value.bits));
  }
}

// ---- loops

void StageCode::loops() {
  Xbyak::Label row, ordinary, rest, row_done;
  c_.L(row);
  c_.xor_(c_.ecx, c_.ecx);
  c_.mov(c_.rdx, in_frame(extent(0)));
  if (may_stream()) stream(ordinary, rest);
  c_.L(ordinary);
  whole_vectors(rest);
  c_.L(rest);
  c_.sub(c_.rdx, c_.rcx);
  c_.jz(row_done, Generator::T_NEAR);
  if (planted(Fault::short_rest)) c_.dec(c_.rdx);
  mask_first(c_.rdx);
  body(true);
  c_.L(row_done);
  for (int axis = 1; axis < rank_; ++axis) {
    for (size_t i = 0; i < operands(); ++i) go_on(i, axis);
    c_.dec(c_.qword[c_.rsp + counter(axis)]);
    c_.jnz(row, Generator::T_NEAR);
    c_.mov(c_.rax, in_frame(extent(axis)));
    c_.mov(in_frame(counter(axis)), c_.rax);
  }
}

// From element rcx of a row of rdx on. Whoever has no room for one more goes to `rest`, or on.
void StageCode::whole_vectors(const Xbyak::Label& rest) {
  Xbyak::Label whole;
  const auto compare_end = [&] { c_.lea(c_.rax, c_.ptr[c_.rcx + lanes_]), c_.cmp(c_.rax, c_.rdx); };
  compare_end();
  c_.jg(rest, Generator::T_NEAR);
  c_.L(whole);
  body(false);
  c_.add(c_.rcx, lanes_);
  compare_end();
  c_.jle(whole, Generator::T_NEAR);
}

void StageCode::mask_first(const Reg64& count) {
  c_.mov(c_.rax, -1);
  c_.bzhi(c_.rax, c_.rax, count);
  c_.kmovq(c_.k1, c_.rax);
}

bool StageCode::may_stream() const { return list_.stored().size() == 1 && list_.stored_type(0).bits * lanes_ == 512; }

// What is larger than the caches is written without being read into them before: whole vectors of memory, and what comes before the first
// one under a mask.
void StageCode::stream(const Xbyak::Label& ordinary, const Xbyak::Label& rest) {
  Xbyak::Label aligned;
  c_.cmp(c_.qword[c_.rsp + kStreaming], 0);
  c_.je(ordinary, Generator::T_NEAR);
  c_.mov(c_.rax, row(reads()));
  c_.neg(c_.rax);
  c_.and_(c_.rax, 63);
  c_.shr(c_.rax, std::countr_zero(static_cast<unsigned>(type_of(reads()).bytes())));
  c_.mov(in_frame(kHead), c_.rax);
  c_.jz(aligned, Generator::T_NEAR);
  c_.cmp(c_.rax, c_.rdx);
  c_.jge(ordinary, Generator::T_NEAR);
  c_.mov(c_.rcx, c_.rax);
  mask_first(c_.rcx);
  c_.xor_(c_.ecx, c_.ecx);
  body(true);
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

void StageCode::body(bool masked) {
  masked_ = masked;
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
  if (is_mask(v)) return c_.kmovq(in_frame(slot), Opmask(reg));
  c_.vmovdqu64(in_frame(slot), Zmm(reg));
}

// The register of a value that was computed before, or lies in memory.
int StageCode::found(int v) {
  busy_.push_back(v);
  if (registers_[static_cast<size_t>(v)] != kNowhere) return registers_[static_cast<size_t>(v)];
  const int reg = take(v), slot = spills_[static_cast<size_t>(v)];
  const Value& value = list_.value(v);
  const Opmask k(reg);  // of a truth value
  if (slot != kNowhere) {
    is_mask(v) ? c_.kmovq(k, in_frame(slot)) : c_.vmovdqu64(Zmm(reg), in_frame(slot));
  } else if (value.node == Node::kVariable) {
    load(static_cast<size_t>(value.source), reg);
  } else if (is_mask(v)) {
    value.bits != 0 ? c_.kxnorq(k, k, k) : c_.kxorq(k, k, k);
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

}  // namespace dalsegno::halide_gen
