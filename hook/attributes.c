/* See attributes.h. Objects/dictobject.c and Objects/object.c of each version say how instances keep their attributes: in an array of
   values, whose names are the type's shared keys, until somebody asks for the dict; in the dict then, or from the start. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "hook/attributes.h"

#include <Python.h>

#include "internal/pycore_dict.h"
#include "internal/pycore_object.h"
#include "structmember.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)

/* The array of an object whose type manages its dict, or NULL with the dict, if there is one, in *dict (borrowed). */
static inline PyObject** managed_values(PyObject* object, PyObject** dict) {
  *dict = NULL;
#if PY_VERSION_HEX >= 0x030d0000
  *dict = (PyObject*)_PyObject_GetManagedDict(object);
  if (*dict != NULL || !PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_INLINE_VALUES)) return NULL;
  PyDictValues* values = _PyObject_InlineValues(object);
  return values->valid ? values->values : NULL;
#elif PY_VERSION_HEX >= 0x030c0000
  PyDictOrValues either = *_PyObject_DictOrValuesPointer(object);
  if (_PyDictOrValues_IsValues(either)) return _PyDictOrValues_GetValues(either)->values;
  *dict = _PyDictOrValues_GetDict(either);
  return NULL;
#else
  PyDictValues* values = *_PyObject_ValuesPointer(object);
  if (values != NULL) return values->values;
  *dict = *_PyObject_ManagedDictPointer(object);
  return NULL;
#endif
}

static inline PyObject** values_of(PyObject* object, PyObject** dict) {
  if (LIKELY(PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_MANAGED_DICT))) return managed_values(object, dict);
  PyObject** pointer = _PyObject_GetDictPtr(object);
  *dict = pointer == NULL ? NULL : *pointer;
  return NULL;
}

static inline PyDictKeysObject* shared_keys(PyTypeObject* type) { return ((PyHeapTypeObject*)type)->ht_cached_keys; }

/* The names that a class's instances share belong to it for good and are only ever added to. */
static void look_for_index(PyTypeObject* type, PyObject* name, dalsegno_attribute_cache* cache) {
  PyDictKeysObject* keys = shared_keys(type);
  cache->index = -1;
  cache->entries = 0;
  if (keys == NULL || !DK_IS_UNICODE(keys) || !PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)) return;
  PyDictUnicodeEntry* entries = DK_UNICODE_ENTRIES(keys);
  cache->entries = keys->dk_nentries;
  for (Py_ssize_t i = 0; i < cache->entries && cache->index < 0; i++) {
    PyObject* key = entries[i].me_key;
    if (key == name || (key != NULL && PyUnicode_Compare(key, name) == 0)) cache->index = i;
  }
}

Py_ssize_t dalsegno_slot_offset(PyTypeObject* type, PyObject* found) {
  if (found == NULL || !Py_IS_TYPE(found, &PyMemberDescr_Type) || !PyType_IsSubtype(type, PyDescr_TYPE(found))) return 0;
  const PyMemberDef* member = ((PyMemberDescrObject*)found)->d_member;
  return member->type == T_OBJECT_EX && member->flags == 0 ? member->offset : 0;
}

/* As Modules/_collectionsmodule.c has it, and as one that is made shows. */
typedef struct {
  PyObject_HEAD Py_ssize_t index;
} name_of_item;

static PyTypeObject* type_of_names(void) {
  static PyTypeObject* type = NULL;
  static int known = 0;
  PyObject* name = known ? NULL : PyUnicode_FromString("_collections");
  PyObject* module = name == NULL ? NULL : PyImport_GetModule(name);
  PyObject* found = module == NULL || !PyModule_CheckExact(module) ? NULL : PyDict_GetItemString(PyModule_GetDict(module), "_tuplegetter");
  if (found != NULL && PyType_Check(found) && ((PyTypeObject*)found)->tp_basicsize >= (Py_ssize_t)sizeof(name_of_item)) {
    PyObject* made = PyObject_CallFunction(found, "ns", (Py_ssize_t)77, "");
    if (made != NULL && Py_IS_TYPE(made, (PyTypeObject*)found) && ((name_of_item*)made)->index == 77)
      type = (PyTypeObject*)Py_NewRef(found);
    Py_XDECREF(made);
    known = 1;
  }
  Py_XDECREF(module);
  Py_XDECREF(name);
  PyErr_Clear();
  return type;
}

Py_ssize_t dalsegno_named_item(PyTypeObject* type, PyObject* found) {
  if (found == NULL || !PyType_HasFeature(type, Py_TPFLAGS_TUPLE_SUBCLASS) || !Py_IS_TYPE(found, type_of_names())) return 0;
  const Py_ssize_t index = ((name_of_item*)found)->index;
  return index >= 0 ? index + 1 : 0;
}

