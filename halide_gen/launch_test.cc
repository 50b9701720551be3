// The launcher and the worker pool, with stages written by hand instead of compiled ones.
#include "halide_gen/runtime/launch.h"

#include <HalideRuntime.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "halide_gen/runtime/flags.h"
#include "halide_gen/runtime/pool.h"

namespace dalsegno::rt {
namespace {

constexpr uint8_t kFloat64 = 4;

// out = a / b over any number of axes, as a compiled stage would do it.
int divide(void** arguments) {
  const auto* a = static_cast<halide_buffer_t*>(arguments[0]);
  const auto* b = static_cast<halide_buffer_t*>(arguments[1]);
  const auto* o = static_cast<halide_buffer_t*>(arguments[2]);
  const auto at = [](const halide_buffer_t* x, int i, int j) {
    return reinterpret_cast<double*>(x->host) + static_cast<ptrdiff_t>(i) * x->dim[0].stride +
           (x->dimensions > 1 ? static_cast<ptrdiff_t>(j) * x->dim[1].stride : 0);
  };
  for (int j = 0; j < (o->dimensions > 1 ? o->dim[1].extent : 1); ++j) {
    for (int i = 0; i < o->dim[0].extent; ++i) *at(o, i, j) = *at(a, i, j) / *at(b, i, j);
  }
  return 0;
}

// An inner loop in NumPy's form that clears the flags when it is done, as some of NumPy's do.
void negate_and_clear(char** args, const intptr_t* n, const intptr_t* steps, void*) {
  for (intptr_t i = 0; i < *n; ++i)
    *reinterpret_cast<double*>(args[1] + i * steps[1]) = -*reinterpret_cast<double*>(args[0] + i * steps[0]);
  set_control_word(control_word());
}

LaunchRef ref(uint8_t place, int index) { return {place, kFloat64, 8, 0, index}; }

struct Fixture {
  std::vector<double> a, b, out;
  LaunchOperand in[2], result[1];
  Launch launch{};

