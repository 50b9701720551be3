// Generators that do not run: those that have not begun yet, and those that wait at a yield. Who resumes one and lets it wait again without
// the interpreter keeps to what gen_send_ex and YIELD_VALUE do (Objects/genobject.c, Python/bytecodes.c). Rule 23.
#pragma once
#include "hook/hook.h"

namespace dalsegno::hook {

// ---- not begun yet
// The local variables (and cells) of a generator that has not begun and that nobody looks into, and its function, borrowed; null of others.
Slot* variables_of_unborn(PyObject* generator, PyFunctionObject** function);
// It will never begin: what it holds goes with it, and no code of its own runs.
void never_begins(PyObject* generator);

// ---- at a yield, or not begun yet
// What a generator that waits would go on with. Borrowed; valid until it runs.
struct WaitingGenerator {
  PyFunctionObject* function;
  PyCodeObject* code;
  int next;     // the instruction, in code units
  int count;    // slots in use: local variables, then the stack, which what is sent comes on top of
  Slot* slots;  // null: it is no exact generator, does not wait, handles an exception, or its variables have been shown as a dict
  PyObject* globals;
};
WaitingGenerator waiting_generator(PyObject* generator);
// Takes the reference out of a slot that is bound.
PyObject* take_slot(PyObject* generator, int slot);
// It counts as running from now on: who has it run has taken what stood in its slots.
void begin_to_run(PyObject* generator);
// One that counts as running, and that nobody will go on with: it has ended.
void give_up(PyObject* object);
// Puts a value (stolen, or null) into a slot of one that counts as running and has been emptied.
void fill_slot(PyObject* generator, int slot, PyObject* value);
// It waits, to go on at `next`, with what has been put into its slots, so many of them.
void wait_at(PyObject* generator, int next, int count);
// It returns, by the instruction at `at`: what its variables held is gone by now.
void end_running(PyObject* generator, int at);
// Has an exact generator come to its end? What it held is gone, then.
bool has_ended(PyObject* generator);
// Would closing it run none of its code? It waits where nothing handles what is thrown in, or has not begun: what it holds dies.
bool closes_at_once(PyObject* generator);
// Of a linked frame: that of a generator that counts as running.
void* frame_of_running(PyObject* generator);

// Where a generator has what these look at, for code that does the same by itself.
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
GeneratorLayout generator_layout();

}  // namespace dalsegno::hook