static int class_gives_now(const dalsegno_attribute* a, dalsegno_attribute_cache* cache) {
  if (_PyType_Lookup(a->type, a->name) != a->found) return 0;
    /* The look-up gave the type a version, if it has any left to give. (Since 3.13 no flag says that it is valid: else it is 0.) */
#if PY_VERSION_HEX >= 0x030d0000
  const int has_version = a->type->tp_version_tag != 0;
#else
  const int has_version = PyType_HasFeature(a->type, Py_TPFLAGS_VALID_VERSION_TAG) && a->type->tp_version_tag != 0;
#endif
  cache->version = has_version ? (uint64_t)a->type->tp_version_tag + 1 : 0;
  look_for_index(a->type, a->name, cache);
  cache->items = dalsegno_named_item(a->type, a->found);
  cache->slot = cache->items == 0 ? dalsegno_slot_offset(a->type, a->found)
                                  : (Py_ssize_t)offsetof(PyTupleObject, ob_item) + (cache->items - 1) * (Py_ssize_t)sizeof(PyObject*);
  return 1;
}

/* A type that is changed loses its version, and never gets an old one again. */
static inline int same_class(PyObject* object, const dalsegno_attribute* a, const dalsegno_attribute_cache* cache) {
  return Py_TYPE(object) == a->type && (uint64_t)a->type->tp_version_tag + 1 == cache->version;
}

typedef enum { GET, SET } use;

static inline int class_gives(PyObject* object, const dalsegno_attribute* a, use what_for, dalsegno_attribute_cache* cache) {
  if (LIKELY(same_class(object, a, cache))) return 1;
  if (Py_TYPE(object) != a->type) return 0;
  const int ordinary = what_for == GET ? a->type->tp_getattro == PyObject_GenericGetAttr : a->type->tp_setattro == PyObject_GenericSetAttr;
  return ordinary && class_gives_now(a, cache);
}

/* Where the value stands; NULL: the class's instances have no place for it yet. */
static inline PyObject** place_in(PyObject** values, PyObject* object, const dalsegno_attribute* a, dalsegno_attribute_cache* cache) {
  if (LIKELY(cache->index >= 0)) return &values[cache->index];
  PyDictKeysObject* keys = shared_keys(Py_TYPE(object));
  if (keys == NULL || keys->dk_nentries == cache->entries) return NULL;
  look_for_index(a->type, a->name, cache);
  return cache->index >= 0 ? &values[cache->index] : NULL;
}

/* A dict that has str for keys alone compares nothing else with a name. */
static int has_only_names(PyObject* dict) { return DK_IS_UNICODE(((PyDictObject*)dict)->ma_keys); }

/* Borrowed. */
static PyObject* find_in_dict(PyObject* dict, PyObject* name) {
  PyObject* found = PyDict_GetItemWithError(dict, name);
  if (found == NULL) PyErr_Clear();
  return found;
}

/* NULL: the named tuple has not so many items. */
static inline PyObject** slot_in(PyObject* object, const dalsegno_attribute_cache* cache) {
  if (cache->items != 0 && Py_SIZE(object) < cache->items) return NULL;
  return (PyObject**)((char*)object + cache->slot);
}

/* Where a dict that has str for keys alone keeps the value of an interned name; NULL: nowhere, or it takes a look-up to tell. */
static PyObject** entry_in(PyDictObject* dict, PyObject* name, dalsegno_attribute_cache* cache) {
  enum { kMostEntries = 32 };
  PyDictKeysObject* keys = dict->ma_keys;
  PyDictUnicodeEntry* entries = DK_UNICODE_ENTRIES(keys);
  Py_ssize_t i = cache->entry;
  if (i >= keys->dk_nentries || entries[i].me_key != name) {
    const Py_ssize_t n = keys->dk_nentries < kMostEntries ? keys->dk_nentries : kMostEntries;
    for (i = 0; i < n && entries[i].me_key != name; i++) continue;
    if (i == n) return NULL;
    cache->entry = i;
  }
  return dict->ma_values != NULL ? &dict->ma_values->values[i] : &entries[i].me_value;
}

PyObject** dalsegno_attribute_place(PyObject* object, const dalsegno_attribute* a, int sets, dalsegno_attribute_cache* cache,
                                    PyObject** dict) {
  *dict = NULL;
  if (!class_gives(object, a, sets ? SET : GET, cache)) return NULL;
  if (cache->items != 0 && sets) return NULL;
  if (cache->slot != 0) return slot_in(object, cache);
  PyObject** values = values_of(object, dict);
  if (values != NULL) return place_in(values, object, a, cache);
  return *dict != NULL && PyDict_CheckExact(*dict) && has_only_names(*dict) ? entry_in((PyDictObject*)*dict, a->name, cache) : NULL;
}

int dalsegno_keeps(PyTypeObject* type, PyObject* found) {
  if (dalsegno_slot_offset(type, found) != 0) return DALSEGNO_KEEPS_IN_SLOT;
  if (dalsegno_named_item(type, found) != 0) return DALSEGNO_KEEPS_ITEM;
  int pointer, first, tag;
  const int values = dalsegno_values_layout(&pointer, &first, &tag) && PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT);
  return values ? DALSEGNO_KEEPS_VALUES : DALSEGNO_KEEPS_ELSEWHERE;
}

