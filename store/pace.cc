#include "store/pace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace dalsegno::store {
namespace {

constexpr size_t kMost = 2048;  // records of a file
constexpr size_t kRecord = 24;
static_assert(sizeof(Pace) == kRecord && alignof(Pace) <= 8);

// The file begins with one: another layout, or another order of bytes, has another.
constexpr Pace kHead{0x6b63695720656361, 1, 0, 0, 0};

// Open, and the user's own; or not open.
class File {
 public:
  File(const std::string& store_path, int flags) : fd_(::open((store_path + "-pace").c_str(), flags | kFlags, 0600)) {
    struct stat info;
    const bool own = fd_ >= 0 && fstat(fd_, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid();
    if (own) size_ = static_cast<size_t>(info.st_size);
    if (!own && fd_ >= 0) ::close(fd_), fd_ = -1;
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;

  std::vector<Pace> read() const {
    std::vector<Pace> all(std::min(size_ / kRecord, 2 * kMost));
    const ssize_t n = all.empty() ? 0 : ::pread(fd_, all.data(), all.size() * kRecord, 0);
    all.resize(n < 0 ? 0 : static_cast<size_t>(n) / kRecord);
    if (all.empty() || all.front() != kHead) return {};
    all.erase(all.begin());
    std::erase_if(all,
                  [](const Pace& p) { return !std::isfinite(p.eager_ns) || !std::isfinite(p.replay_ns) || !std::isfinite(p.load_ns); });
    return all;
  }
  // There is a head, no record was cut short, and there is room for so many.
  bool takes(size_t more) const { return size_ >= kRecord && size_ % kRecord == 0 && size_ / kRecord + more <= kMost && !read().empty(); }
  // Where the disk is full a part of it is there: takes() will say no.
  void append(std::span<const Pace> paces) const {
    if (fd_ >= 0 && ::write(fd_, paces.data(), paces.size_bytes()) < 0) return;
  }
  bool cut() const { return fd_ >= 0 && ::ftruncate(fd_, 0) == 0; }

 private:
  static constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int fd_;
  size_t size_ = 0;
};

// The latest of each function and size, as many as a half-full file has.
std::vector<Pace> latest(const std::vector<Pace>& all) {
  std::vector<Pace> kept;
  std::set<std::pair<uint64_t, uint32_t>> seen;
  for (size_t i = all.size(); i-- > 0 && kept.size() < kMost / 2;) {
    if (seen.emplace(all[i].function, all[i].sizes).second) kept.push_back(all[i]);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

std::vector<Pace> read_paces(const std::string& store_path) {
  if (store_path.empty()) return {};
  return File(store_path, O_RDONLY).read();
}

// Others may add at the same time, and one of two who make room may undo what the other has added: that is lost, then.
void add_paces(const std::string& store_path, std::span<const Pace> paces) {
  if (store_path.empty() || paces.empty()) return;
  const File file(store_path, O_RDWR | O_CREAT | O_APPEND);
  if (file.takes(paces.size())) return file.append(paces);
  std::vector<Pace> all = file.read();
  all.insert(all.end(), paces.begin(), paces.end());
  all = latest(all);
  all.insert(all.begin(), kHead);
  if (file.cut()) file.append(all);
}

void remove_paces(const std::string& store_path) {
  if (!store_path.empty()) ::unlink((store_path + "-pace").c_str());
}

}  // namespace dalsegno::store
