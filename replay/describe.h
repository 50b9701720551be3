// Traces, counters and notes as plain Python data, for dalsegno.explain and dalsegno.stats. New references; null with an exception set.
#pragma once
#include <Python.h>

#include "replay/tree.h"

namespace dalsegno::replay {

Counters function_counters(const Tree& tree);  // with those kept elsewhere (kernels) filled in
Counters process_counters();
PyObject* describe_counters(const Counters& counters);
PyObject* describe_traces(const Tree& tree);
PyObject* describe_notes(const Tree& tree);
PyObject* describe_companions(const Tree& tree);  // a tuple of JitFunctions

}  // namespace dalsegno::replay