int dalsegno_values_layout(int* pointer, int* first, int* tag) {
  *pointer = *first = *tag = 0;
#if PY_VERSION_HEX >= 0x030d0000
  return 0;
#elif PY_VERSION_HEX >= 0x030c0000
  *pointer = -3 * (int)sizeof(void*), *first = 1, *tag = 1;
  return 1;
#else
  *pointer = -4 * (int)sizeof(void*), *first = 0, *tag = 0;
  return 1;
#endif
}

PyObject* dalsegno_own_attribute(PyObject* object, const dalsegno_attribute* a, dalsegno_attribute_cache* cache) {
  PyObject* dict;
  if (!class_gives(object, a, GET, cache)) return NULL;
  if (cache->slot != 0) {
    PyObject** slot = slot_in(object, cache);
    return slot == NULL ? NULL : Py_XNewRef(*slot);
  }
  PyObject** values = values_of(object, &dict);
  if (LIKELY(values != NULL)) {
    PyObject** place = place_in(values, object, a, cache);
    return place == NULL ? NULL : Py_XNewRef(*place);
  }
  return dict != NULL && has_only_names(dict) ? Py_XNewRef(find_in_dict(dict, a->name)) : NULL;
}

int dalsegno_has_class_attribute(PyObject* object, const dalsegno_attribute* a, dalsegno_attribute_cache* cache) {
  PyObject* dict;
  if (!class_gives(object, a, GET, cache) || cache->slot != 0) return 0;
  PyObject** values = values_of(object, &dict);
  if (LIKELY(values != NULL)) {
    PyObject** place = place_in(values, object, a, cache);
    return place == NULL || *place == NULL;
  }
  return dict == NULL || (has_only_names(dict) && find_in_dict(dict, a->name) == NULL);
}

PyObject* dalsegno_replace_own_attribute(PyObject* object, const dalsegno_attribute* a, PyObject* value, dalsegno_attribute_cache* cache) {
  PyObject* dict;
  if (!class_gives(object, a, SET, cache) || cache->slot != 0) return NULL;
  PyObject** values = values_of(object, &dict);
  if (LIKELY(values != NULL)) {
    PyObject** place = place_in(values, object, a, cache);
    if (place == NULL || *place == NULL) return NULL;
    PyObject* old = *place;
    *place = Py_NewRef(value);
    return old;
  }
  if (dict == NULL || !has_only_names(dict)) return NULL;
  PyObject* old = Py_XNewRef(find_in_dict(dict, a->name));
  if (old == NULL || PyDict_SetItem(dict, a->name, value) == 0) return old;
  Py_DECREF(old);
  PyErr_Clear();
  return NULL;
}

/* A place in an array of values that is empty: which one has been filled in what order is kept there, too. */
static int fill_place(PyObject* object, const dalsegno_attribute* a, PyObject* value) {
  if (PyObject_GenericSetAttr(object, a->name, value) == 0) return 1;
  PyErr_Clear();
  return 0;
}

int dalsegno_add_own_attribute(PyObject* object, const dalsegno_attribute* a, PyObject* value, dalsegno_attribute_cache* cache) {
  PyObject* dict;
  if (!class_gives(object, a, SET, cache) || cache->slot != 0) return 0;
  PyObject** values = values_of(object, &dict);
  if (LIKELY(values != NULL)) {
    PyObject** place = place_in(values, object, a, cache);
    if (place == NULL) return fill_place(object, a, value);
    if (*place != NULL) return 0;
#if PY_VERSION_HEX < 0x030c0000
    *place = Py_NewRef(value);
    _PyDictValues_AddToInsertionOrder(*_PyObject_ValuesPointer(object), cache->index);
    return 1;
#else
    return fill_place(object, a, value);
#endif
  }
  if (dict != NULL && (!has_only_names(dict) || find_in_dict(dict, a->name) != NULL)) return 0;
  return fill_place(object, a, value);
}

int dalsegno_makes_instances(PyTypeObject* type) {
  return Py_IS_TYPE(type, &PyType_Type) && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_new == PyBaseObject_Type.tp_new &&
         !PyType_HasFeature(type, Py_TPFLAGS_IS_ABSTRACT);
}

int dalsegno_has_true_instances(PyTypeObject* type) {
  const PyHeapTypeObject* of = (const PyHeapTypeObject*)type;
  return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_as_number == &of->as_number && type->tp_as_mapping == &of->as_mapping &&
         type->tp_as_sequence == &of->as_sequence && of->as_number.nb_bool == NULL && of->as_mapping.mp_length == NULL &&
         of->as_sequence.sq_length == NULL;
}

PyObject* dalsegno_make_instance(const dalsegno_attribute* a, dalsegno_attribute_cache* cache) {
  PyTypeObject* type = a->type;
  const int same = (uint64_t)type->tp_version_tag + 1 == cache->version;
  if (!LIKELY(same) && (!dalsegno_makes_instances(type) || !class_gives_now(a, cache))) return NULL;
  PyObject* none = PyTuple_New(0);
  PyObject* made = none == NULL ? NULL : type->tp_new(type, none, NULL);
  Py_XDECREF(none);
  if (made == NULL) PyErr_Clear();
  return made;
}
