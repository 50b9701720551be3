// What the assembler covers, and code of it called as the launcher calls it. (What it computes is compared with NumPy in
// tests/test_kernels_ops.py and its like.)
#include "halide_gen/plan/assembler.h"

#include <HalideRuntime.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "halide_gen/runtime/launch.h"
#include "halide_gen/testing.h"

namespace dalsegno::halide_gen {
namespace {

// An operand of the functions: its dims from the innermost axis on.
struct Buffer {
  halide_buffer_t buffer{};
  std::vector<halide_dimension_t> dims;
  template <class T>
  Buffer(T* host, const std::vector<int>& extents, const std::vector<int>& strides) {
    for (size_t d = 0; d < extents.size(); ++d) dims.push_back(halide_dimension_t(0, extents[d], strides[d]));
    buffer.host = reinterpret_cast<uint8_t*>(host);
    buffer.dimensions = static_cast<int>(extents.size());
    buffer.dim = dims.data();
  }
};

int run(const KernelSpec& spec, const std::vector<void*>& arguments, Vectors by) {
  const auto code = assemble(spec, make_plan(spec), by);
  if (!code) return -1;
  std::vector<void*> copy = arguments;
  return code->stage(0)(copy.data());
}

class Assembler : public ::testing::TestWithParam<Vectors> {
 protected:
  void SetUp() override {
    if (GetParam() > processor_vectors()) GTEST_SKIP() << "this processor has no such vectors";
  }
};
INSTANTIATE_TEST_SUITE_P(By, Assembler, ::testing::Values(Vectors::kAvx2, Vectors::kAvx512),
                         [](const auto& by) { return by.param == Vectors::kAvx2 ? "Avx2" : "Avx512"; });

TEST_P(Assembler, CoversNearlyEveryRule) {
  int missing = 0;
  const int count = each_expression([&](ArrayFn fn, DType loop, DType result) {
    const KernelSpec spec = one_op(fn, loop, result, {false, loop, Inner::kDense}, 2);
    missing += !assemble(spec, make_plan(spec), GetParam());
  });
  EXPECT_GT(count, 120);
  EXPECT_LE(missing, GetParam() == Vectors::kAvx512 ? 4 : 16);  // shifts of bytes; of AVX2 more
}

// Rows of every length up to some vectors, within an array that has gaps between them.
TEST_P(Assembler, WritesElementsAndNothingElse) {
  for (int n = 1; n <= 40; ++n) {
    constexpr int kRows = 3, kGap = 5;
    const KernelSpec spec = one_op(ArrayFn::add, DType::kFloat64, DType::kFloat64, {}, 2);
    const int pitch = n + kGap;
    std::vector<double> x(static_cast<size_t>(pitch * kRows)), y = x, out(x.size(), -1.0);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i), y[i] = 1000.0 * static_cast<double>(i);
    Buffer a(x.data(), {n, kRows}, {1, pitch}), b(y.data(), {n, kRows}, {1, pitch}), c(out.data(), {n, kRows}, {1, pitch});
    ASSERT_EQ(run(spec, {&a.buffer, &b.buffer, &c.buffer}, GetParam()), 0);
    for (int row = 0; row < kRows; ++row)
      for (int i = 0; i < pitch; ++i) {
        const auto at = static_cast<size_t>(row * pitch + i);
        ASSERT_EQ(out[at], i < n ? x[at] + y[at] : -1.0) << n << " " << row << " " << i;
      }
  }
}

TEST_P(Assembler, RaisesNoFlagsBesideTheElements) {
  const KernelSpec spec = one_op(ArrayFn::divide, DType::kFloat64, DType::kFloat64, {}, 1);
  std::vector<double> x(16, 0.0), out(16);
  for (const int n : {1, 3, 8, 11}) {
    std::vector<double> y(16, 0.0);
    for (int i = 0; i < n; ++i) y[static_cast<size_t>(i)] = 2.0;
    Buffer a(x.data(), {n}, {1}), b(y.data(), {n}, {1}), c(out.data(), {n}, {1});
    std::feclearexcept(FE_ALL_EXCEPT);
    ASSERT_EQ(run(spec, {&a.buffer, &b.buffer, &c.buffer}, GetParam()), 0);
    EXPECT_EQ(std::fetestexcept(FE_INVALID | FE_DIVBYZERO), 0) << n;
    y[static_cast<size_t>(n - 1)] = 0.0;
    ASSERT_EQ(run(spec, {&a.buffer, &b.buffer, &c.buffer}, GetParam()), 0);
    EXPECT_NE(std::fetestexcept(FE_INVALID), 0) << n;
  }
}

TEST_P(Assembler, GoesThroughAxesOfAnyStride) {
  KernelSpec spec = one_op(ArrayFn::subtract, DType::kFloat32, DType::kFloat32, {}, 3);
  spec.inputs[0].inner = Inner::kBroadcast;
  std::vector<float> x(100), y(1000), out(4 * 3 * 20, -1.0F);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i);
  for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i) * 0.5F;
  Buffer a(x.data(), {20, 3, 4}, {0, 7, 0}), b(y.data(), {20, 3, 4}, {1, 40, 200}), c(out.data(), {20, 3, 4}, {1, 20, 60});
  ASSERT_EQ(run(spec, {&a.buffer, &b.buffer, &c.buffer}, GetParam()), 0);
  for (size_t k = 0; k < 4; ++k)
    for (size_t j = 0; j < 3; ++j)
      for (size_t i = 0; i < 20; ++i) ASSERT_EQ(out[60 * k + 20 * j + i], x[7 * j] - y[200 * k + 40 * j + i]);
}

