// Linked frames (rule 1): frames recorded through stand in the thread's chain while a step runs that might look at them.
#include <algorithm>
#include <new>
#include <utility>

#include "hook/frame_access.h"
#include "hook/generators.h"

namespace dalsegno::hook {
namespace {

// Blocks of one size in a free list, as frames come and go with every step; larger frames are allocated. Guarded by the GIL.
constexpr int kPooledSlots = 40;
constexpr int kPoolLimit = 256;

struct Block {
  Block* next;
};
Block* g_pool = nullptr;
int g_pooled = 0;

size_t frame_size(int slots) { return offsetof(Frame, localsplus) + sizeof(Slot) * static_cast<size_t>(slots > 0 ? slots : 1); }

Frame* new_frame(int slots) {
  if (slots > kPooledSlots) return static_cast<Frame*>(PyMem_Malloc(frame_size(slots)));
  if (g_pool == nullptr) return static_cast<Frame*>(PyMem_Malloc(frame_size(kPooledSlots)));
  Block* block = g_pool;
  g_pool = block->next;
  --g_pooled;
  return reinterpret_cast<Frame*>(block);
}

void free_frame(Frame* frame, int slots) {
  if (slots > kPooledSlots || g_pooled >= kPoolLimit) {
    PyMem_Free(frame);
    return;
  }
  Block* block = reinterpret_cast<Block*>(frame);
  block->next = g_pool;
  g_pool = block;
  ++g_pooled;
}

void stand_at(Frame* frame, const FrameImage& image) {
  if (image.executing >= 0) {
    set_executing_at(frame, image.executing);
  } else {
    set_executing(frame, image.offset);
  }
}

// The function is borrowed from the image while the frame is linked; code and values are references of its own, as a step may assign
// to __code__ or to f_locals.
void fill_header(Frame* frame, FrameImage* image) {
  PyFunctionObject* function = image->function;
  PyCodeObject* code = code_of(*image);
  Py_INCREF(code);
  set_function(frame, function);
  set_code(frame, code);
  frame->f_globals = function->func_globals;
  frame->f_builtins = function->func_builtins;
  frame->f_locals = image->f_locals;
  image->f_locals = nullptr;
  frame->frame_obj = nullptr;
  frame->owner = FRAME_OWNED_BY_THREAD;
#if DALSEGNO_PY311
  frame->is_entry = true;
#else
  frame->return_offset = 0;
#endif
#if DALSEGNO_PY314
  frame->visited = 0;
#endif
  set_used_slots(frame, code->co_nlocalsplus);
  stand_at(frame, *image);
}

void fill_variables(Frame* frame, const FrameImage& image) {
  for (int i = 0; i < used_slots(frame); ++i) frame->localsplus[i] = owning(Py_XNewRef(image.locals[i]));
}

void fill_linked(Frame* frame, FrameImage* image) {
  fill_header(frame, image);
  fill_variables(frame, *image);
  if (image->frame_object != nullptr) {
    PyFrameObject* object = image->frame_object;
    image->frame_object = nullptr;
    attach_frame_object(object, frame, image->from_object);
  }
}

bool variables_changed(const Frame* frame, const FrameImage& image) {
  for (int i = 0; i < used_slots(frame); ++i) {
    if (slots_of(frame)[i].get() != image.locals[i]) return true;
  }
  return false;
}

// Has anybody written to the frame's variables, or left something in its frame object that eager would still find there?
bool written_to(const Frame* frame, const FrameImage& image) {
  const PyFrameObject* object = frame->frame_obj;
  if (object->f_trace != nullptr || !object->f_trace_lines || object->f_trace_opcodes) return true;
#if DALSEGNO_PY313
  if (object->f_extra_locals != nullptr || object->f_locals_cache != nullptr) return true;
#endif
  return variables_changed(frame, image);
}

// Takes a frame, already out of the chain, apart. True if its frame object lives on in the image.
bool retire(PyThreadState* thread, Frame* frame, FrameImage* image) {
  const int count = used_slots(frame);
  if (link_touched(frame, *image)) {
    image->written = variables_changed(frame, *image);
    image->f_locals = Py_XNewRef(frame->f_locals);
    image->frame_object = give_frame_object(thread, frame);
    free_frame(frame, count);
    return true;
  }
  image->f_locals = frame->f_locals;
  drop_frame_object(frame);
  for (int i = 0; i < count; ++i) drop_reference(frame->localsplus[i]);  // never the last reference: the image has one
  Py_DECREF(code_of(frame));
  free_frame(frame, count);
  return false;
}

}  // namespace

bool link_touched(void* linked, const FrameImage& image) {
  const auto* frame = static_cast<const Frame*>(linked);
  if (image.generator != nullptr) return variables_changed(frame, image);
  return frame->frame_obj != nullptr && (Py_REFCNT(frame->frame_obj) > 1 || written_to(frame, image));
}

namespace {

// A generator's frame is its own, and empty: it gets its variables for the time.
Frame* frame_of_generator(const FrameImage& image) {
  auto* frame = static_cast<Frame*>(frame_of_running(image.generator));
  stand_at(frame, image);
  fill_variables(frame, image);
  return frame;
}

// What somebody has assigned to its variables stays there.
bool retire_generator(Frame* frame, FrameImage* image) {
  frame->previous = nullptr;
  image->written = variables_changed(frame, *image);
  for (int i = 0; i < used_slots(frame); ++i)
    if (slots_of(frame)[i].get() == image->locals[i]) drop_reference(std::exchange(frame->localsplus[i], owning(nullptr)));
  return image->written;
}

Frame* frame_for(const FrameImage& image) {
  Frame* frame = new_frame(code_of(image)->co_nlocalsplus);
  if (frame == nullptr) throw std::bad_alloc();
  return frame;
}

void enter_chain(PyThreadState* thread, Frame* frame) {
  Frame*& current = current_frame(thread);
  frame->previous = current;
  current = frame;
}

}  // namespace

void* link_frame(FrameImage* image) {
  Frame* frame = image->generator != nullptr ? frame_of_generator(*image) : frame_for(*image);
  if (image->generator == nullptr) fill_linked(frame, image);
  enter_chain(PyThreadState_Get(), frame);
  return frame;
}

void* link_bare_frame(FrameImage* image) {
  Frame* frame = frame_for(*image);
  fill_header(frame, image);
  std::fill_n(frame->localsplus, used_slots(frame), owning(nullptr));
  enter_chain(PyThreadState_Get(), frame);
  return frame;
}

void fill_bare_frame(void* linked, const FrameImage& image) { fill_variables(static_cast<Frame*>(linked), image); }

bool park_bare_frame(PyThreadState* thread, void* linked) {
  auto* frame = static_cast<Frame*>(linked);
  if (frame->frame_obj != nullptr || frame->f_locals != nullptr) return false;
  current_frame(thread) = frame->previous;
  Py_DECREF(code_of(frame));
  return true;
}

void relink_bare_frame(PyThreadState* thread, void* parked) {
  auto* frame = static_cast<Frame*>(parked);
  Py_INCREF(code_of(frame));
  enter_chain(thread, frame);
}

void free_bare_frame(void* parked) {
  auto* frame = static_cast<Frame*>(parked);
  free_frame(frame, used_slots(frame));
}

bool unlink_frame(void* linked, FrameImage* image) {
  PyThreadState* thread = PyThreadState_Get();
  auto* frame = static_cast<Frame*>(linked);
  current_frame(thread) = frame->previous;
  return image->generator != nullptr ? retire_generator(frame, image) : retire(thread, frame, image);
}

LinkedFrames::LinkedFrames(FrameImage* frames, int n) : images_(frames) {
  linked_.reserve(static_cast<size_t>(n));
  try {
    for (int i = 0; i < n; ++i) linked_.push_back(link_frame(&frames[i]));
  } catch (const std::bad_alloc&) {
    unlink();
    throw;
  }
  debt_ = take_recursion(PyThreadState_Get(), n);
}

bool LinkedFrames::unlink() {
  take_recursion(PyThreadState_Get(), -std::exchange(debt_, 0));
  while (!linked_.empty()) {  // innermost first: a kept frame's f_back keeps the frames outside it
    void* frame = linked_.back();
    linked_.pop_back();
    if (unlink_frame(frame, &images_[linked_.size()])) kept_ = true;
  }
  return kept_;
}

}  // namespace dalsegno::hook
