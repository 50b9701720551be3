/* Attributes that instances keep themselves, found by what their class was like before. Runs no code of the user's and sets no exception.
   CPython's headers for this are C only, and so is this interface. `name` is interned; `cache` belongs to the place in the trace that asks
   for this name of this class, and is zeroed to begin with. All functions need the GIL. A few ns while the class stays as it is.

   They all ask first: is the object's type `type`, does that leave attributes to object's own __getattribute__ (for setting: __setattr__),
   and does looking `name` up in it and its bases give `found` (NULL: nothing)? */
#pragma once
#include <Python.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint64_t version; /* of the class, plus 1; 0: none seen */
  Py_ssize_t index; /* of the name among those that the class's instances share; -1: not among the first `entries` */
  Py_ssize_t entries;
  Py_ssize_t entry; /* of the name in the dict last looked into */
  Py_ssize_t slot;  /* where in the object it stands, of a class with __slots__ or a named tuple; 0: it is no slot */
  Py_ssize_t items; /* that a named tuple must have for that; 0: it is none */
} dalsegno_attribute_cache;

typedef struct {
  PyTypeObject* type;
  PyObject* name;
  PyObject* found; /* borrowed */
} dalsegno_attribute;

/* The attribute that the object keeps itself: a new reference. NULL: the class is another, it keeps none, or only user's code could tell.
 */
PyObject* dalsegno_own_attribute(PyObject* object, const dalsegno_attribute* attribute, dalsegno_attribute_cache* cache);
/* Whether it keeps none, so that it is the class's. 0 also if the class is another, or only user's code could tell. */
int dalsegno_has_class_attribute(PyObject* object, const dalsegno_attribute* attribute, dalsegno_attribute_cache* cache);
/* Where an attribute stands that the object keeps: in a slot, in an array of values, or in its dict (*dict, borrowed, otherwise NULL),
   which it may only be read from. What is there may be NULL. NULL: the class is another, or it takes more to tell. `sets`: it is to be set.
 */
PyObject** dalsegno_attribute_place(PyObject* object, const dalsegno_attribute* attribute, int sets, dalsegno_attribute_cache* cache,
                                    PyObject** dict);
/* What the class has under the name is the slot of its instances: its offset, else 0. */
Py_ssize_t dalsegno_slot_offset(PyTypeObject* type, PyObject* found);
/* What the class, derived from tuple, has under the name is the name of an item (collections.namedtuple): its number, plus 1, else 0. */
Py_ssize_t dalsegno_named_item(PyTypeObject* type, PyObject* found);
/* How instances of such a class keep what native code may look at: */
enum { DALSEGNO_KEEPS_ELSEWHERE, DALSEGNO_KEEPS_IN_SLOT, DALSEGNO_KEEPS_VALUES, DALSEGNO_KEEPS_ITEM };
int dalsegno_keeps(PyTypeObject* type, PyObject* found);
/* From an object to the pointer to its array of values, the bytes from there to the first value, and what a pointer to an array has in its
   lowest bit (else there is no array). 0: this version of the interpreter keeps them otherwise. */
int dalsegno_values_layout(int* pointer, int* first, int* tag);
/* Gives an attribute that it keeps another value. The old one: a new reference. NULL: nothing was done, as the class is another, it keeps
   none, or it cannot be told. */
PyObject* dalsegno_replace_own_attribute(PyObject* object, const dalsegno_attribute* attribute, PyObject* value,
                                         dalsegno_attribute_cache* cache);

/* Gives it an attribute that it does not keep yet: 1. 0: nothing was done, as above, or as it keeps one. */
int dalsegno_add_own_attribute(PyObject* object, const dalsegno_attribute* attribute, PyObject* value, dalsegno_attribute_cache* cache);
/* Does calling the class make an instance as object() does, call __init__, and nothing else? */
int dalsegno_makes_instances(PyTypeObject* type);
/* Are all instances true: has it neither __bool__ nor __len__? Of classes written in Python, whose functions stand in themselves; else 0.
 */
int dalsegno_has_true_instances(PyTypeObject* type);
/* A new instance, which has no attributes; the class's __init__ is what `attribute` names. NULL: the class is another, or no memory. */
PyObject* dalsegno_make_instance(const dalsegno_attribute* attribute, dalsegno_attribute_cache* cache);

#ifdef __cplusplus
}
#endif
