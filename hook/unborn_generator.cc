#include "hook/frame_access.h"
// (which comes before anything that includes Python.h)
#include "hook/unborn_generator.h"

namespace dalsegno::hook {

Slot* variables_of_unborn(PyObject* generator, PyFunctionObject** function) {
  auto* gen = reinterpret_cast<PyGenObject*>(generator);
  if (gen->gi_frame_state != FRAME_CREATED || gen->gi_weakreflist != nullptr) return nullptr;
#if DALSEGNO_PY314
  Frame* frame = &gen->gi_iframe;
#else
  auto* frame = reinterpret_cast<Frame*>(gen->gi_iframe);
#endif
  *function = function_of(frame);
  return frame->frame_obj == nullptr ? slots_of(frame) : nullptr;
}

// As one that has come to its end: its finaliser has nothing to close, and its frame is cleared with it (gen_dealloc of
// Objects/genobject.c).
void never_begins(PyObject* generator) { reinterpret_cast<PyGenObject*>(generator)->gi_frame_state = FRAME_COMPLETED; }

}  // namespace dalsegno::hook
