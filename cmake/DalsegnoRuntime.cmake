# libdalsegno_rt.so: what kernels call. Halide's own runtime, compiled once, here (`runtime_generator OUT.o` writes it), and the sources of
# halide_gen/runtime/. It is loaded with its symbols visible, so nothing in it is hidden.
set(DALSEGNO_RUNTIME_TARGET "")
set(generator "${PROJECT_SOURCE_DIR}/halide_gen/runtime_generator.cc")
file(GLOB runtime_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/halide_gen/runtime/*.cc")
list(FILTER runtime_sources EXCLUDE REGEX "_test\\.cc$")
file(GLOB generator_found CONFIGURE_DEPENDS "${generator}")

if(runtime_sources AND generator_found)
  # Compiled as a library's code is, for the precompiled header.
  add_library(runtime_generator_code OBJECT "${generator}")
  target_link_libraries(runtime_generator_code PRIVATE Halide::Halide)
  dalsegno_precompile(runtime_generator_code AS halide_gen)
  add_executable(runtime_generator)
  target_link_libraries(runtime_generator PRIVATE runtime_generator_code Halide::Halide)
  set(runtime_object "${CMAKE_CURRENT_BINARY_DIR}/halide_runtime.o")
  add_custom_command(
    OUTPUT "${runtime_object}"
    COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:runtime_generator> "${runtime_object}"
    DEPENDS runtime_generator VERBATIM)
  set_source_files_properties("${runtime_object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)

  add_library(dalsegno_rt SHARED ${runtime_sources} "${runtime_object}")
  target_include_directories(dalsegno_rt PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(dalsegno_rt PRIVATE Halide::Runtime Threads::Threads ${CMAKE_DL_LIBS} m)
  # Copies and fills: -O2 of GCC leaves these loops at an element a turn.
  set_source_files_properties("${PROJECT_SOURCE_DIR}/halide_gen/runtime/pack.cc" PROPERTIES COMPILE_OPTIONS -O3)
  set_target_properties(dalsegno_rt PROPERTIES CXX_VISIBILITY_PRESET default C_VISIBILITY_PRESET default)
  if(DALSEGNO_DEV)
    set_target_properties(dalsegno_rt PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_SOURCE_DIR}/dalsegno/lib")
    if(DALSEGNO_ALONE)  # made for another C library than the other versions', perhaps: it must not take the place of theirs
      set_target_properties(dalsegno_rt PROPERTIES OUTPUT_NAME "dalsegno_rt.${Python_SOABI}")
    endif()
  endif()
  install(TARGETS dalsegno_rt LIBRARY DESTINATION dalsegno/lib)
  set(DALSEGNO_RUNTIME_TARGET dalsegno_rt)
  add_dependencies(plain dalsegno_rt)
endif()
