/* See lookups.h. The tables are walked as Objects/dictobject.c (unicodekeys_lookup_generic, dictkeys_generic_lookup) and
   Objects/setobject.c (set_lookkey) walk them; the same in all versions. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "hook/lookups.h"

#include <Python.h>

#include "internal/pycore_dict.h"
#include "structmember.h"

/* Comparing it with a plain key may run what somebody wrote in Python: that of tuples compares their items. */
static int may_run_code_within(PyObject* key, int depth) {
  if (!PyTuple_CheckExact(key)) return PyType_HasFeature(Py_TYPE(key), Py_TPFLAGS_HEAPTYPE);
  if (depth == 0) return 1;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(key); k++)
    if (may_run_code_within(PyTuple_GET_ITEM(key, k), depth - 1)) return 1;
  return 0;
}
static int may_run_code(PyObject* key) { return may_run_code_within(key, 4); }

static int is_plain_key(PyObject* key) {
  const int number = PyLong_CheckExact(key) || PyFloat_CheckExact(key) || PyBool_Check(key) || PyComplex_CheckExact(key);
  return number || PyUnicode_CheckExact(key) || PyBytes_CheckExact(key) || key == Py_None;
}

/* It hashes and compares by what it is, as every object does that says nothing else. */
static int has_identity(PyObject* key) {
  const PyTypeObject* type = Py_TYPE(key);
  return type->tp_hash == PyBaseObject_Type.tp_hash && type->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

/* A tuple of what hashes and compares in C alone. */
static int is_plain_tuple(PyObject* tuple) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); k++)
    if (!is_plain_key(PyTuple_GET_ITEM(tuple, k))) return 0;
  return 1;
}

static int is_plain(PyObject* key) { return PyTuple_CheckExact(key) ? is_plain_tuple(key) : is_plain_key(key); }

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

/* key: NULL, if it is none of the set's own that ends the search. */
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

/* collections.defaultdict, and where its instances keep what makes their values; it cannot be changed, and is never freed. */
static PyTypeObject* default_dict = NULL;
static Py_ssize_t factory_offset = 0;

static int find_default_dict(PyTypeObject* type) {
  const int fixed = !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE);
  if (!fixed || strcmp(type->tp_name, "collections.defaultdict") != 0) return 0;
  if (type->tp_as_mapping->mp_subscript != PyDict_Type.tp_as_mapping->mp_subscript || type->tp_members == NULL) return 0;
  for (const PyMemberDef* member = type->tp_members; member->name != NULL; member++)
    if (strcmp(member->name, "default_factory") == 0) factory_offset = member->offset;
  if (factory_offset == 0) return 0;
  default_dict = type;
  return 1;
}

static inline int is_table(PyObject* o) {
  if (PyDict_CheckExact(o)) return 1;
  return PyDict_Check(o) && (default_dict != NULL ? Py_TYPE(o) == default_dict : find_default_dict(Py_TYPE(o)));
}
int dalsegno_is_table(PyObject* o) { return o != NULL && is_table(o); }

int dalsegno_missing_is_quiet(PyObject* table) {
  if (PyDict_CheckExact(table)) return 0;
  const PyObject* made_by = *(PyObject**)((char*)table + factory_offset);
  const PyTypeObject* quiet[] = {&PyLong_Type, &PyFloat_Type, &PyList_Type, &PyDict_Type, &PySet_Type, &PyUnicode_Type, &PyTuple_Type};
  for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
    if (made_by == (const PyObject*)quiet[i]) return 1;
  return 0;
}

