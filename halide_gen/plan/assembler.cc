#include "halide_gen/plan/assembler.h"

#include <HalideRuntime.h>
#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "halide_gen/plan/expressions.h"
#include "halide_gen/plan/stage_values.h"
#include "trace/fault.h"

namespace dalsegno::halide_gen {
namespace {

using Xbyak::Operand;
using Xbyak::Opmask;
using Xbyak::Reg64;
using Xbyak::Xmm;
using Generator = Xbyak::CodeGenerator;

struct NotCovered {};

// ---- values: the expressions in the order in which they are computed, each once

struct Value {
  Node node = Node::kNumber;
  ValueType type, of;  // of the first operand
  std::array<int, 3> operands{-1, -1, -1};
  int source = -1;    // kVariable: of the stage
  uint64_t bits = 0;  // kNumber
  int last_use = -1;  // number of a value, or past the end: by a store
};

uint64_t number_bits(const Expr::Data& e) {
  if (!e.type.is_float()) return static_cast<uint64_t>(e.whole);
  uint64_t bits = 0;
  if (e.type.bits == 64) {
    std::memcpy(&bits, &e.real, sizeof e.real);
  } else {
    const auto narrow = static_cast<float>(e.real);
    std::memcpy(&bits, &narrow, sizeof narrow);
  }
  return bits;
}

class StageList : StageValues {
 public:
  StageList(const KernelSpec& spec, const Stage& stage) : StageValues(spec, stage) {
    find_values();
    for (const int result : stage.results) {
      const Expr value = StageValues::stored(result);
      stored_.push_back(number_of(value));
      stored_types_.push_back(value.type());
    }
    const int end = static_cast<int>(values_.size());
    for (int i = 0; i < end; ++i)
      for (const int x : values_[static_cast<size_t>(i)].operands)
        if (x >= 0) values_[static_cast<size_t>(x)].last_use = i;
    for (const int i : stored_) values_[static_cast<size_t>(i)].last_use = end;
  }

  const std::vector<Value>& values() const { return values_; }
  const std::vector<int>& stored() const { return stored_; }  // value that each write stores
  const ValueType& stored_type(size_t k) const { return stored_types_[k]; }

 private:
  Expr source(size_t k) override { return variable(memory_type(dtype(k)), std::to_string(k)); }
  Expr bind(int, const std::string&, const Expr& value) override { return value; }

  int number_of(const Expr& e) {
    const auto known = numbers_.find(&*e);
    if (known != numbers_.end()) return known->second;
    kept_.push_back(e);
    return numbers_[&*e] = make(e);
  }

  int make(const Expr& e) {
    const bool same_bits = e->node == Node::kReinterpret || (e->node == Node::kConvert && is_alias(e->operands[0].type(), e.type()));
    if (same_bits) return number_of(e->operands[0]);
    Value v{.node = e->node, .type = e.type()};
    for (size_t k = 0; k < e->operands.size(); ++k) v.operands[k] = number_of(e->operands[k]);
    if (!e->operands.empty()) v.of = e->operands[0].type();
    if (e->node == Node::kSelect) v.of = v.type;
    if (e->node == Node::kVariable) v.source = std::stoi(e->name);
    if (e->node == Node::kNumber) v.bits = number_bits(*e);
    // What differs in sign only, or is a float or an integer of the same bits, is no other number.
    const auto key = std::tuple(v.node, static_cast<int>(v.type.kind), static_cast<int>(v.type.bits), static_cast<int>(v.of.kind),
                                static_cast<int>(v.of.bits), v.operands, v.source, v.bits);
    const auto [found, fresh] = written_.try_emplace(key, static_cast<int>(values_.size()));
    if (fresh) values_.push_back(v);
    return found->second;
  }

  static bool is_alias(const ValueType& from, const ValueType& to) {
    return from == to || (!from.is_float() && !to.is_float() && !from.is_bool() && !to.is_bool() && from.bits == to.bits);
  }

