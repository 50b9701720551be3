// Where a generator has what hook/generators.h looks at, for code that does the same by itself. No Python.h here.
#pragma once

namespace dalsegno::hook {

// Offsets from the object's beginning.
struct GeneratorLayout {
  int state = 0;  // a byte; 0: this interpreter has it otherwise
  int created = 0, suspended = 0, executing = 0;
  int handled = 0;                          // the exception that is handled: null or None
  int code = 0, function = 0, globals = 0;  // pointers
  int shown = 0;                            // the dict of its variables that somebody has been given, or null
  int next = 0;                             // a pointer
  int first = 0;                            // from the code object to where that points for a generator that goes on at instruction 0
  int count = 0;                            // 32 bits
  int slots = 0;                            // pointers
};

}  // namespace dalsegno::hook
