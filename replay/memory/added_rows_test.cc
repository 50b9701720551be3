#include "replay/memory/added_rows.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace dalsegno::replay {
namespace {

template <class T>
class AddedRows : public testing::Test {};
using Types = testing::Types<uint8_t, uint16_t, uint32_t, uint64_t, float, double>;
TYPED_TEST_SUITE(AddedRows, Types);

TYPED_TEST(AddedRows, AreAddedOneAfterTheOther) {
  using T = TypeParam;
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 400; ++turn) {
    const size_t n = 1 + random() % 9, length = random() % 150, shift = random() % 8;
    std::vector<std::vector<char>> rows(n, std::vector<char>((length + 8) * sizeof(T)));
    std::vector<const char*> from;
    for (std::vector<char>& row : rows) {
      for (size_t i = 0; i < length; ++i) {
        const T x = std::is_floating_point_v<T> ? static_cast<T>(static_cast<double>(random() % 2000) / 7 - 100) : static_cast<T>(random());
        std::memcpy(row.data() + shift + i * sizeof(T), &x, sizeof x);
      }
      from.push_back(row.data() + shift);
    }
    std::vector<char> made(length * sizeof(T) + 1, 'x');
    add_rows<T>(from.data(), n, made.data(), static_cast<intptr_t>(length));
    for (size_t i = 0; i < length; ++i) {
      T wanted = 0, given;
      for (const char* row : from) {
        std::memcpy(&given, row + i * sizeof(T), sizeof given);
        wanted = static_cast<T>(wanted + given);
      }
      ASSERT_EQ(std::memcmp(made.data() + i * sizeof(T), &wanted, sizeof wanted), 0);
    }
    ASSERT_EQ(made.back(), 'x');
  }
}

TEST(AddedRows, RaiseTheFlagsOfTheirElementsAndNoOthers) {
  const auto raised = [](double a, double b) {
    std::vector<double> x(37, 1.0), y(37, 2.0);
    x[20] = a, y[20] = b;
    const char* rows[] = {reinterpret_cast<char*>(x.data()), reinterpret_cast<char*>(y.data())};
    std::vector<double> made(37);
    std::feclearexcept(FE_ALL_EXCEPT);
    add_rows<double>(rows, 2, reinterpret_cast<char*>(made.data()), 37);
    return std::fetestexcept(FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO | FE_UNDERFLOW);
  };
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(raised(1.0, 2.0), 0);
  EXPECT_EQ(raised(std::numeric_limits<double>::quiet_NaN(), 1.0), 0);
  EXPECT_EQ(raised(kInf, -kInf), FE_INVALID);
  EXPECT_EQ(raised(1.7e308, 1.7e308), FE_OVERFLOW);
}

}  // namespace
}  // namespace dalsegno::replay
