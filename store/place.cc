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
    const bool sticky = (info.st_mode & S_ISVTX) != 0;
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

void make_directories(const std::string& directory) {
  if (directory.size() <= 1 || mkdir(directory.c_str(), 0700) == 0 || errno != ENOENT) return;
  make_directories(parent_of(directory));
  mkdir(directory.c_str(), 0700);
}

// "" or why the file is not ours. SQLite itself would happily open, and on a left-over journal even write to, anybody's database.
std::string distrust_content(const Place& place) {
  const Fd file{::open(place.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return place.path + ": " + std::strerror(errno);
  unsigned char header[100] = {};
  const ssize_t n = ::read(file.fd, header, sizeof header);
  if (n < 0) return place.path + ": " + std::strerror(errno);
  if (n == 0 || place.named) return "";
  const uint32_t id = uint32_t{header[68]} << 24 | uint32_t{header[69]} << 16 | uint32_t{header[70]} << 8 | header[71];
  if (n == sizeof header && std::memcmp(header, "SQLite format 3", 16) == 0 && id == kApplicationId) return "";
  return place.path + " is not a store of ours; it is left alone";
}

std::string create(const std::string& path) {
  const Fd file{::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  return file.fd >= 0 || errno == EEXIST ? "" : path + ": " + std::strerror(errno);
}

std::string resolve(const std::string& directory, std::string* absolute) {
  char* resolved = realpath(directory.c_str(), nullptr);
  if (resolved == nullptr) return directory + ": " + std::strerror(errno);
  *absolute = resolved;
  std::free(resolved);
  return "";
}

std::string examine(Place* place) {
  std::string directory = parent_of(place->path);
  const std::string name = name_of(place->path);
  if (name.empty() || name == "." || name == "..") return place->path + " names no file";
  if (place->path == cache_path()) {
    make_directories(directory);
    write_cache_tag(directory);
  }
  std::string why = distrust_directory(directory);
  if (why.empty()) why = resolve(directory, &directory);
  if (why.empty()) why = distrust_ancestors(directory);
  if (!why.empty()) return why;
  place->named = name == kFile && name_of(directory) == kDirectory;
  place->path = (directory == "/" ? "" : directory) + "/" + name;
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) {
    why = distrust_file(place->path + suffix);
    if (!why.empty()) return why;
  }
  why = create(place->path);
  return why.empty() ? distrust_content(*place) : why;
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