TEST_P(Assembler, GathersWhatLiesApart) {
  KernelSpec spec = one_op(ArrayFn::multiply, DType::kFloat64, DType::kFloat64, {false, DType::kFloat64, Inner::kStrided}, 2);
  std::vector<double> x(400), out(2 * 21);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) + 0.25;
  Buffer a(x.data(), {21, 2}, {3, 100}), b(x.data() + 399, {21, 2}, {-7, -1}), c(out.data(), {21, 2}, {1, 21});
  ASSERT_EQ(run(spec, {&a.buffer, &b.buffer, &c.buffer}, GetParam()), 0);
  for (size_t j = 0; j < 2; ++j)
    for (size_t i = 0; i < 21; ++i) ASSERT_EQ(out[21 * j + i], x[3 * i + 100 * j] * x[399 - 7 * i - j]);
}

// Elements that lie apart, in every way there is to fetch them; behind the last one is a page that nobody may read.
template <class T>
void fetch_apart(DType dtype, Vectors by) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  constexpr size_t kPages = 12;
  void* memory = mmap(nullptr, (kPages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char*>(memory) + kPages * page, page, PROT_NONE), 0);
  T* end = reinterpret_cast<T*>(static_cast<char*>(memory) + kPages * page);
  const size_t count = kPages * page / sizeof(T);
  for (size_t i = 0; i < count; ++i) (end - count)[i] = static_cast<T>(i) + static_cast<T>(0.25);
  const KernelSpec spec = one_op(ArrayFn::subtract, dtype, dtype, {false, dtype, Inner::kStrided}, 2);
  for (const int stride : {2, 3, 4, 5, 11}) {
    for (int n = 1; n <= 50; ++n) {
      constexpr int kRows = 2;
      const T* x = end - (static_cast<ptrdiff_t>(stride) * (n * kRows - 1) + 1);
      std::vector<T> out(static_cast<size_t>(n * kRows));
      Buffer a(const_cast<T*>(x), {n, kRows}, {stride, stride * n}), b(const_cast<T*>(x) - 1, {n, kRows}, {stride, stride * n});
      Buffer c(out.data(), {n, kRows}, {1, n});
      ASSERT_EQ(run(spec, {&a.buffer, &b.buffer, &c.buffer}, by), 0);
      for (int i = 0; i < n * kRows; ++i)
        ASSERT_EQ(out[static_cast<size_t>(i)], x[stride * i] - x[stride * i - 1]) << stride << " " << n << " " << i;
    }
  }
  for (int n = 1; n <= 50; ++n) {  // backwards, from the last element on
    const T *x = end - 1, *y = end - count;
    std::vector<T> out(static_cast<size_t>(n));
    Buffer a(const_cast<T*>(x), {n, 1}, {-1, 0}), b(const_cast<T*>(y) + 9 * (n - 1), {n, 1}, {-9, 0}), c(out.data(), {n, 1}, {1, n});
    ASSERT_EQ(run(spec, {&a.buffer, &b.buffer, &c.buffer}, by), 0);
    for (int i = 0; i < n; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], x[-i] - y[9 * (n - 1 - i)]) << n << " " << i;
  }
  munmap(memory, (kPages + 1) * page);
}

TEST_P(Assembler, FetchesWhatLiesApartAndNothingBehindIt) {
  fetch_apart<double>(DType::kFloat64, GetParam());
  fetch_apart<float>(DType::kFloat32, GetParam());
}

