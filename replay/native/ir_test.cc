// Regions made by hand, as text, and as code that runs against a reference that does one instruction after the other.
// The library is llvmlite's, of the environment that the tests were built in.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "replay/native/llvm.h"
#include "replay/native/object_image.h"
#include "replay/native/region.h"
#include "trace/trace.h"

namespace dalsegno::native {
namespace {

constexpr int32_t kI = 0, kN = 1, kT = 2, kNext = 3, kTruth = 4, kSum = 5, kOne = 6, kX = 7, kProduct = 8, kRegisters = 16;
constexpr int kLess = 0;  // Py_LT
using File = std::array<Register, kRegisters>;

// ---- a loop: while i < n: t = t + i; x = x * x; i = i + 1 ------------------------------------------------------------------------

Instr binary(BinaryOp op, Rep rep, int32_t dst, int32_t a, int32_t b) {
  Instr in;
  in.what = Do::kBinary;
  in.rep = in.to = rep;
  in.imm = static_cast<int32_t>(op);
  in.dst = dst, in.a = a, in.b = b;
  return in;
}

Region counting() {
  Region region;
  Block& block = region.blocks.emplace_back();
  block.constants[kOne] = {1};
  Instr less;
  less.what = Do::kGuardedCompare;
  less.rep = Rep::kInt;
  less.imm = kLess, less.n = 1;
  less.dst = kTruth, less.a = kI, less.b = kN;
  Instr back;
  back.what = Do::kJump;
  back.moves = {{kSum, kT, Rep::kInt}, {kNext, kI, Rep::kInt}, {kProduct, kX, Rep::kFloat}};
  block.instrs = {less, binary(BinaryOp::add, Rep::kInt, kSum, kT, kI), binary(BinaryOp::multiply, Rep::kFloat, kProduct, kX, kX),
                  binary(BinaryOp::add, Rep::kInt, kNext, kI, kOne), back};
  return region;
}

File file(int64_t i, int64_t n, int64_t t, double x) {
  File r{};
  r[kI].i = i, r[kN].i = n, r[kT].i = t, r[kX].f = x, r[kOne].i = 1;
  return r;
}

// Does instructions from this one on, until one leaves: its number.
int32_t reference(const Region& region, File& r, int32_t from) {
  const std::vector<Instr>& instrs = region.blocks[0].instrs;
  for (int32_t k = from;; k = (k + 1) % static_cast<int32_t>(instrs.size())) {
    const Instr& in = instrs[static_cast<size_t>(k)];
    if (in.what == Do::kGuardedCompare) {
      r[static_cast<size_t>(in.dst)].i = r[static_cast<size_t>(in.a)].i < r[static_cast<size_t>(in.b)].i;
      if (!r[static_cast<size_t>(in.dst)].i) return k;
    } else if (in.what == Do::kJump) {
      const File before = r;
      for (const Move& move : in.moves) r[static_cast<size_t>(move.to)] = before[static_cast<size_t>(move.from)];
    } else if (in.rep == Rep::kFloat) {
      r[static_cast<size_t>(in.dst)].f = r[static_cast<size_t>(in.a)].f * r[static_cast<size_t>(in.b)].f;
    } else if (__builtin_add_overflow(r[static_cast<size_t>(in.a)].i, r[static_cast<size_t>(in.b)].i, &r[static_cast<size_t>(in.dst)].i)) {
      return k;
    }
  }
}

// ---- compiling -------------------------------------------------------------------------------------------------------------------

void* library() {
  static void* opened = [] {
    void* l = dlopen(DALSEGNO_LLVMLITE, RTLD_NOW | RTLD_LOCAL);
    if (!l) return l;
    for (const char* name : {"LLVMPY_InitializeNativeTarget", "LLVMPY_InitializeNativeAsmPrinter"})
      reinterpret_cast<int (*)()>(dlsym(l, name))();
    return l;
  }();
  return opened;
}

Function loaded(const std::string& object) {
  static auto* code = new std::vector<std::unique_ptr<ObjectImage>>;  // stays loaded
  std::vector<void*> addresses;
  std::unique_ptr<ObjectImage> image = link_object(object, std::vector<std::string>{"f"}, &addresses);
  EXPECT_TRUE(image);
  if (!image) return nullptr;
  code->push_back(std::move(image));
  return reinterpret_cast<Function>(addresses[0]);
}

Function compiled(const Region& region) {
  std::string object, error;
  const bool ok = library() && compile(library(), to_ir(region, {}, "f"), Output::kObject, Effort::kQuick, 1, "", &object, &error) &&
                  compile(library(), to_ir(region, {}, "f"), Output::kObject, Effort::kFull, 0, kSixteenRegisters, &object, &error);
  EXPECT_TRUE(ok) << error;
  return ok ? loaded(object) : nullptr;
}

// Runs it with nothing around but this: what it was asked for is counted.
struct World {
  unsigned char breaker = 0;
  bool unsettled = false;
  int scalars = 0;
  const void* addresses[kAddresses] = {};

