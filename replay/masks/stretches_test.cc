// Every way against a loop over bytes: masks of all densities, lengths and steps, items of all sizes, aligned or not.
#include "replay/masks/stretches.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

namespace dalsegno::replay::masks {
namespace {

constexpr int64_t kSizes[] = {1, 2, 4, 8, 16};
constexpr double kDensities[] = {0, 0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 0.97, 0.99, 1};
constexpr int64_t kLengths[] = {0, 1, 7, 8, 31, 63, 64, 65, 127, 200, 255, 256, 257, 300, 513, 1000};

std::mt19937 g_random(4);
bool chance(double p) { return std::uniform_real_distribution<>()(g_random) < p; }
int64_t below(int64_t n) { return static_cast<int64_t>(g_random() % static_cast<uint64_t>(n)); }

std::string bytes(int64_t n) {
  std::string made(static_cast<size_t>(n), 0);
  for (char& c : made) c = static_cast<char>(g_random());
  return made;
}

// n bytes `step` apart, from the first one on if `step` is positive, from the last one if it is negative.
struct Case {
  int64_t n, step;
  std::string memory;
  Mask mask() { return {memory.data() + 3 + (step < 0 ? (1 - n) * step : 0), step, n}; }
};

Case masked(int64_t n, int64_t step, double density, int run, bool odd = false) {
  Case made{n, step, std::string(static_cast<size_t>(n * std::abs(step) + 8), 1)};
  Mask mask = made.mask();
  for (int64_t i = 0; i < n;) {
    const bool value = chance(density);
    for (int64_t many = 1 + below(run); many > 0 && i < n; --many, ++i)
      const_cast<char*>(mask.at)[i * step] = static_cast<char>(odd && value ? 1 + below(255) : value);
  }
  return made;
}

template <class Work>
void for_each_case(const Work& work) {
  for (const Way way : {Way::kPlain, Way::kNewer, Way::kWide}) {
    if (!go(way)) continue;
    SCOPED_TRACE("way " + std::to_string(static_cast<int>(way)));
    for (const double density : kDensities)
      for (const int64_t n : kLengths)
        for (const int run : {1, 200}) {
          SCOPED_TRACE(std::to_string(n) + " of density " + std::to_string(density) + ", runs of up to " + std::to_string(run));
          work(masked(n, 1, density, run));
          work(masked(n, run == 1 ? 2 : -1, density, run));
          work(masked(n, 1, density, run, true));
          if (testing::Test::HasFailure()) return;
        }
  }
  go(best_way());
}

std::vector<int64_t> places(const Mask& mask) {
  std::vector<int64_t> found;
  for (int64_t i = 0; i < mask.n; ++i)
    if (mask.at[i * mask.step] != 0) found.push_back(i);
  return found;
}

// Room for n items at steps of up to three of them, beginning anywhere.
struct Row {
  std::string memory;
  int64_t size, at, step;
  Row(int64_t n, int64_t size, bool near) : size(size), step(size) {
    if (!near) step = (1 + below(3)) * size * (chance(0.5) ? -1 : 1);
    at = 5 + below(8) + (step < 0 ? -step * n : 0);
    memory = bytes(n * std::abs(step) + 64);
  }
  Items items() { return {memory.data() + at, step}; }
  std::string item(int64_t i) const { return memory.substr(static_cast<size_t>(at + i * step), static_cast<size_t>(size)); }
  void set(int64_t i, const std::string& value) { memory.replace(static_cast<size_t>(at + i * step), value.size(), value); }
};

TEST(Masks, Counted) {
  for_each_case([](Case c) {
    const Mask mask = c.mask();
    bool odd = false, is_odd = false;
    for (int64_t i = 0; i < mask.n; ++i) is_odd |= (mask.at[i * mask.step] & 0xfe) != 0;
    const int64_t found = count(mask, &odd);
    EXPECT_EQ(odd, is_odd);
    EXPECT_TRUE(odd || found == static_cast<int64_t>(places(mask).size()));
    odd = true;
    count(mask, &odd);
    EXPECT_TRUE(odd);
  });
}

TEST(Masks, OddBytesAreSeenWhereverTheyAre) {
  for (const Way way : {Way::kPlain, Way::kNewer, Way::kWide}) {
    if (!go(way)) continue;
    for (int64_t n = 1; n < 200; ++n) {
      std::string m(static_cast<size_t>(n), 1);
      m[static_cast<size_t>(below(n))] = static_cast<char>(1 << (1 + below(7)) | below(2));
      bool odd = false;
      count({m.data(), 1, n}, &odd);
      EXPECT_TRUE(odd);
    }
  }
  go(best_way());
}

TEST(Masks, Taken) {
  for_each_case([](Case c) {
    const Mask mask = c.mask();
    const std::vector<int64_t> wanted = places(mask);
    for (const int64_t size : kSizes) {
      ASSERT_TRUE(is_known(size));
      for (const bool near : {true, false}) {
        Row row(mask.n, size, near);
        // Less room than is wanted: as if another thread had changed the mask since it was counted.
        for (const int64_t less : {int64_t{0}, below(5), below(mask.n + 1)}) {
          const int64_t room = std::max<int64_t>(static_cast<int64_t>(wanted.size()) - less, 0);
          std::string got(static_cast<size_t>(room * size + 32), 'x'), expected = got;
          for (int64_t k = 0; k < room; ++k)
            expected.replace(static_cast<size_t>(k * size + 16), static_cast<size_t>(size), row.item(wanted[static_cast<size_t>(k)]));
          ASSERT_EQ(take(mask, size, row.items(), got.data() + 16, room), room);
          ASSERT_EQ(got, expected) << "size " << size << ", near " << near << ", less " << less;
        }
      }
    }
  });
}

TEST(Masks, Put) {
  for_each_case([](Case c) {
    const Mask mask = c.mask();
    const std::vector<int64_t> wanted = places(mask);
    for (const int64_t size : kSizes) {
      for (const int near : {0, 1, 2, 3}) {
        const int64_t left = std::max<int64_t>(static_cast<int64_t>(wanted.size()) - (chance(0.3) ? below(mask.n + 1) : 0), 0);
        Row row(mask.n, size, (near & 1) != 0), values(left, size, (near & 2) != 0), expected = row;
        for (int64_t k = 0; k < left; ++k) expected.set(wanted[static_cast<size_t>(k)], values.item(k));
        ASSERT_EQ(put(mask, size, row.items(), values.items(), left), left);
        ASSERT_EQ(row.memory, expected.memory) << "size " << size << ", near " << near;
      }
    }
  });
}

TEST(Masks, Filled) {
  for_each_case([](Case c) {
    const Mask mask = c.mask();
    for (const int64_t size : kSizes) {
      for (const bool near : {true, false}) {
        Row row(mask.n, size, near), expected = row;
        const std::string value = bytes(size);
        for (const int64_t i : places(mask)) expected.set(i, value);
        fill(mask, size, row.items(), value.data());
        ASSERT_EQ(row.memory, expected.memory) << "size " << size << ", near " << near;
      }
    }
  });
}

// What lies before and behind must not be touched, and may not be there; nothing but what is chosen may be written.
TEST(Masks, AtTheEdgesOfMemory) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* pages = static_cast<char*>(mmap(nullptr, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(pages + page, 2 * page, PROT_READ | PROT_WRITE), 0);
  for (const Way way : {Way::kPlain, Way::kNewer, Way::kWide}) {
    if (!go(way)) continue;
    for (int64_t n = 1; n < 140; ++n)
      for (const double density : {0.02, 0.5, 0.98}) {
        Case c = masked(n, 1, density, 1);
        const auto many = static_cast<int64_t>(places(c.mask()).size());
        for (const int64_t size : kSizes)
          for (char* at : {pages + page, pages + 3 * page - n * size}) {
            std::string taken(static_cast<size_t>(n * size), 0);
            EXPECT_EQ(take(c.mask(), size, {at, size}, taken.data(), many), many);
            EXPECT_EQ(put(c.mask(), size, {taken.data(), size}, {at, size}, many), many);
            EXPECT_EQ(put(c.mask(), size, {at, size}, {taken.data(), size}, many), many);
            fill(c.mask(), size, {at, size}, "0123456789abcdef");
            std::copy_n(c.mask().at, n, pages + 3 * page - n);  // the mask itself, too
            bool odd = false;
            EXPECT_EQ(count({pages + 3 * page - n, 1, n}, &odd), many);
            EXPECT_EQ(take({pages + 3 * page - n, 1, n}, size, {pages + page, size}, taken.data(), many), many);
          }
      }
  }
  // Items that are not chosen lie in memory that cannot be written.
  ASSERT_EQ(mprotect(pages + 2 * page, page, PROT_READ), 0);
  std::string m(256, 0);
  for (size_t i = 0; i < 100; i += i % 3 + 1) m[i] = 1;
  for (const Way way : {Way::kPlain, Way::kNewer, Way::kWide}) {
    if (!go(way)) continue;
    for (const int64_t size : kSizes) {
      const Mask mask{m.data(), 1, 256};
      char* at = pages + 2 * page - 100 * size;
      fill(mask, size, {at, size}, "0123456789abcdef");
      const std::string values = bytes(256 * size);
      const auto many = static_cast<int64_t>(places(mask).size());
      EXPECT_EQ(put(mask, size, {at, size}, {const_cast<char*>(values.data()), size}, many), many);
    }
  }
  go(best_way());
  munmap(pages, 4 * page);
}

TEST(Masks, OtherSizesAreNotKnown) {
  for (const int64_t size : {-8, 0, 3, 5, 6, 10, 12, 17, 24, 32}) EXPECT_FALSE(is_known(size));
}

}  // namespace
}  // namespace dalsegno::replay::masks