// Whatever lies before the first whole vector of memory, and behind the last one.
TEST_P(Assembler, StreamsWhatIsLarge) {
  for (const DType dtype : {DType::kFloat64, DType::kUint8}) {
    const KernelSpec spec = one_op(ArrayFn::maximum, dtype, dtype, {}, 2);
    const size_t item = dtype == DType::kFloat64 ? 8 : 1;
    for (int n = 1; n < 200; n += 7) {
      for (size_t begin = 0; begin < 64 / item; begin += 3) {
        constexpr int kRows = 3, kGap = 5;
        const int pitch = n + kGap;
        const size_t bytes = static_cast<size_t>(pitch * kRows + 64) * item;
        std::vector<uint8_t> x(bytes, 0), y(bytes, 0), memory(bytes + 64, 0xee);
        for (size_t i = 0; i < bytes; ++i) x[i] = static_cast<uint8_t>(i * 7 % 60), y[i] = static_cast<uint8_t>(i * 11 % 60);
        uint8_t* out = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64 + begin * item;
        const std::vector<int> extents = {n, kRows}, strides = {1, pitch};
        Buffer a(x.data(), extents, strides), b(y.data(), extents, strides), c(out, extents, strides);
        c.buffer.flags = rt::kStreams;
        ASSERT_EQ(run(spec, {&a.buffer, &b.buffer, &c.buffer}, GetParam()), 0);
        for (size_t row = 0; row < kRows; ++row)
          for (size_t i = 0; i < static_cast<size_t>(pitch); ++i) {
            const size_t at = (row * static_cast<size_t>(pitch) + i) * item;
            if (i >= static_cast<size_t>(n)) {
              ASSERT_EQ(out[at], 0xee);
            } else if (item == 1) {
              ASSERT_EQ(out[at], std::max(x[at], y[at])) << n << " " << begin << " " << i;
            } else {
              double p, q, got;
              std::memcpy(&p, &x[at], 8), std::memcpy(&q, &y[at], 8), std::memcpy(&got, &out[at], 8);
              ASSERT_EQ(got, std::max(p, q)) << n << " " << begin << " " << i;
            }
          }
      }
    }
  }
}

// More values at once than there are registers, of numbers and of truth: all that the first sum takes the second one takes again.
TEST_P(Assembler, SpillsWhatDoesNotFit) {
  constexpr int kInputs = 20, kEach = 40;
  KernelSpec spec;
  spec.inputs.resize(kInputs);
  const auto input = [](int i) { return ~(i % kInputs); };
  const auto add = [&](ArrayFn fn, DType result, std::vector<int> operands) {
    spec.ops.push_back({fn, DType::kFloat64, result, std::move(operands)});
    return static_cast<int>(spec.ops.size()) - 1;
  };
  std::vector<int> less, difference;
  for (int i = 0; i < kEach; ++i) {
    less.push_back(add(ArrayFn::less, DType::kBool, {input(i), input(i * 7 + 3)}));
    difference.push_back(add(ArrayFn::subtract, DType::kFloat64, {input(i), input(i * 3 + 5)}));
  }
  int sum = difference[0];
  for (int i = 0; i < 2 * kEach; ++i) {
    const auto k = static_cast<size_t>(i < kEach ? i : 2 * kEach - 1 - i);
    const int chosen = add(ArrayFn::where, DType::kFloat64, {less[k], input(i), input(i + 9)});
    sum = add(ArrayFn::add, DType::kFloat64, {add(ArrayFn::add, DType::kFloat64, {sum, difference[k]}), chosen});
  }
  spec.ops.back().output = true;
  const Plan plan = make_plan(spec);
  ASSERT_EQ(plan.stages.size(), 1u);
  constexpr size_t kN = 19;
  std::vector<std::vector<double>> inputs(kInputs, std::vector<double>(kN));
  for (size_t k = 0; k < kInputs; ++k)
    for (size_t i = 0; i < kN; ++i) inputs[k][i] = static_cast<double>((k * 37 + i * 11) % 23) - 9.0;
  std::vector<double> out(kN);
  std::vector<Buffer> buffers;
  for (auto& x : inputs) buffers.emplace_back(x.data(), std::vector<int>{kN}, std::vector<int>{1});
  buffers.emplace_back(out.data(), std::vector<int>{kN}, std::vector<int>{1});
  std::vector<void*> arguments;
  for (const Ref& r : plan.stages[0].reads) arguments.push_back(&buffers[static_cast<size_t>(r.index)].buffer);
  arguments.push_back(&buffers.back().buffer);
  ASSERT_EQ(run(spec, arguments, GetParam()), 0);
  for (size_t e = 0; e < kN; ++e) {
    std::vector<double> values;
    for (const KernelOp& op : spec.ops) {
      const auto at = [&](size_t k) {
        const int v = op.operands[k];
        return v < 0 ? inputs[static_cast<size_t>(~v)][e] : values[static_cast<size_t>(v)];
      };
      values.push_back(op.fn == ArrayFn::where      ? (at(0) != 0 ? at(1) : at(2))
                       : op.fn == ArrayFn::less     ? static_cast<double>(at(0) < at(1))
                       : op.fn == ArrayFn::subtract ? at(0) - at(1)
                                                    : at(0) + at(1));
    }
    EXPECT_EQ(out[e], values.back()) << e;
  }
}

}  // namespace
}  // namespace dalsegno::halide_gen
