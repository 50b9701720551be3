// Where the store lies, and whether that place can be trusted: what is in it ends up as machine code in this process.
// No state; any thread. Nothing here throws but std::bad_alloc.
#pragma once
#include <sys/types.h>

#include <string>

namespace dalsegno::store {

// DALSEGNO_STORE if set ("" and "off": no store), else dalsegno/store.sqlite3 in $XDG_CACHE_HOME or ~/.cache. "" if there is none.
std::string default_path();

struct Place {
  std::string path;      // absolute, its directory free of symbolic links; "" if refused
  std::string why;       // why it is refused
  bool named = false;    // dalsegno/store.sqlite3: ours by its name, even where the header is damaged
  bool damaged = false;  // the file was a store of ours and is none any more: to be set aside
  bool wal = false;      // SQLite is to keep a write-ahead log, which ours has not
  dev_t device = 0;      // which file it is, so that one that was put in its place is noticed
  ino_t inode = 0;
};

// Looks at directory and file: owned by this user, no symbolic links, nobody else may write to them nor to a directory above (the
// sticky bit is as good). Only then makes the default place's directories (0700) and, if there is none, an empty file (0600). A file that
// holds anything else than a store of ours, or what is left of one, is somebody else's and refused, unless it has our name.
// REQUIRES: this process has no lock on the file. The file is opened and closed here, which would drop it (POSIX).
Place prepare_place(const std::string& path);

// Is there certainly no file?
bool is_missing(const std::string& path);

// Is the file at place.path still the one that was looked at?
bool same_file(const Place& place);

// Moves a damaged or outdated file of ours and its journal out of the way, to PATH + suffix, replacing an earlier one. Nothing is done if
// the file is not the same any more. False if it could not be moved.
bool set_aside(const Place& place, const char* suffix);

}  // namespace dalsegno::store
