// SHA-256 (FIPS 180-4). Why our own: Debian's choices are libcrypto (4 MB, loaded at import for one function) or copying somebody's
// file in; this is 90 lines whose every path is exercised by the standard's test vectors. It guards against damage, and against
// rows of one key standing in for another's; it hides nothing, so there are no side channels to mind. The processor's own instructions are
// used where it has them: a process's first look into the store hashes some 20 KB.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dalsegno::store {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  void update(const void* data, size_t size);
  void update(std::string_view data) { update(data.data(), data.size()); }
  Digest finish();  // the object is used up

 private:
  void block(const uint8_t* data);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_ = {};
  size_t n_pending_ = 0;
  uint64_t total_ = 0;
};

Digest sha256(std::string_view data);
void sha256_portably(bool wanted);      // for tests: without the processor's instructions
std::string hex(const Digest& digest);  // 64 lower-case digits
inline std::string_view bytes(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

}  // namespace dalsegno::store