  Fixture(int rows, int columns, int threads) : a(rows * columns), b(columns, 2.0), out(a.size()) {
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i);
    in[0] = {reinterpret_cast<char*>(a.data()), 8, {1, columns}};
    in[1] = {reinterpret_cast<char*>(b.data()), 8, {1, 0}};
    result[0] = {reinterpret_cast<char*>(out.data()), 8, {1, columns}};
    launch = {2, threads, {columns, rows}, in, result};
  }
};

const LaunchRef kWholeRefs[] = {ref(0, 0), ref(0, 1), ref(1, 0)};
const LaunchStage kWhole[] = {{divide, nullptr, nullptr, kWholeRefs, 2, 1}};
const LaunchKernel kWholeKernel{kWhole, 1, 0, 0, 0};

const LaunchRef kFirst[] = {ref(0, 0), ref(0, 1), ref(2, 0)}, kSecond[] = {ref(2, 0), ref(1, 0)};
const LaunchStage kTiled[] = {{divide, nullptr, nullptr, kFirst, 2, 1}, {nullptr, negate_and_clear, nullptr, kSecond, 1, 1}};
const LaunchKernel kTiledKernel{kTiled, 2, 256, 1, 1};

class Launches : public testing::TestWithParam<int> {};

TEST_P(Launches, WholeAndTiledCoverEveryElementOnce) {
  for (auto [rows, columns] : {std::pair{1, 1}, {1, 5000}, {5000, 1}, {3, 777}, {777, 3}, {64, 64}}) {
    Fixture f(rows, columns, GetParam());
    EXPECT_EQ(dalsegno_launch(&kWholeKernel, &f.launch), 0);
    for (size_t i = 0; i < f.a.size(); ++i) ASSERT_EQ(f.out[i], f.a[i] / 2) << rows << "x" << columns;
    EXPECT_EQ(dalsegno_launch(&kTiledKernel, &f.launch), 0);
    for (size_t i = 0; i < f.a.size(); ++i) ASSERT_EQ(f.out[i], -f.a[i] / 2) << rows << "x" << columns;
  }
}

TEST_P(Launches, OneFlagInOneTaskIsReported) {
  for (const LaunchKernel* kernel : {&kWholeKernel, &kTiledKernel}) {
    for (int column : {0, 500, 999}) {
      Fixture f(50, 1000, GetParam());
      f.b[column] = 0.0;
      EXPECT_EQ(dalsegno_launch(kernel, &f.launch) & (kDivide | kFailed), kDivide);
      EXPECT_EQ(dalsegno_launch(kernel, &f.launch) & kInvalid, column == 0 ? kInvalid : 0);  // 0 / 0 in the first row
    }
  }
}

TEST_P(Launches, FlagsFromBeforeDoNotMatterAndNoneAreLeftBehind) {
  Fixture f(50, 1000, GetParam());
  add_raised(kOverflow | kInvalid);
  EXPECT_EQ(dalsegno_launch(&kWholeKernel, &f.launch), 0);
  EXPECT_EQ(raised(), 0);
}

TEST_P(Launches, ShortRowsArePacked) {
  for (auto [rows, columns] : {std::pair{1000, 3}, {3, 1000}, {777, 7}, {5000, 2}}) {
    Fixture f(rows, columns, GetParam());
    for (int i = 0; i < columns; ++i) f.b[i] = i + 1;
    f.launch.packing = {2, 2, {columns, rows}};
    f.launch.rank = 1, f.launch.extents[0] = rows * columns;
    EXPECT_EQ(dalsegno_launch(&kTiledKernel, &f.launch), 0);
    for (size_t i = 0; i < f.a.size(); ++i) ASSERT_EQ(f.out[i], -f.a[i] / static_cast<double>(i % columns + 1));
  }
}

struct Left {
  std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  static void leave(void* self, int64_t first, int64_t end) {
    auto& left = *static_cast<Left*>(self);
    const std::lock_guard<std::mutex> lock(left.mutex);
    left.ranges.emplace_back(first, end);
  }
  bool has(int64_t element) const {
    return std::any_of(ranges.begin(), ranges.end(), [&](auto range) { return range.first <= element && element < range.second; });
  }
};

TEST_P(Launches, OverAnInputEachElementIsWrittenOnceOrLeftAsItWas) {
  for (const LaunchKernel* kernel : {&kWholeKernel, &kTiledKernel}) {
    const double sign = kernel == &kWholeKernel ? 1.0 : -1.0;
    for (auto [rows, columns] : {std::pair{1, 1}, {1, 64}, {1, 5003}, {1, 100'000}, {5000, 1}, {3, 777}, {777, 3}, {40, 128}, {9, 4000}}) {
      for (int bad : {-1, 0, columns / 2, columns - 1}) {
        Fixture f(rows, columns, GetParam());
        if (bad >= 0) f.b[bad] = 0.0;
        const std::vector<double> before = f.a;
        f.result[0].data = f.in[0].data;
        Left left;
        const Over over{0, 1, kDivide | kInvalid, 1 << 16, Left::leave, &left};
        f.launch.over = &over;
        add_raised(kOverflow);
        EXPECT_EQ(dalsegno_launch(kernel, &f.launch), 0);
        EXPECT_EQ(raised(), 0);
        ASSERT_EQ(left.ranges.empty(), bad < 0);
        for (size_t i = 0; i < f.a.size(); ++i) {
          const bool is_bad = static_cast<int>(i) % columns == bad, is_left = left.has(static_cast<int64_t>(i));
          ASSERT_TRUE(!is_bad || is_left) << i;
          ASSERT_EQ(f.a[i], is_left ? before[i] : sign * before[i] / 2) << rows << "x" << columns << " at " << i;
        }
      }
    }
  }
}

TEST_P(Launches, OverAnInputFlagsThatNobodyWatchesLeaveNothing) {
  Fixture f(7, 1000, GetParam());
  f.b[3] = 0.0;
  f.result[0].data = f.in[0].data;
  Left left;
  const Over over{0, 1, kOverflow, 1 << 16, Left::leave, &left};
  f.launch.over = &over;
  EXPECT_EQ(dalsegno_launch(&kWholeKernel, &f.launch), 0);
  EXPECT_TRUE(left.ranges.empty());
  EXPECT_TRUE(std::isinf(f.a[1003]));
}

TEST_P(Launches, OverRowsWithGapsBetweenThemTheGapsStay) {
  for (int columns : {50, 64, 700, 1216}) {
    Fixture f(60, columns + 5, GetParam());
    f.launch.extents[0] = columns;
    const std::vector<double> before = f.a;
    f.result[0].data = f.in[0].data;
    Left left;
    const Over over{0, 1, kDivide, 1 << 16, Left::leave, &left};
    f.launch.over = &over;
    EXPECT_EQ(dalsegno_launch(&kWholeKernel, &f.launch), 0);
    for (size_t i = 0; i < f.a.size(); ++i) ASSERT_EQ(f.a[i], static_cast<int>(i) % (columns + 5) < columns ? before[i] / 2 : before[i]);
  }
}

TEST_P(Launches, OverAnInputMorePiecesThanCanBeLeftAreNotBegun) {
  Fixture f(3000, 777, GetParam());
  const std::vector<double> before = f.a;
  f.result[0].data = f.in[0].data;
  Left left;
  const Over over{0, 1, kDivide, 2, Left::leave, &left};
  f.launch.over = &over;
  EXPECT_EQ(dalsegno_launch(&kWholeKernel, &f.launch), kFailed);
  EXPECT_EQ(f.a, before);
}

INSTANTIATE_TEST_SUITE_P(Threads, Launches, testing::Values(1, 2, 5));

void count(void* context, int i) { static_cast<std::atomic<int>*>(context)[i]++; }

TEST(Pool, EveryTaskOnceWhateverTheThreads) {
  for (int threads : {1, 2, 3, 8}) {
    std::vector<std::atomic<int>> counts(1000);
    parallel(1000, threads, count, counts.data());
    for (auto& c : counts) ASSERT_EQ(c.load(), 1);
  }
}

TEST(Pool, ManyCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::vector<std::atomic<int>> counts(64);
        parallel(64, 3, count, counts.data());
        for (auto& c : counts) wrong += c.load() != 1;
      }
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Pool, WorksInTheChildOfAFork) {
  std::vector<std::atomic<int>> counts(100);
  parallel(100, 3, count, counts.data());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::vector<std::atomic<int>> mine(100);
    parallel(100, 3, count, mine.data());
    for (auto& c : mine) {
      if (c.load() != 1) _exit(1);
    }
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Pool, RoundingModeGoesWithTheTask) {
#if defined(__x86_64__)
  const unsigned before = _mm_getcsr();
  _MM_SET_ROUNDING_MODE(_MM_ROUND_UP);
  std::vector<unsigned> modes(32);
  parallel(
      32, 4, [](void* m, int i) { static_cast<unsigned*>(m)[i] = _MM_GET_ROUNDING_MODE(); }, modes.data());
  _mm_setcsr(before);
  for (unsigned m : modes) EXPECT_EQ(m, static_cast<unsigned>(_MM_ROUND_UP));
#endif
}

}  // namespace
}  // namespace dalsegno::rt
