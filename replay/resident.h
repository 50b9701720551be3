// The recorder and what lowers traces are half a megabyte of code that a process's first call would fetch from the page cache by page
// faults, 16 pages each.
#pragma once

namespace dalsegno::replay {

// Maps all pages of this library at once: its code and constants, and what it writes.
void make_resident();

}  // namespace dalsegno::replay