  int32_t run(Function function, File& r, Frame frame = {}) {
    frame.breaker = &breaker;
    frame.unsettled = &unsettled;
    frame.addresses = addresses;
    frame.extra = this;
    frame.scalar = [](Frame* f, int32_t, int64_t a, int64_t b, int64_t* out) {
      ++static_cast<World*>(f->extra)->scalars;
      double x, y;
      std::memcpy(&x, &a, sizeof x), std::memcpy(&y, &b, sizeof y);
      x = x * y;
      std::memcpy(out, &x, sizeof x);
      return int32_t{1};
    };
    return function(r.data(), &frame);
  }
};

void expect_variables(const File& is, const File& wanted) {
  for (int32_t reg : {kI, kT, kX}) EXPECT_EQ(is[static_cast<size_t>(reg)].i, wanted[static_cast<size_t>(reg)].i) << reg;
}

// ---- text ------------------------------------------------------------------------------------------------------------------------

TEST(Text, IsTheSameEachTime) { EXPECT_EQ(to_ir(counting(), {}, "f"), to_ir(counting(), {}, "f")); }

TEST(Text, AllowsNoOtherBits) {
  const std::string text = to_ir(counting(), {}, "f");
  for (const char* flag : {"fast", "contract", "reassoc", "nnan", "ninf", "nsz", "arcp", "afn", "fmuladd"})
    EXPECT_EQ(text.find(flag), std::string::npos) << flag;
}

TEST(Text, ThereIsNoneWhereARegisterIsOfTwoKinds) {
  Region region = counting();
  region.blocks[0].instrs[1].rep = region.blocks[0].instrs[1].to = Rep::kFloat;
  EXPECT_EQ(to_ir(region, {}, "f"), "");
}

TEST(Text, WhatIsNoTextIsRefused) {
  std::string object, error;
  ASSERT_NE(library(), nullptr) << dlerror();
  EXPECT_FALSE(compile(library(), "no such thing", Output::kObject, Effort::kQuick, 1, "", &object, &error));
  EXPECT_NE(error, "");
}

TEST(Code, HasNoWholeVectors) {
  std::string text, error;
  ASSERT_TRUE(library() &&
              compile(library(), to_ir(counting(), {}, "f"), Output::kAssembly, Effort::kFull, 0, kSixteenRegisters, &text, &error))
      << error;
  ASSERT_NE(text.find("aside"), std::string::npos);
  for (const char* whole : {"ymm", "zmm", "xmm16", "vzeroupper"}) EXPECT_EQ(text.find(whole), std::string::npos) << whole;
}

// ---- code ------------------------------------------------------------------------------------------------------------------------

TEST(Code, LeavesWhereTheGuardFails) {
  const Region region = counting();
  File r = file(0, 100, 5, 1.0000001), wanted = r;
  World world;
  EXPECT_EQ(world.run(compiled(region), r), reference(region, wanted, 0));
  expect_variables(r, wanted);
}

TEST(Code, LeavesBeforeAnIntOverflows) {
  const Region region = counting();
  File r = file(0, 100, std::numeric_limits<int64_t>::max() - 40, 0.5), wanted = r;
  World world;
  EXPECT_EQ(world.run(compiled(region), r), 1);
  EXPECT_EQ(reference(region, wanted, 0), 1);
  expect_variables(r, wanted);
}

TEST(Code, NaNIsMadeByTheStepsOwnCode) {
  const Function function = compiled(counting());
  World world;
  File r = file(0, 5, 0, -std::nan(""));
  world.run(function, r);
  EXPECT_EQ(world.scalars, 5);
  r = file(0, 5, 0, std::numeric_limits<double>::infinity());
  world.run(function, r);
  EXPECT_EQ(world.scalars, 5);
}

TEST(Code, LooksAtWhatWaitsAtEachBackEdge) {
  const Function function = compiled(counting());
  World world;
  world.breaker = 1;
  File r = file(0, 100, 5, 2.0), wanted = r;
  EXPECT_EQ(world.run(function, r), 0) << "the next turn is the machine's";
  wanted[kI].i = 1, wanted[kX].f = 4.0;
  expect_variables(r, wanted);
}

TEST(Code, CanBeLeftAnywhere) {
  Region region = counting();
  region.leaves_anywhere = true;
  const Function function = compiled(region);
  for (int32_t number = 0; number < 5; ++number) {
    for (const int64_t turn : {0, 1, 7}) {
      Frame frame;
      frame.forced = number, frame.forced_turn = turn;
      File r = file(0, 20, 5, 1.5), wanted = r;
      World world;
      EXPECT_EQ(world.run(function, r, frame), number);
      EXPECT_EQ(r[kI].i, turn);
      EXPECT_EQ(reference(region, r, number), reference(region, wanted, 0));
      expect_variables(r, wanted);
    }
  }
}

}  // namespace
}  // namespace dalsegno::native
