/* See lookups.h. The tables are walked as Objects/dictobject.c (unicodekeys_lookup_generic, dictkeys_generic_lookup) and
   Objects/setobject.c (set_lookkey) walk them; the same in all versions. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "hook/lookups.h"

#include <Python.h>

#include "internal/pycore_dict.h"

/* Comparing it with a plain key may run what somebody wrote in Python: that of tuples compares their items. */
static int may_run_code_within(PyObject* key, int depth) {
  if (!PyTuple_CheckExact(key)) return PyType_HasFeature(Py_TYPE(key), Py_TPFLAGS_HEAPTYPE);
  if (depth == 0) return 1;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(key); k++)
    if (may_run_code_within(PyTuple_GET_ITEM(key, k), depth - 1)) return 1;
  return 0;
}
static int may_run_code(PyObject* key) { return may_run_code_within(key, 4); }

/* A tuple of what hashes and compares in C alone. */
static int is_plain_tuple(PyObject* tuple) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); k++) {
    PyObject* item = PyTuple_GET_ITEM(tuple, k);
    const int number = PyLong_CheckExact(item) || PyFloat_CheckExact(item) || PyBool_Check(item) || PyComplex_CheckExact(item);
    if (!number && !PyUnicode_CheckExact(item) && !PyBytes_CheckExact(item) && item != Py_None) return 0;
  }
  return 1;
}

static Py_ssize_t index_at(const PyDictKeysObject* keys, size_t slot) {
  const char* indices = keys->dk_indices;
  if (keys->dk_log2_size < 8) return ((const int8_t*)indices)[slot];
  if (keys->dk_log2_size < 16) return ((const int16_t*)indices)[slot];
  if (keys->dk_log2_size < 32) return ((const int32_t*)indices)[slot];
  return (Py_ssize_t)((const int64_t*)indices)[slot];
}

static int quiet_in_dict(PyDictKeysObject* keys, PyObject* key, Py_hash_t hash) {
  const PyDictKeyEntry* entries = DK_ENTRIES(keys);
  const size_t mask = (size_t)DK_SIZE(keys) - 1;
  size_t perturb = (size_t)hash, slot = (size_t)hash & mask;
  for (;;) {
    const Py_ssize_t index = index_at(keys, slot);
    if (index == -1) return 1; /* never used */
    if (index >= 0) {
      const PyDictKeyEntry* entry = &entries[index];
      if (entry->me_key == key) return 1;
      if (entry->me_hash == hash && entry->me_key != NULL && may_run_code(entry->me_key)) return 0;
    }
    perturb >>= 5;
    slot = (slot * 5 + perturb + 1) & mask;
  }
}

static int quiet_in_set(const PySetObject* set, PyObject* key, Py_hash_t hash) {
  enum { kLinearProbes = 9 };
  const size_t mask = (size_t)set->mask;
  size_t perturb = (size_t)hash, slot = (size_t)hash & mask;
  for (;;) {
    const size_t last = slot + kLinearProbes <= mask ? slot + kLinearProbes : slot;
    for (size_t i = slot; i <= last; i++) {
      const setentry* entry = &set->table[i];
      if (entry->key == NULL && entry->hash == 0) return 1; /* never used */
      if (entry->key == key) return 1;
      if (entry->hash == hash && entry->key != NULL && may_run_code(entry->key)) return 0;
    }
    perturb >>= 5;
    slot = (slot * 5 + 1 + perturb) & mask;
  }
}

int dalsegno_quiet_lookup(PyObject* container, PyObject* key) {
  const int is_dict = PyDict_CheckExact(container);
  if (PyTuple_CheckExact(key) && !is_plain_tuple(key)) return 0;
  /* Keys that are all str compare with nothing but C code. */
  if (is_dict && DK_IS_UNICODE(((PyDictObject*)container)->ma_keys)) return 1;
  if (!is_dict && !PyAnySet_CheckExact(container)) return 0;
  const Py_hash_t hash = PyObject_Hash(key);
  if (hash == -1) {
    PyErr_Clear();
    return 0;
  }
  return is_dict ? quiet_in_dict(((PyDictObject*)container)->ma_keys, key, hash) : quiet_in_set((PySetObject*)container, key, hash);
}

/* The index of the entry whose key is `key` itself; -1: there is none, -2: one that may be equal has the same hash. */
static Py_ssize_t find_itself(PyDictKeysObject* keys, PyObject* key, Py_hash_t hash) {
  const int unicode = DK_IS_UNICODE(keys);
  const size_t mask = (size_t)DK_SIZE(keys) - 1;
  size_t perturb = (size_t)hash, slot = (size_t)hash & mask;
  for (;;) {
    const Py_ssize_t index = index_at(keys, slot);
    if (index == -1) return -1;
    if (index >= 0) {
      PyObject* there = unicode ? DK_UNICODE_ENTRIES(keys)[index].me_key : DK_ENTRIES(keys)[index].me_key;
      if (there == key) return index;
      if (there != NULL && (unicode ? ((PyASCIIObject*)there)->hash : DK_ENTRIES(keys)[index].me_hash) == hash) return -2;
    }
    perturb >>= 5;
    slot = (slot * 5 + perturb + 1) & mask;
  }
}

PyObject* dalsegno_value_at(PyObject* dict, PyObject* key) {
  const PyDictObject* d = (const PyDictObject*)dict;
  const Py_hash_t hash = PyObject_Hash(key);
  Py_ssize_t index = -2;
  if (hash != -1 && d->ma_values == NULL) index = find_itself(d->ma_keys, key, hash);
  if (index == -1) return NULL;
  if (index >= 0)
    return DK_IS_UNICODE(d->ma_keys) ? DK_UNICODE_ENTRIES(d->ma_keys)[index].me_value : DK_ENTRIES(d->ma_keys)[index].me_value;
  PyObject* found = PyDict_GetItemWithError(dict, key);
  if (found == NULL) PyErr_Clear();
  return found;
}
