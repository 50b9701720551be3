# The extension modules: dalsegno._core, dalsegno._halide and, in development builds, dalsegno._testing.

# _dalsegno_module(_core folder SOURCES... LINK ...): nothing while its main source does not exist yet.
function(_dalsegno_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  list(GET arg_SOURCES 0 main)
  file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${main}")
  if(NOT found)
    return()
  endif()
  # NO_EXTRAS: no link-time optimisation, which would make every small change a long build.
  pybind11_add_module(${name} MODULE NO_EXTRAS ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  if(DALSEGNO_DEV)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_SOURCE_DIR}/dalsegno")
  endif()
endfunction()

file(GLOB bindings RELATIVE "${PROJECT_SOURCE_DIR}" CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/replay/bind/*.cc")
list(REMOVE_ITEM bindings replay/bind/module.cc)
_dalsegno_module(_core SOURCES replay/bind/module.cc ${bindings} LINK replay trace_recorder numpy hook store trace)
_dalsegno_module(_halide SOURCES halide_gen/module.cc LINK halide_gen)

# A process has one machine, so _testing must not bring a second one along: its code is in _core's library, which gets a second name.
# (CPython finds a module's PyInit_ function by the name it was imported by; the dynamic linker loads a file once.)
if(DALSEGNO_DEV AND TARGET _core)
  file(GLOB testing CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/replay/testing/*.cc")
  add_library(hook_testing OBJECT "${PROJECT_SOURCE_DIR}/hook/testing.cc")
  target_include_directories(hook_testing PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(hook_testing PRIVATE dalsegno_python)
  dalsegno_python_internals(hook_testing)
  target_sources(_core PRIVATE ${testing} $<TARGET_OBJECTS:hook_testing>)
  add_custom_command(
    TARGET _core POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE_NAME:_core> "$<TARGET_FILE_DIR:_core>/_testing$<TARGET_FILE_SUFFIX:_core>")
endif()

if(TARGET _core)
  # The bindings: much code made of pybind11's templates, none of which a call of a jitted function runs.
  target_compile_options(_core PRIVATE -O1)
  dalsegno_precompile(_core <pybind11/pybind11.h> <pybind11/stl.h>)
  install(TARGETS _core LIBRARY DESTINATION dalsegno)
endif()
if(TARGET _halide)
  # Installed, libHalide.so lies beside dalsegno in site-packages; in development, wherever the build environment has it.
  set_target_properties(_halide PROPERTIES INSTALL_RPATH "$ORIGIN/../halide/lib64")
  install(TARGETS _halide LIBRARY DESTINATION dalsegno)
endif()
