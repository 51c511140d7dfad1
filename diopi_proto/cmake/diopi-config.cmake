# find_package(diopi) gives the target diopi::rt: the headers <diopi/...> and the runtime libdiopirt.so.
# Configure with -Ddiopi_DIR=$(python -m diopi_proto --cmake-dir).
get_filename_component(_diopi_root "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(_diopi_library "${_diopi_root}/lib_rt/libdiopirt.so")

if(NOT EXISTS "${_diopi_library}")
  set(diopi_FOUND FALSE)
  set(diopi_NOT_FOUND_MESSAGE "the runtime was not built: there is no ${_diopi_library}")
  return()
endif()

if(NOT TARGET diopi::rt)
  add_library(diopi::rt SHARED IMPORTED)
  set_target_properties(diopi::rt PROPERTIES
    IMPORTED_LOCATION "${_diopi_library}"
    IMPORTED_SONAME libdiopirt.so
    INTERFACE_INCLUDE_DIRECTORIES "${_diopi_root}/diopi_proto/include")
endif()
unset(_diopi_library)
unset(_diopi_root)
