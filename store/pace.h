// What calls take, to be known before the store is opened: PATH-pace, a small file beside the store. To open the store and to read a
// function's rows takes about a millisecond, which calls of microseconds do not win back for long; the first call looks here whether that
// can wait. No result depends on it: a record that is missing, old, wrong or forged costs time, and little of that.
//
// No state; any thread and any process. Nothing here throws but std::bad_alloc, and nothing waits: what cannot be read is no record.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dalsegno::store {

// As it stands in the file.
struct Pace {
  uint64_t function = 0;              // a number that tells functions apart, mostly
  uint32_t sizes = 0;                 // of the arguments (KeptVerdict::sizes)
  float eager_ns = 0, replay_ns = 0;  // a call
  float load_ns = 0;                  // making programs of the stored traces, and what the first replay takes more than later ones, roughly
  bool operator==(const Pace&) const = default;
};

// All records, the latest last; there may be several of one function and size.
std::vector<Pace> read_paces(const std::string& store_path);
// Adds records. The store at this path was found to be trusted; the file is made where there is none. Where it becomes large, records that
// others have replaced are dropped, and then the oldest.
void add_paces(const std::string& store_path, std::span<const Pace> paces);
void remove_paces(const std::string& store_path);

}  // namespace dalsegno::store
