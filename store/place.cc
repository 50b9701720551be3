#include "store/place.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "store/schema.h"

namespace dalsegno::store {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
constexpr const char* kDirectory = "dalsegno";
constexpr const char* kFile = "store.sqlite3";
// bford.info/cachedir: backup programs leave such a directory out.
constexpr std::string_view kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n# Traces and kernels of Dal Segno; may be deleted at any time.\n";

struct Fd {
  int fd;
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string home() {
  std::string home = environment("HOME");
  if (!home.empty()) return home;
  passwd entry, *found = nullptr;
  char buffer[4096];
  if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) != 0 || found == nullptr || found->pw_dir == nullptr) return "";
  return found->pw_dir;
}

// Without what DALSEGNO_STORE says. A relative XDG_CACHE_HOME is to be ignored, says the XDG base directory specification.
std::string cache_path() {
  std::string cache = environment("XDG_CACHE_HOME");
  if (cache.empty() || cache[0] != '/') {
    const std::string base = home();
    if (base.empty() || base[0] != '/') return "";
    cache = base + "/.cache";
  }
  return cache + "/" + kDirectory + "/" + kFile;
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// "" or why nobody should trust what a directory above holds.
std::string distrust_ancestors(std::string directory) {
  while (directory != "/") {
    directory = parent_of(directory);
    struct stat info;
    if (lstat(directory.c_str(), &info) != 0) return directory + ": " + std::strerror(errno);
    const bool sticky = (info.st_mode & S_ISVTX) != 0 || S_ISLNK(info.st_mode);  // a link's mode says nothing
    if (info.st_uid != 0 && info.st_uid != geteuid()) return directory + " belongs to another user";
    if ((info.st_mode & kOthersWrite) != 0 && !sticky) return directory + " can be written to by others";
  }
  return "";
}

std::string distrust_directory(const std::string& directory) {
  struct stat info;
  if (lstat(directory.c_str(), &info) != 0) return directory + ": " + std::strerror(errno);
  if (S_ISLNK(info.st_mode)) return directory + " is a symbolic link";
  if (!S_ISDIR(info.st_mode)) return directory + " is no directory";
  if (info.st_uid != geteuid()) return directory + " belongs to another user";
  if ((info.st_mode & kOthersWrite) != 0) return directory + " can be written to by others";
  return "";
}

// "" also if there is no such file.
std::string distrust_file(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return errno == ENOENT ? "" : path + ": " + std::strerror(errno);
  if (S_ISLNK(info.st_mode)) return path + " is a symbolic link";
  if (!S_ISREG(info.st_mode)) return path + " is no regular file";
  if (info.st_uid != geteuid()) return path + " belongs to another user";
  if ((info.st_mode & kOthersWrite) != 0) return path + " can be written to by others";
  if (info.st_nlink > 1) return path + " has another name (a hard link)";
  return "";
}

void write_cache_tag(const std::string& directory) {
  const Fd file{::open((directory + "/CACHEDIR.TAG").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (file.fd >= 0 && ::write(file.fd, kCacheTag.data(), kCacheTag.size()) < 0) return;  // of no importance
}

std::string resolve(const std::string& directory, std::string* absolute) {
  char* resolved = realpath(directory.c_str(), nullptr);
  if (resolved == nullptr) return directory + ": " + std::strerror(errno);
  *absolute = resolved;
  std::free(resolved);
  return "";
}

bool exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

// Makes what is missing of the default place's directory, where the directory that is there already may be trusted with it. "" or why not:
// root with the home of a user must leave nothing there, nor follow a link the user has put there.
std::string make_directories(const std::string& directory) {
  if (exists(directory)) return "";
  std::string above = parent_of(directory);
  std::string why = make_directories(above);
  if (why.empty()) why = distrust_ancestors(directory);  // links among them belong to those who have put them there
  if (why.empty()) why = resolve(above, &above);
  if (why.empty()) why = distrust_ancestors(above + "/" + name_of(directory));
  if (!why.empty()) return why;
  return mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST ? "" : directory + ": " + std::strerror(errno);
}

// What the first bytes of a file say it is.
enum class Content : uint8_t { kStore, kRemains, kForeign };

constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr size_t kHeader = 100;        // SQLite's
constexpr size_t kSearch = 256 << 10;  // the schema lies in the first pages

uint32_t number_at(std::string_view bytes, size_t at) {
  uint32_t n = 0;
  for (size_t i = at; i < at + 4; i++) n = n << 8 | static_cast<unsigned char>(bytes[i]);
  return n;
}

// A database without any table: what a birth cut short left behind before birth was atomic, and nobody's data.
bool is_blank(std::string_view bytes) {
  return bytes.size() > kHeader + 5 && number_at(bytes, 60) == 0 && number_at(bytes, 68) == 0 && bytes[kHeader] == 0x0d &&
         bytes[kHeader + 3] == 0 && bytes[kHeader + 4] == 0;
}

// Fields that SQLite refuses to read, or to write, with other values, without calling that damage.
bool header_holds(std::string_view bytes) {
  return bytes[18] <= 2 && bytes[18] > 0 && bytes[19] <= 2 && bytes[19] > 0 && number_at(bytes, 44) <= 4 && number_at(bytes, 56) <= 1;
}

// A file cut within SQLite's header holds nothing of anybody's. One whose header is wrong has our tables' text behind it.
Content content_of(std::string_view bytes, bool journal) {
  const bool cut = bytes.size() < kHeader;
  if (bytes.empty()) return Content::kStore;
  if (cut && kMagic.starts_with(bytes.substr(0, 16)) && (bytes.size() >= 16 || journal)) return Content::kRemains;
  if (cut) return Content::kForeign;
  if (bytes.starts_with(kMagic) && header_holds(bytes)) {
    if (number_at(bytes, 68) == kApplicationId || is_blank(bytes)) return Content::kStore;
  }
  const std::string_view text = std::string_view(tables::trace_data.create).substr(0, 40);
  const bool binary = bytes.find('\0') != std::string_view::npos;  // not a text about our tables
  return binary && bytes.find(text) != std::string_view::npos ? Content::kRemains : Content::kForeign;
}

// "" or why the file is not ours. SQLite itself would happily open, and on a left-over journal even write to, anybody's database.
std::string distrust_content(Place* place) {
  const Fd file{::open(place->path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return place->path + ": " + std::strerror(errno);
  std::string bytes(kHeader + 12, '\0');
  for (const size_t size : {bytes.size(), kSearch}) {
    bytes.resize(size);
    const ssize_t n = ::pread(file.fd, bytes.data(), bytes.size(), 0);
    if (n < 0) return place->path + ": " + std::strerror(errno);
    bytes.resize(static_cast<size_t>(n));
    const Content content = content_of(bytes, exists(place->path + "-journal"));
    place->damaged = content == Content::kRemains;
    place->wal = content == Content::kStore && bytes.size() >= kHeader && bytes[18] == 2;
    if (content != Content::kForeign) return "";
  }
  return place->named ? "" : place->path + " is not a store of ours; it is left alone";
}

std::string create(const std::string& path) {
  const Fd file{::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  return file.fd >= 0 || errno == EEXIST ? "" : path + ": " + std::strerror(errno);
}

std::string examine(Place* place) {
  std::string directory = parent_of(place->path);
  const std::string name = name_of(place->path);
  if (name.empty() || name == "." || name == "..") return place->path + " names no file";
  const bool usual = place->path == cache_path();
  std::string why = usual ? make_directories(directory) : "";
  if (why.empty()) why = distrust_directory(directory);
  if (why.empty()) why = resolve(directory, &directory);
  if (why.empty()) why = distrust_ancestors(directory);
  if (!why.empty()) return why;
  place->named = name == kFile && name_of(directory) == kDirectory;
  place->path = (directory == "/" ? "" : directory) + "/" + name;
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) {
    why = distrust_file(place->path + suffix);
    if (!why.empty()) return why;
  }
  if (usual) write_cache_tag(directory);
  why = create(place->path);
  return why.empty() ? distrust_content(place) : why;
}

}  // namespace

std::string default_path() {
  if (const char* chosen = std::getenv("DALSEGNO_STORE")) return std::string_view(chosen) == "off" ? "" : chosen;
  return cache_path();
}

Place prepare_place(const std::string& path) {
  Place place;
  place.path = path;
  if (path.empty() || path.find('\0') != std::string::npos) {
    place.why = "no store is configured";
  } else {
    place.why = examine(&place);
  }
  if (!place.why.empty()) {
    place.path.clear();
    return place;
  }
  struct stat info;
  if (lstat(place.path.c_str(), &info) == 0) place.device = info.st_dev, place.inode = info.st_ino;
  return place;
}

bool is_missing(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) != 0 && errno == ENOENT;
}

bool same_file(const Place& place) {
  struct stat info;
  return lstat(place.path.c_str(), &info) == 0 && info.st_dev == place.device && info.st_ino == place.inode;
}

bool set_aside(const Place& place, const char* suffix) {
  if (!same_file(place)) return true;  // another process did it
  const std::string journal = place.path + "-journal", aside = place.path + suffix;
  // The journal first: alone it means nothing, while a new file must never find an old journal.
  if (rename(journal.c_str(), (aside + "-journal").c_str()) != 0 && errno != ENOENT) return false;
  return rename(place.path.c_str(), aside.c_str()) == 0;
}

}  // namespace dalsegno::store