int dalsegno_quiet_lookup(PyObject* container, PyObject* key) {
  const int is_dict = dalsegno_is_table(container);
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

/* ---- look-ups that are quiet, or not done -------------------------------------------------------------------------------------------- */

typedef enum { NOT_QUIET = -1, UNEQUAL, EQUAL } comparison;

/* Keys are mostly short: a call would take longer. */
static inline int same_bytes(const char* a, const char* b, size_t n) {
  if (n > 16) return memcmp(a, b, n) == 0;
  if (n >= 8) {
    uint64_t first[2], last[2];
    memcpy(&first[0], a, 8), memcpy(&first[1], b, 8), memcpy(&last[0], a + n - 8, 8), memcpy(&last[1], b + n - 8, 8);
    return first[0] == first[1] && last[0] == last[1];
  }
  for (size_t i = 0; i < n; i++)
    if (a[i] != b[i]) return 0;
  return 1;
}

static inline comparison same_texts(PyObject* a, PyObject* b) {
  const Py_ssize_t n = PyUnicode_GET_LENGTH(a);
  if (n != PyUnicode_GET_LENGTH(b) || PyUnicode_KIND(a) != PyUnicode_KIND(b)) return UNEQUAL;
  return same_bytes(PyUnicode_DATA(a), PyUnicode_DATA(b), (size_t)n * (size_t)PyUnicode_KIND(a));
}

/* Ints of at most one digit. */
static int one_digit(PyObject* n, Py_ssize_t* value) {
#if PY_VERSION_HEX >= 0x030c0000
  if (!PyUnstable_Long_IsCompact((PyLongObject*)n)) return 0;
  *value = PyUnstable_Long_CompactValue((PyLongObject*)n);
#else
  const Py_ssize_t size = Py_SIZE(n);
  if (size < -1 || size > 1) return 0;
  *value = size * (Py_ssize_t)((PyLongObject*)n)->ob_digit[0];
#endif
  return 1;
}

/* A key that stands in the table is compared with one of the same hash, as the table would. */
static __attribute__((noinline)) comparison compare_others(PyObject* there, PyObject* key) {
  if (may_run_code(there)) return NOT_QUIET;
  const int equal = PyObject_RichCompareBool(there, key, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal < 0 ? NOT_QUIET : (comparison)equal;
}
static inline comparison compare(PyObject* there, PyObject* key) {
  if (PyUnicode_CheckExact(there) && PyUnicode_CheckExact(key)) return same_texts(there, key);
  Py_ssize_t a, b;
  if (PyLong_CheckExact(there) && PyLong_CheckExact(key) && one_digit(there, &a) && one_digit(key, &b)) return a == b;
  return compare_others(there, key);
}

static inline PyObject* value_of_entry(const PyDictObject* dict, Py_ssize_t index) {
  if (dict->ma_values != NULL) return dict->ma_values->values[index];
  return DK_IS_UNICODE(dict->ma_keys) ? DK_UNICODE_ENTRIES(dict->ma_keys)[index].me_value : DK_ENTRIES(dict->ma_keys)[index].me_value;
}

/* In a table whose keys are all str. */
static Py_ssize_t find_text(PyDictKeysObject* keys, PyObject* text, Py_hash_t hash) {
  const PyDictUnicodeEntry* entries = DK_UNICODE_ENTRIES(keys);
  const size_t mask = (size_t)DK_SIZE(keys) - 1;
  size_t perturb = (size_t)hash, slot = (size_t)hash & mask;
  for (;;) {
    const Py_ssize_t index = index_at(keys, slot);
    if (index == -1) return -1;
    if (index >= 0) {
      PyObject* there = entries[index].me_key;
      if (there == text || (((PyASCIIObject*)there)->hash == hash && same_texts(there, text))) return index;
    }
    perturb >>= 5;
    slot = (slot * 5 + perturb + 1) & mask;
  }
}

/* The index of the entry; -1: there is none, -2: that cannot be told. */
static __attribute__((noinline)) Py_ssize_t find_in_dict(const PyDictObject* dict, PyObject* key, Py_hash_t hash) {
  PyDictKeysObject* keys = dict->ma_keys;
  const int unicode = DK_IS_UNICODE(keys);
  if (unicode && PyUnicode_CheckExact(key)) return find_text(keys, key, hash);
  const size_t mask = (size_t)DK_SIZE(keys) - 1;
  size_t perturb = (size_t)hash, slot = (size_t)hash & mask;
  for (;;) {
    const Py_ssize_t index = index_at(keys, slot);
    if (index == -1) return -1;
    if (index >= 0) {
      PyObject* there = unicode ? DK_UNICODE_ENTRIES(keys)[index].me_key : DK_ENTRIES(keys)[index].me_key;
      comparison result = there == key ? EQUAL : UNEQUAL;
      if (!result && there != NULL && (unicode ? ((PyASCIIObject*)there)->hash : DK_ENTRIES(keys)[index].me_hash) == hash)
        result = compare(there, key);
      if (result == NOT_QUIET) return -2;
      if (result == EQUAL) return index;
    }
    perturb >>= 5;
    slot = (slot * 5 + perturb + 1) & mask;
  }
}

static __attribute__((noinline)) int find_in_set(const PySetObject* set, PyObject* key, Py_hash_t hash) {
  enum { kLinearProbes = 9 };
  const size_t mask = (size_t)set->mask;
  size_t perturb = (size_t)hash, slot = (size_t)hash & mask;
  for (;;) {
    const size_t last = slot + kLinearProbes <= mask ? slot + kLinearProbes : slot;
    for (size_t i = slot; i <= last; i++) {
      const setentry* entry = &set->table[i];
      if (entry->key == NULL && entry->hash == 0) return 0;
      if (entry->hash != hash || entry->key == NULL) continue;
      const comparison result = entry->key == key ? EQUAL : compare(entry->key, key);
      if (result != UNEQUAL) return result;
    }
    perturb >>= 5;
    slot = (slot * 5 + 1 + perturb) & mask;
  }
}

/* (That of an int of one digit is the int, but for -1.) */
static inline Py_hash_t hash_of(PyObject* key) {
  Py_ssize_t known = -1;
  if (PyUnicode_CheckExact(key)) known = ((PyASCIIObject*)key)->hash;
  if (PyLong_CheckExact(key) && !one_digit(key, &known)) known = -1;
  return known != -1 ? known : PyObject_Hash(key);
}

/* A dict gets another version with each change, and never an old one again; 0: this interpreter has none. */
static inline int64_t version_of(PyObject* dict) {
#if PY_VERSION_HEX >= 0x030c0000
  (void)dict;
  return 0;
#else
  return (int64_t)((PyDictObject*)dict)->ma_version_tag;
#endif
}

int dalsegno_find(PyObject* container, PyObject* key, PyObject** value, dalsegno_found* found) {
  *value = NULL;
  const int is_dict = is_table(container);
  if (is_dict && found->version != 0 && found->version == version_of(container)) {
    if (found->index >= 0) *value = value_of_entry((PyDictObject*)container, found->index);
    return *value != NULL;
  }
  found->version = 0;
  if (PyTuple_CheckExact(key) && !is_plain_tuple(key)) return -1;
  if (!is_dict && !PyAnySet_CheckExact(container)) return -1;
  const Py_hash_t hash = hash_of(key);
  if (hash == -1) {
    PyErr_Clear();
    return -1;
  }
  if (!is_dict) return find_in_set((PySetObject*)container, key, hash);
  const Py_ssize_t index = find_in_dict((PyDictObject*)container, key, hash);
  if (index == -2) return -1;
  found->index = index;
  found->version = version_of(container);
  if (index >= 0) *value = value_of_entry((PyDictObject*)container, index);
  return *value != NULL;
}

int dalsegno_find_in(PyObject* dict, PyObject* key, PyObject** value) {
  *value = NULL;
  if (!is_plain(key) && !has_identity(key)) return -1;
  const Py_hash_t hash = hash_of(key);
  if (hash == -1) PyErr_Clear();
  const Py_ssize_t index = hash == -1 ? -2 : find_in_dict((PyDictObject*)dict, key, hash);
  if (index == -2) return -1;
  if (index >= 0) *value = value_of_entry((PyDictObject*)dict, index);
  return *value != NULL;
}

int dalsegno_holds_plain_keys(PyObject* set, Py_ssize_t most) {
  const PySetObject* s = (const PySetObject*)set;
  if (!PyAnySet_CheckExact(set) || s->used > most || s->mask > 8 * most) return 0;
  for (Py_ssize_t k = 0; k <= s->mask; k++) {
    PyObject* key = s->table[k].key;
    if (key == NULL || s->table[k].hash == -1) continue; /* (-1: a key that was taken out) */
    if (!is_plain(key)) return 0;
  }
  return 1;
}

int dalsegno_join_quietly(PyObject* few, PyObject* many, Py_ssize_t most) {
  if (!PyAnySet_CheckExact(many) || !dalsegno_holds_plain_keys(few, most)) return 0;
  const PySetObject* s = (const PySetObject*)few;
  for (Py_ssize_t k = 0; k <= s->mask; k++)
    if (s->table[k].key != NULL && s->table[k].hash != -1 && !quiet_in_set((const PySetObject*)many, NULL, s->table[k].hash)) return 0;
  return 1;
}

/* (The key that stands in the table is found by what it is, without a comparison.) */
int dalsegno_put(PyObject* dict, PyObject* key, PyObject* value, dalsegno_found* found) {
  PyDictKeysObject* keys = ((PyDictObject*)dict)->ma_keys;
  const int there = found->version != 0 && found->version == version_of(dict) && found->index >= 0;
  if (there) key = DK_IS_UNICODE(keys) ? DK_UNICODE_ENTRIES(keys)[found->index].me_key : DK_ENTRIES(keys)[found->index].me_key;
  const int failed = PyDict_SetItem(dict, key, value);
  found->version = there && !failed ? version_of(dict) : 0;
  return failed;
}
