# The extension modules: dalsegno._core, dalsegno._halide and, for tests only, dalsegno._hooktest.

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
_dalsegno_module(_hooktest SOURCES hook/testing.cc LINK hook dalsegno_python)

if(TARGET _core)
  install(TARGETS _core LIBRARY DESTINATION dalsegno)
endif()
if(TARGET _halide)
  # Installed, libHalide.so lies beside dalsegno in site-packages; in development, wherever the build environment has it.
  set_target_properties(_halide PROPERTIES INSTALL_RPATH "$ORIGIN/../halide/lib64")
  install(TARGETS _halide LIBRARY DESTINATION dalsegno)
endif()
if(TARGET _hooktest)
  dalsegno_python_internals(_hooktest)
endif()
