// Linked frames (rule 1): frames recorded through stand in the thread's chain while a step runs that might look at them.
#include <new>
#include <vector>

#include "hook/frame_access.h"

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

size_t frame_size(int slots) { return offsetof(Frame, localsplus) + sizeof(PyObject*) * static_cast<size_t>(slots > 0 ? slots : 1); }

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

void new_frames(const FrameImage* images, int n, Frame** made) {
  for (int i = 0; i < n; ++i) {
    made[i] = new_frame(code_of(images[i])->co_nlocalsplus);
    if (made[i] != nullptr) continue;
    while (i-- > 0) free_frame(made[i], code_of(images[i])->co_nlocalsplus);
    throw std::bad_alloc();
  }
}

// The function is borrowed from the image while the frame is linked; code and values are references of its own, as a step may assign
// to __code__ or to f_locals.
void fill_linked(Frame* frame, FrameImage* image) {
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
  const int count = code->co_nlocalsplus;
  for (int i = 0; i < count; ++i) frame->localsplus[i] = Py_XNewRef(image->locals[i]);
  frame->stacktop = count;
  set_executing(frame, image->offset);
  if (image->frame_object != nullptr) {
    PyFrameObject* object = image->frame_object;
    image->frame_object = nullptr;
    attach_frame_object(object, frame, image->object_wins);
  }
}

bool variables_changed(const Frame* frame, const FrameImage& image) {
  for (int i = 0; i < frame->stacktop; ++i) {
    if (frame->localsplus[i] != image.locals[i]) return true;
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

bool must_keep(const Frame* frame, const FrameImage& image) {
  return frame->frame_obj != nullptr && (Py_REFCNT(frame->frame_obj) > 1 || written_to(frame, image));
}

// Takes one frame, already out of the chain, apart. True if its frame object lives on in the image.
bool retire(PyThreadState* thread, Frame* frame, FrameImage* image) {
  const int count = frame->stacktop;
  if (must_keep(frame, *image)) {
    image->written = variables_changed(frame, *image);
    image->f_locals = Py_XNewRef(frame->f_locals);
    image->frame_object = give_frame_object(thread, frame);
    free_frame(frame, count);
    return true;
  }
  image->f_locals = frame->f_locals;
  drop_frame_object(frame);
  for (int i = 0; i < count; ++i) Py_XDECREF(frame->localsplus[i]);  // never the last reference: the image has one
  Py_DECREF(code_of(frame));
  free_frame(frame, count);
  return false;
}

}  // namespace

LinkedFrames::LinkedFrames(FrameImage* frames, int n) : images_(frames), n_(n) {
  PyThreadState* thread = PyThreadState_Get();
  Frame* top = current_frame(thread);
  Frame* few[8];
  std::vector<Frame*> many(n > 8 ? n : 0);
  Frame** made = n > 8 ? many.data() : few;
  new_frames(frames, n, made);
  base_ = top;
  linked_ = true;
  for (int i = 0; i < n; ++i) {
    fill_linked(made[i], &frames[i]);
    made[i]->previous = top;
    top = made[i];
  }
  current_frame(thread) = top;
  top_ = top;
  debt_ = take_recursion(thread, n);
}

bool LinkedFrames::unlink() {
  if (!linked_) return kept_;
  linked_ = false;
  PyThreadState* thread = PyThreadState_Get();
  recursion_remaining(thread) += debt_;
  Frame* frame = static_cast<Frame*>(top_);
  current_frame(thread) = static_cast<Frame*>(base_);
  for (int i = n_ - 1; i >= 0; --i) {  // innermost first: a kept frame's f_back keeps the frames outside it
    Frame* previous = frame->previous;
    if (retire(thread, frame, &images_[i])) kept_ = true;
    frame = previous;
  }
  return kept_;
}

}  // namespace dalsegno::hook
