#pragma once
#include <string>

namespace dalsegno::replay {

// An object file (ELF, 64 bits) without its tables for unwinding (.eh_frame); what is no such file comes back as it was. Whoever loads
// those registers them with libgcc, and takes them back with the code. As of GCC 13 libgcc looks them up without a lock, in a tree of the
// address ranges that they cover, from the first function to the last: those of one object may lie on both sides of NumPy's library, whose
// frames NumPy unwinds at large temporaries (backtrace() in temp_elide.c), and a table that is taken back meanwhile ended the process.
// Nothing unwinds through this code: it neither throws nor calls what throws, and a frame without a table ends a backtrace, and a thread
// that ends, in good order.
std::string without_unwind_tables(std::string image);

}  // namespace dalsegno::replay