  std::vector<Value> values_;
  std::vector<int> stored_;
  std::vector<ValueType> stored_types_;
  std::map<const Expr::Data*, int> numbers_;
  std::map<std::tuple<Node, int, int, int, int, std::array<int, 3>, int, uint64_t>, int> written_;
  std::vector<Expr> kept_;  // whose addresses are keys
};

// ---- one stage as a function

// Of a frame on the stack: offsets from rsp, which is at a multiple of 64.
constexpr int kMostSpills = 64, kMostOperands = 64, kMostRank = 4, kMostStrided = 16;
constexpr int kSpills = 0;
constexpr int kPointers = kSpills + 64 * kMostSpills;
constexpr int kSteps = kPointers + 8 * kMostOperands;  // by operand, then by axis, counted from the innermost one
constexpr int kExtents = kSteps + 8 * kMostOperands * kMostRank;
constexpr int kCounters = kExtents + 8 * kMostRank;
constexpr int kOffsets = (kCounters + 8 * kMostRank + 63) / 64 * 64;  // of a vector's elements, strided operands
constexpr int kFrame = kOffsets + 64 * kMostStrided;

class StageCode : StageShape {
 public:
  StageCode(const KernelSpec& spec, const Stage& stage, int rank, Generator* to)
      : StageShape(spec, stage), list_(spec, stage), rank_(rank), c_(*to), lanes_(StageShape::lanes()) {
    if (rank_ > kMostRank || operands() > kMostOperands) throw NotCovered();
    offsets_.assign(operands(), -1);
    places_.assign(operands(), std::nullopt);
  }

  void write() {
    for (const Reg64* r : saved()) c_.push(*r);
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
      if (places_[i]) c_.mov(*places_[i], c_.ptr[c_.rsp + kPointers + 8 * static_cast<int>(i)]);
    loops();
    c_.L(done_);
    c_.xor_(c_.eax, c_.eax);
    c_.vzeroupper();
    c_.mov(c_.rsp, c_.rbp);
    for (size_t k = saved().size(); k > 0; --k) c_.pop(*saved()[k - 1]);
    c_.ret();
    write_numbers();
  }

 private:
  using Loaded = std::vector<int>;

  const std::vector<const Reg64*>& saved() const {
    static const std::vector<const Reg64*> regs = {&Xbyak::util::rbp, &Xbyak::util::rbx, &Xbyak::util::r12,
                                                   &Xbyak::util::r13, &Xbyak::util::r14, &Xbyak::util::r15};
    return regs;
  }

  ValueType type_of(size_t i) const { return memory_type(dtype(i)); }
  bool is_still(size_t i) const { return is_scalar(i) || inner(i) == Inner::kBroadcast; }
  Xbyak::Address in_frame(int offset) { return c_.ptr[c_.rsp + offset]; }
  static int pointer(size_t i) { return kPointers + 8 * static_cast<int>(i); }
  static int step(size_t i, int axis) { return kSteps + 8 * (static_cast<int>(i) * kMostRank + axis); }
  static int extent(int axis) { return kExtents + 8 * axis; }
  static int counter(int axis) { return kCounters + 8 * axis; }

  // ---- before the loops

  // Numbers of the program's and the kernel's stay in registers, if there are few of them.
  void choose_kept() {
    constexpr int kMostKept = 10;
    registers_.assign(list_.values().size(), kNowhere);
    for (size_t v = 0; v < list_.values().size(); ++v) {
      const Value& value = list_.values()[v];
      const bool number = value.node == Node::kNumber && !value.type.is_bool();
      const bool scalar = value.node == Node::kVariable && is_scalar(static_cast<size_t>(value.source));
      if ((!number && !scalar) || kept_ == kMostKept) continue;
      registers_[v] = 31 - kept_++;
      is_kept_.insert({static_cast<int>(v), registers_[v]});
    }
  }

  // The first arrays' rows begin at what general registers hold.
  void choose_places() {
    static const std::vector<const Reg64*> regs = {&Xbyak::util::rbx, &Xbyak::util::rsi, &Xbyak::util::r8,  &Xbyak::util::r9,
                                                   &Xbyak::util::r10, &Xbyak::util::r11, &Xbyak::util::r12, &Xbyak::util::r13,
                                                   &Xbyak::util::r14, &Xbyak::util::r15, &Xbyak::util::rdi};
    size_t next = 0;
    for (size_t i = 0; i < operands() && next < regs.size(); ++i)
      if (!is_scalar(i)) places_[i] = *regs[next++];
  }

