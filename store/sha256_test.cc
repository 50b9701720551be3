// FIPS 180-4's examples and NIST's short and long messages.
#include "store/sha256.h"

#include <gtest/gtest.h>

namespace dalsegno::store {
namespace {

void test_vectors() {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu")),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(hex(sha256(std::string(1000000, 'a'))), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, TestVectors) { test_vectors(); }

struct Portably {
  Portably() { sha256_portably(true); }
  ~Portably() { sha256_portably(false); }
};

TEST(Sha256, TestVectorsWithoutTheProcessorsInstructions) {
  const Portably portably;
  test_vectors();
}

TEST(Sha256, BothWaysGiveTheSame) {
  std::string message;
  for (int i = 0; i < 4096; i++) {
    message.push_back(static_cast<char>(i * i * 31 + (i >> 3)));
    const Digest usual = sha256(message);
    const Portably portably;
    ASSERT_EQ(sha256(message), usual) << message.size();
  }
}

// However the message is cut up, across block boundaries too.
TEST(Sha256, PiecesGiveTheSame) {
  std::string message;
  for (int i = 0; i < 300; i++) message.push_back(static_cast<char>(i * 7));
  for (size_t size : {1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 300}) {
    const std::string_view whole = std::string_view(message).substr(0, size);
    for (size_t cut = 0; cut <= size; cut++) {
      Sha256 hash;
      hash.update(whole.substr(0, cut));
      hash.update(whole.substr(cut));
      ASSERT_EQ(hash.finish(), sha256(whole)) << size << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace dalsegno::store
