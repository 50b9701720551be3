// Round trips of random traces, and bytes nobody encoded.
#include "store/codec.h"

#include <gtest/gtest.h>

#include <random>

#include "trace/samples.h"

namespace dalsegno::store {
namespace {

TEST(Codec, RoundTrip) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 400; i++) {
    const Trace trace = testing::random_trace(random, i % 80);
    const auto back = decode_trace(encode_trace(trace));
    ASSERT_TRUE(back.has_value());
    ASSERT_EQ(*back, trace);
  }
}

TEST(Codec, EveryPrefixIsRefused) {
  std::mt19937_64 random(4);
  const std::string bytes = encode_trace(testing::random_trace(random, 20));
  for (size_t n = 0; n < bytes.size(); n++) ASSERT_FALSE(decode_trace(std::string_view(bytes).substr(0, n)).has_value());
  EXPECT_FALSE(decode_trace(bytes + "x").has_value());
}

// Damage that slipped past the checksum: refused, or a trace that verify() and print() survive.
TEST(Codec, DamagedBytesNeverCrash) {
  std::mt19937_64 random(5);
  int decoded = 0;
  std::string good;
  for (int i = 0; i < 40000; i++) {
    if (i % 20 == 0) good = encode_trace(testing::random_trace(random, 8));
    std::string bytes = good;
    for (int n = 1 + i % 3; n > 0; n--) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (auto trace = decode_trace(bytes)) {
      decoded++;
      verify(*trace);
      print(*trace);
    }
  }
  EXPECT_GT(decoded, 1000);
}

TEST(Codec, HostileLengths) {
  const std::string good = encode_trace(testing::small_trace());
  const size_t header = good.find('\n') + 1;
  for (size_t at = header; at < good.size(); at++) {
    std::string bytes = good.substr(0, at) + "\xff\xff\xff\xff\x0f" + good.substr(at);
    auto trace = decode_trace(bytes);
    EXPECT_TRUE(!trace || trace->ops.size() < 100);
    bytes.replace(at, 5, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    EXPECT_FALSE(decode_trace(bytes).has_value());
  }
}

// The worked example of docs/store.md.
TEST(Codec, WorkedExample) {
  Trace t;
  Op constant, end;
  constant.kind = OpKind::constant;
  constant.object = 1, constant.line = 1;
  end.kind = OpKind::return_;
  end.n_inputs = 1, end.line = 1;
  t.ops = {constant, end};
  t.inputs = {0};
  t.objects = {{"self", "function:.."}, {"self.code.const[1]", "const:int:0x1"}};
  ASSERT_EQ(verify(t), "");
  const std::string header = "DSTR" + format_id() + "\n";
  std::string expected("\x00\x00\x01\x01\x00\x00\x02", 7);
  expected += std::string("\x01\x15\x01\x02\x04\x00\x00", 7);
  expected += static_cast<char>(OpKind::return_) + std::string("\x00\x00\x00", 3);
  expected += std::string("\x00\x01\x00\x00\x00\x00\x02", 7);
  expected +=
      "\x04self\x0b"
      "function:..\x12self.code.const[1]\x0d"
      "const:int:0x1";
  expected += std::string(5, '\0');
  EXPECT_EQ(encode_trace(t), header + expected);
}

TEST(Codec, OtherTablesAreRefused) {
  std::string bytes = encode_trace(testing::small_trace());
  bytes[6] = bytes[6] == 'a' ? 'b' : 'a';
  EXPECT_FALSE(decode_trace(bytes).has_value());
}

}  // namespace
}  // namespace dalsegno::store