  void open(size_t i) {
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

  void find_extents() {
    c_.mov(c_.rax, c_.ptr[c_.rdi + 8 * static_cast<int>(reads())]);
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
  void find_steps() {
    for (size_t i = 0; i < operands(); ++i) {
      for (int axis = rank_ - 1; axis > 1 && !is_scalar(i); --axis) {
        c_.mov(c_.rax, in_frame(step(i, axis - 1)));
        c_.imul(c_.rax, in_frame(extent(axis - 1)));
        c_.sub(in_frame(step(i, axis)), c_.rax);
      }
    }
  }

  void find_offsets(size_t i) {
    if (is_scalar(i) || inner(i) != Inner::kStrided) return;
    const int size = type_of(i).bytes();
    if (lanes_ != 8 || (size != 4 && size != 8) || strided_ == kMostStrided) throw NotCovered();
    offsets_[i] = kOffsets + 64 * strided_++;
    c_.xor_(c_.eax, c_.eax);
    for (int lane = 0; lane < lanes_; ++lane) {
      c_.mov(in_frame(offsets_[i] + 8 * lane), c_.rax);
      c_.add(c_.rax, in_frame(step(i, 0)));
    }
  }

  void load_kept() {
    for (const auto& [v, reg] : is_kept_) {
      const Value& value = list_.values()[static_cast<size_t>(v)];
      if (value.node == Node::kVariable) c_.mov(c_.rax, in_frame(pointer(static_cast<size_t>(value.source))));
      repeat(value.type, reg, value.node == Node::kVariable ? c_.ptr[c_.rax] : number(value));
    }
  }

  // ---- loops

  void loops() {
    Xbyak::Label row, whole, rest, row_done;
    c_.L(row);
    c_.xor_(c_.ecx, c_.ecx);
    c_.mov(c_.rdx, in_frame(extent(0)));
    c_.cmp(c_.rdx, lanes_);
    c_.jl(rest, Generator::T_NEAR);
    c_.L(whole);
    body(false);
    c_.add(c_.rcx, lanes_);
    c_.lea(c_.rax, c_.ptr[c_.rcx + lanes_]);
    c_.cmp(c_.rax, c_.rdx);
    c_.jle(whole, Generator::T_NEAR);
    c_.L(rest);
    c_.sub(c_.rdx, c_.rcx);
    c_.jz(row_done, Generator::T_NEAR);
    if (planted(Fault::short_rest)) c_.dec(c_.rdx);
    c_.mov(c_.rax, -1);
    c_.bzhi(c_.rax, c_.rax, c_.rdx);
    c_.kmovq(c_.k1, c_.rax);
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

  void go_on(size_t i, int axis) {
    if (is_scalar(i)) return;
    if (places_[i]) return c_.add(*places_[i], in_frame(step(i, axis)));
    c_.mov(c_.rax, in_frame(step(i, axis)));
    c_.add(in_frame(pointer(i)), c_.rax);
  }

  // ---- registers

  static constexpr int kNowhere = -1;
  static constexpr int kMasks = 8;  // k1 says which elements there are

  void body(bool masked) {
    masked_ = masked;
    const size_t n = list_.values().size();
    for (size_t v = 0; v < n; ++v)
      if (!is_kept_.contains(static_cast<int>(v))) registers_[v] = kNowhere;
    spills_.assign(n, kNowhere);
    vectors_.fill(kNowhere), masks_.fill(kNowhere);
    next_spill_ = 0;
    for (now_ = 0; now_ < static_cast<int>(n); ++now_) {
      const Value& value = list_.values()[static_cast<size_t>(now_)];
      if (value.node != Node::kNumber && value.node != Node::kVariable) compute(value);
    }
    for (size_t k = 0; k < list_.stored().size(); ++k) store(k);
  }

  bool is_mask(int v) const { return list_.values()[static_cast<size_t>(v)].type.is_bool(); }
  template <class Registers>
  static int free_one(const Registers& registers, int first, int end) {
    for (int i = first; i < end; ++i)
      if (registers[static_cast<size_t>(i)] == kNowhere) return i;
    return kNowhere;
  }

  // A register for value v; one whose value is used last is vacated for it. `busy_` are left alone.
  int take(int v) {
    const bool mask = is_mask(v);
    const int first = mask ? 2 : 0, end = mask ? kMasks : 32 - kept_;
    const auto held = [&](int reg) -> int& { return mask ? masks_[static_cast<size_t>(reg)] : vectors_[static_cast<size_t>(reg)]; };
    int reg = mask ? free_one(masks_, first, end) : free_one(vectors_, first, end);
    if (reg == kNowhere) {
      int latest = -1;
      for (int i = first; i < end; ++i) {
        const int other = held(i);
        const bool busy = std::find(busy_.begin(), busy_.end(), other) != busy_.end();
        if (busy || list_.values()[static_cast<size_t>(other)].last_use <= latest) continue;
        latest = list_.values()[static_cast<size_t>(other)].last_use, reg = i;
      }
      if (reg == kNowhere) throw NotCovered();
      vacate(held(reg), reg);
    }
    held(reg) = v;
    return registers_[static_cast<size_t>(v)] = reg;
  }

  void vacate(int v, int reg) {
    const Value& value = list_.values()[static_cast<size_t>(v)];
    registers_[static_cast<size_t>(v)] = kNowhere;
    int& slot = spills_[static_cast<size_t>(v)];
    if (value.node == Node::kVariable || value.node == Node::kNumber || slot != kNowhere) return;
    if (next_spill_ == kMostSpills) throw NotCovered();
    slot = kSpills + 64 * next_spill_++;
    if (is_mask(v)) return c_.kmovq(in_frame(slot), Opmask(reg));
    c_.vmovdqu64(in_frame(slot), Xbyak::Zmm(reg));
  }

  // The register of a value that was computed before, or lies in memory.
  int found(int v) {
    int reg = registers_[static_cast<size_t>(v)];
    if (reg != kNowhere) return busy_.push_back(v), reg;
    reg = take(v);
    busy_.push_back(v);
    const Value& value = list_.values()[static_cast<size_t>(v)];
    const int slot = spills_[static_cast<size_t>(v)];
    if (slot != kNowhere) {
      is_mask(v) ? c_.kmovq(Opmask(reg), in_frame(slot)) : c_.vmovdqu64(Xbyak::Zmm(reg), in_frame(slot));
    } else if (value.node == Node::kNumber) {
      if (!is_mask(v)) {
        repeat(value.type, reg, number(value));
      } else {
        value.bits != 0 ? c_.kxnorq(Opmask(reg), Opmask(reg), Opmask(reg)) : c_.kxorq(Opmask(reg), Opmask(reg), Opmask(reg));
      }
    } else {
      load(static_cast<size_t>(value.source), reg);
    }
    return reg;
  }

  void release_dead() {
    const auto release = [&](auto& registers) {
      for (int& v : registers)
        if (v != kNowhere && list_.values()[static_cast<size_t>(v)].last_use <= now_)
          registers_[static_cast<size_t>(v)] = kNowhere, v = kNowhere;
    };
    release(vectors_), release(masks_);
    busy_.clear();
  }

  Xmm vector(int reg, const ValueType& t) const {
    const int bits = t.bits * lanes_;
    return Xmm(bits > 256 ? Operand::ZMM : bits > 128 ? Operand::YMM : Operand::XMM, reg);
  }
  // Where elements are: elsewhere nothing raises a flag.
  Xmm where(const Xmm& x) const { return masked_ ? x | Opmask(1) | Xbyak::EvexModifierZero() : x; }
  Opmask where(const Opmask& k) const { return masked_ ? k | Opmask(1) : k; }

  // ---- memory

  Xbyak::Address at(size_t i) {
    Reg64 from = c_.rax;
    if (places_[i]) {
      from = *places_[i];
    } else {
      c_.mov(c_.rax, in_frame(pointer(i)));
    }
    return is_still(i) ? c_.ptr[from] : c_.ptr[from + c_.rcx * type_of(i).bytes()];
  }

  void repeat(const ValueType& t, int reg, const Xbyak::Address& from) {
    const Xmm x = vector(reg, t);
    t.bits == 64   ? c_.vpbroadcastq(x, from)
    : t.bits == 32 ? c_.vpbroadcastd(x, from)
    : t.bits == 16 ? c_.vpbroadcastw(x, from)
                   : c_.vpbroadcastb(x, from);
  }

  void load(size_t i, int reg) {
    const ValueType t = type_of(i);
    if (is_still(i)) return repeat(t, reg, at(i));
    if (inner(i) == Inner::kStrided) return gather(i, reg);
    const Xmm x = vector(reg, t);
    const Xbyak::Address from = at(i);
    if (!masked_ && t.bits * lanes_ < 128) return c_.vmovq(x, from);
    if (!masked_) return c_.vmovdqu64(x, from);
    const Xmm there = where(x);
    t.bits == 64   ? c_.vmovdqu64(there, from)
    : t.bits == 32 ? c_.vmovdqu32(there, from)
    : t.bits == 16 ? c_.vmovdqu16(there, from)
                   : c_.vmovdqu8(there, from);
  }

  void gather(size_t i, int reg) {
    const int offsets = free_one(vectors_, 0, 32 - kept_), mask = free_one(masks_, 2, kMasks);
    if (offsets == kNowhere || mask == kNowhere) throw NotCovered();
    const Xmm x = vector(reg, type_of(i));
    const Opmask k(mask);
    c_.vmovdqu64(Xbyak::Zmm(offsets), in_frame(offsets_[i]));
    c_.mov(c_.rax, c_.rcx);
    c_.imul(c_.rax, in_frame(step(i, 0)));
    places_[i] ? c_.add(c_.rax, *places_[i]) : c_.add(c_.rax, in_frame(pointer(i)));
    masked_ ? c_.kmovq(k, c_.k1) : c_.kxnorq(k, k, k);
    c_.vpxorq(Xbyak::Zmm(reg), Xbyak::Zmm(reg), Xbyak::Zmm(reg));
    const Xbyak::Address from = c_.ptr[c_.rax + Xbyak::Zmm(offsets)];
    type_of(i).bits == 64 ? c_.vpgatherqq(Xbyak::Zmm(reg) | k, from) : c_.vpgatherqd(Xbyak::Ymm(x.getIdx()) | k, from);
  }

  void store(size_t k) {
    const size_t i = reads() + k;
    const ValueType t = list_.stored_type(k);
    const Xmm x = vector(found(list_.stored()[k]), t);
    Xbyak::Address to = at(i);
    if (!masked_) {
      t.bits* lanes_ < 128 ? c_.vmovq(to, x) : c_.vmovdqu64(to, x);
    } else {
      to = to | Opmask(1);
      t.bits == 64 ? c_.vmovdqu64(to, x) : t.bits == 32 ? c_.vmovdqu32(to, x) : t.bits == 16 ? c_.vmovdqu16(to, x) : c_.vmovdqu8(to, x);
    }
    busy_.clear();
  }

  Xbyak::Address number(const Value& value) {
    const auto [found, fresh] = numbers_.try_emplace(value.bits);
    return c_.ptr[c_.rip + found->second];
  }

  void write_numbers() {
    c_.align(8);
    for (auto& [bits, label] : numbers_) {
      c_.L(label);
      c_.dq(bits);
    }
  }

  // ---- operations

  using OfFloats = void (Generator::*)(const Xmm&, const Operand&, const Operand&);
  using OfIntegers = void (Generator::*)(const Xmm&, const Xmm&, const Operand&);
  // By kind and by bits: 8, 16, 32, 64; null: there is no such instruction.
  struct Binary {
    Node node;
    OfFloats of_float[2];
    OfIntegers of_integer[4];
  };

  static const std::vector<Binary>& binaries() {
    using G = Generator;
    static const std::vector<Binary> table = {
        {Node::kAdd, {&G::vaddps, &G::vaddpd}, {&G::vpaddb, &G::vpaddw, &G::vpaddd, &G::vpaddq}},
        {Node::kSub, {&G::vsubps, &G::vsubpd}, {&G::vpsubb, &G::vpsubw, &G::vpsubd, &G::vpsubq}},
        {Node::kMul, {&G::vmulps, &G::vmulpd}, {nullptr, &G::vpmullw, &G::vpmulld, &G::vpmullq}},
        {Node::kDiv, {&G::vdivps, &G::vdivpd}, {}},
    };
    return table;
  }

  static int by_bits(const ValueType& t) { return t.bits == 8 ? 0 : t.bits == 16 ? 1 : t.bits == 32 ? 2 : 3; }

  void compute(const Value& value) {
    std::array<int, 3> in{};
    for (size_t k = 0; k < in.size() && value.operands[k] >= 0; ++k) in[k] = found(value.operands[k]);
    // An operand's register may be the result's, but for what is made of several instructions.
    if (!value.type.is_bool()) release_dead();
    const int out = take(now_);
    value.type.is_bool() ? truth(value, Opmask(out), in) : number_of(value, out, in);
    release_dead();
  }

  void number_of(const Value& value, int out, const std::array<int, 3>& in) {
    const Xmm to = vector(out, value.type), a = vector(in[0], value.of), b = vector(in[1], value.of);
    switch (value.node) {
      case Node::kSelect:
        return select(value, out, in);
      case Node::kConvert:
        return convert(value, out, in[0]);
      case Node::kSqrt:
        return value.type.bits == 64 ? c_.vsqrtpd(where(to), a) : c_.vsqrtps(where(to), a);
      case Node::kFloor:
      case Node::kCeil:
      case Node::kTrunc:
      case Node::kRound:
        return round(value, to, a);
      case Node::kBitNot:
        return c_.vpternlogq(wide(out), wide(in[0]), wide(in[0]), 0x55);
      case Node::kBitAnd:
        return c_.vpandq(wide(out), wide(in[0]), wide(in[1]));
      case Node::kBitOr:
        return c_.vporq(wide(out), wide(in[0]), wide(in[1]));
      case Node::kBitXor:
        return c_.vpxorq(wide(out), wide(in[0]), wide(in[1]));
      case Node::kShiftLeft:
      case Node::kShiftRight:
        return shift(value, to, a, b);
      default:
        break;
    }
    if (value.node == Node::kMul && value.type.bits == 8) return multiply_bytes(to, a, b);
    for (const Binary& known : binaries()) {
      if (known.node != value.node) continue;
      if (value.type.is_float()) return (c_.*known.of_float[value.type.bits == 64])(where(to), a, b);
      const OfIntegers f = known.of_integer[by_bits(value.type)];
      if (f == nullptr) throw NotCovered();
      return (c_.*f)(to, a, b);
    }
    throw NotCovered();
  }

  // Those at even places and those at odd ones, as the low bytes of products of 16 bits.
  void multiply_bytes(const Xmm& to, const Xmm& a, const Xmm& b) {
    const auto other = [&](int from) {  // than the operands', which are read twice
      while ((from = free_one(vectors_, from, 32 - kept_)) != kNowhere && (from == a.getIdx() || from == b.getIdx())) ++from;
      return from;
    };
    const int first = other(0), second = first == kNowhere ? kNowhere : other(first + 1);
    const int odd = free_one(masks_, 2, kMasks);
    if (first == kNowhere || second == kNowhere || odd == kNowhere) throw NotCovered();
    const Xmm x = vector(first, {ValueType::kUint, 8}), y = vector(second, {ValueType::kUint, 8});
    c_.vpsrlw(x, a, 8);
    c_.vpsrlw(y, b, 8);
    c_.vpmullw(x, x, y);
    c_.vpsllw(x, x, 8);
    c_.vpmullw(to, a, b);
    c_.mov(c_.rax, 0xaaaaaaaaaaaaaaaa);
    c_.kmovq(Opmask(odd), c_.rax);
    c_.vmovdqu8(to | Opmask(odd), x);
  }

  static Xbyak::Zmm wide(int reg) { return Xbyak::Zmm(reg); }

  void round(const Value& value, const Xmm& to, const Xmm& x) {
    constexpr uint8_t kQuietly = 8;  // "inexact" is not raised
    const uint8_t how = value.node == Node::kFloor ? 1 : value.node == Node::kCeil ? 2 : value.node == Node::kTrunc ? 3 : 0;
    value.type.bits == 64 ? c_.vrndscalepd(where(to), x, how | kQuietly) : c_.vrndscaleps(where(to), x, how | kQuietly);
  }

  void shift(const Value& value, const Xmm& to, const Xmm& x, const Xmm& by) {
    const bool left = value.node == Node::kShiftLeft, sign = value.type.is_int();
    switch (value.type.bits) {
      case 16:
        return left ? c_.vpsllvw(to, x, by) : sign ? c_.vpsravw(to, x, by) : c_.vpsrlvw(to, x, by);
      case 32:
        return left ? c_.vpsllvd(to, x, by) : sign ? c_.vpsravd(to, x, by) : c_.vpsrlvd(to, x, by);
      case 64:
        return left ? c_.vpsllvq(to, x, by) : sign ? c_.vpsravq(to, x, by) : c_.vpsrlvq(to, x, by);
      default:
        throw NotCovered();
    }
  }

  void select(const Value& value, int out, const std::array<int, 3>& in) {
    const Xmm to = vector(out, value.type) | Opmask(in[0]), yes = vector(in[1], value.type), no = vector(in[2], value.type);
    switch (value.type.bits) {
      case 64:
        return c_.vpblendmq(to, no, yes);
      case 32:
        return c_.vpblendmd(to, no, yes);
      case 16:
        return c_.vpblendmw(to, no, yes);
      default:
        return c_.vpblendmb(to, no, yes);
    }
  }

  void convert(const Value& value, int out, int in) {
    const ValueType &to = value.type, &from = value.of;
    const Xmm y = where(vector(out, to)), x = vector(in, from);
    if (to.is_float() && from.is_float()) return to.bits == 64 ? c_.vcvtps2pd(y, x) : c_.vcvtpd2ps(y, x);
    if (to.is_float()) return to_float(value, out, in);
    if (from.is_float()) return from_float(value, y, x);
    to.bits > from.bits ? widen(vector(out, to), x, from, to) : narrow(vector(out, to), x, from, to);
  }

  void to_float(const Value& value, int out, int in) {
    ValueType from = value.of;
    if (from.bits < 32) {
      const ValueType wider{ValueType::kInt, 32};
      widen(vector(out, wider), vector(in, from), from, wider);
      from = wider, in = out;
    }
    const Xmm y = where(vector(out, value.type)), x = vector(in, from);
    if (value.type.bits == 64 && from.bits == 64) return from.is_int() ? c_.vcvtqq2pd(y, x) : c_.vcvtuqq2pd(y, x);
    if (value.type.bits == 64) return from.is_int() ? c_.vcvtdq2pd(y, x) : c_.vcvtudq2pd(y, x);
    if (from.bits == 64) return from.is_int() ? c_.vcvtqq2ps(y, x) : c_.vcvtuqq2ps(y, x);
    from.is_int() ? c_.vcvtdq2ps(y, x) : c_.vcvtudq2ps(y, x);
  }

  void from_float(const Value& value, const Xmm& y, const Xmm& x) {
    const bool sign = value.type.is_int(), wide_float = value.of.bits == 64;
    if (value.type.bits == 64) {
      if (wide_float) return sign ? c_.vcvttpd2qq(y, x) : c_.vcvttpd2uqq(y, x);
      return sign ? c_.vcvttps2qq(y, x) : c_.vcvttps2uqq(y, x);
    }
    if (value.type.bits != 32) throw NotCovered();
    if (wide_float) return sign ? c_.vcvttpd2dq(y, x) : c_.vcvttpd2udq(y, x);
    sign ? c_.vcvttps2dq(y, x) : c_.vcvttps2udq(y, x);
  }

  void widen(const Xmm& y, const Xmm& x, const ValueType& from, const ValueType& to) {
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

  void narrow(const Xmm& y, const Xmm& x, const ValueType& from, const ValueType& to) {
    switch (from.bits * 100 + to.bits) {
      case 6432:
        return c_.vpmovqd(y, x);
      case 6416:
        return c_.vpmovqw(y, x);
      case 6408:
        return c_.vpmovqb(y, x);
      case 3216:
        return c_.vpmovdw(y, x);
      case 3208:
        return c_.vpmovdb(y, x);
      case 1608:
        return c_.vpmovwb(y, x);
      default:
        throw NotCovered();
    }
  }

  // ---- truth values: bits of a mask register

  void truth(const Value& value, const Opmask& k, const std::array<int, 3>& in) {
    switch (value.node) {
      case Node::kAnd:
        return c_.kandq(k, Opmask(in[0]), Opmask(in[1]));
      case Node::kOr:
        return c_.korq(k, Opmask(in[0]), Opmask(in[1]));
      case Node::kNot:
        return c_.knotq(k, Opmask(in[0]));
      case Node::kSelect:
        return select_truth(k, in);
      default:
        return compare(value, k, in);
    }
  }

  void select_truth(const Opmask& k, const std::array<int, 3>& in) {
    const int other = free_one(masks_, 2, kMasks);
    if (other == kNowhere) throw NotCovered();
    c_.kandnq(k, Opmask(in[0]), Opmask(in[2]));
    c_.kandq(Opmask(other), Opmask(in[0]), Opmask(in[1]));
    c_.korq(k, k, Opmask(other));
  }

  // What the instructions call it.
  static uint8_t predicate(Node node, bool of_floats) {
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

  void compare(const Value& value, const Opmask& k, const std::array<int, 3>& in) {
    const ValueType& t = value.of;
    if (t.is_bool() || value.node == Node::kConvert) throw NotCovered();
    const uint8_t how = predicate(value.node, t.is_float());
    const Xmm a = vector(in[0], t), b = vector(value.node == Node::kIsNan ? in[0] : in[1], t);
    const Opmask to = where(k);
    if (t.is_float()) return t.bits == 64 ? c_.vcmppd(to, a, b, how) : c_.vcmpps(to, a, b, how);
    const bool sign = t.is_int();
    switch (t.bits) {
      case 64:
        return sign ? c_.vpcmpq(to, a, b, how) : c_.vpcmpuq(to, a, b, how);
      case 32:
        return sign ? c_.vpcmpd(to, a, b, how) : c_.vpcmpud(to, a, b, how);
      case 16:
        return sign ? c_.vpcmpw(to, a, b, how) : c_.vpcmpuw(to, a, b, how);
      default:
        return sign ? c_.vpcmpb(to, a, b, how) : c_.vpcmpub(to, a, b, how);
    }
  }

  const StageList list_;
  const int rank_;
  Generator& c_;
  const int lanes_;
  Xbyak::Label done_;
  std::vector<std::optional<Reg64>> places_;  // of arrays' rows
  std::vector<int> offsets_;                  // strided operands: in the frame
  int strided_ = 0;
  std::map<int, int> is_kept_;  // values that stay in registers, and these
  int kept_ = 0;
  std::map<uint64_t, Xbyak::Label> numbers_;

  bool masked_ = false;
  int now_ = 0;  // the value that is computed
  std::vector<int> registers_, spills_;
  std::array<int, 32> vectors_{};  // whose value each register holds
  std::array<int, kMasks> masks_{};
  Loaded busy_;  // operands of what is being computed
  int next_spill_ = 0;
};

class Assembled final : public AssembledCode {
 public:
  Assembled(const KernelSpec& spec, const Plan& plan) : generator_(4096, Xbyak::AutoGrow) {
    std::vector<size_t> begins;
    for (const Stage& stage : plan.stages) {
      generator_.align(64);
      begins.push_back(generator_.getSize());
      if (stage.loop_op < 0) StageCode(spec, stage, plan.tile == 0 ? spec.rank : 1, &generator_).write();
    }
    generator_.ready(Generator::PROTECT_RE);
    for (size_t i = 0; i < begins.size(); ++i)
      stages_.push_back(plan.stages[i].loop_op < 0 ? reinterpret_cast<Entry>(const_cast<uint8_t*>(generator_.getCode()) + begins[i])
                                                   : nullptr);
  }

  int (*stage(size_t i) const)(void**) override { return stages_[i]; }

 private:
  using Entry = int (*)(void**);
  Generator generator_;
  std::vector<Entry> stages_;
};

}  // namespace

bool processor_suits_assembler() {
  using Xbyak::util::Cpu;
  static const bool suits = [] {
    const Cpu cpu;
    return cpu.has(Cpu::tAVX512F) && cpu.has(Cpu::tAVX512VL) && cpu.has(Cpu::tAVX512BW) && cpu.has(Cpu::tAVX512DQ) && cpu.has(Cpu::tBMI2);
  }();
  return suits;
}

std::shared_ptr<const AssembledCode> assemble(const KernelSpec& spec, const Plan& plan) {
  if (!processor_suits_assembler()) return nullptr;
  try {
    return std::make_shared<Assembled>(spec, plan);
  } catch (const NotCovered&) {
    return nullptr;
  } catch (const std::exception&) {  // no memory, or none for code
    return nullptr;
  }
}

}  // namespace dalsegno::halide_gen
