# The Python module ogrjoin._core. The library is linked into it, and its only
# visible symbol is PyInit__core. One module serves CPython 3.11 and all later
# ones (limited API). A Python without the GIL has no limited API before 3.15,
# and gets a module of its own.

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -c
  "import sysconfig; print(int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))), sysconfig.get_config_var('EXT_SUFFIX'), end='')"
  OUTPUT_VARIABLE oj_python_kind COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE " " ";" oj_python_kind "${oj_python_kind}")
list(GET oj_python_kind 0 oj_python_is_free)
list(GET oj_python_kind 1 oj_python_suffix)
add_library(ogrjoin_python MODULE driver/python/core.c
            $<TARGET_OBJECTS:ogrjoin_core> ${OJ_TREE_REFERENCES})
set_target_properties(ogrjoin_python PROPERTIES
  PREFIX "" OUTPUT_NAME _core
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/ogrjoin)
if(oj_python_is_free)
  set_target_properties(ogrjoin_python PROPERTIES SUFFIX ${oj_python_suffix})
  target_compile_definitions(ogrjoin_python PRIVATE Py_GIL_DISABLED=1)
else()
  set_target_properties(ogrjoin_python PROPERTIES SUFFIX .abi3.so)
  target_compile_definitions(ogrjoin_python PRIVATE Py_LIMITED_API=0x030b0000)
endif()
target_include_directories(ogrjoin_python SYSTEM PRIVATE ${Python_INCLUDE_DIRS})
target_link_libraries(ogrjoin_python PRIVATE oj_flags Threads::Threads
                                             PkgConfig::GEOS
                                             ${OJ_PROJ_LIBRARY} m
                                             ${CMAKE_DL_LIBS})
if(NOT APPLE)
  target_link_options(ogrjoin_python PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/core.map)
else()
  target_link_options(ogrjoin_python PRIVATE -undefined dynamic_lookup)
endif()
install(TARGETS ogrjoin_python LIBRARY DESTINATION ogrjoin COMPONENT python
        EXCLUDE_FROM_ALL)

# Copies the files of the package beside the module, for the tests.
file(GLOB_RECURSE OJ_PYTHON_FILES CONFIGURE_DEPENDS
     RELATIVE ${CMAKE_CURRENT_LIST_DIR}/ogrjoin
     ${CMAKE_CURRENT_LIST_DIR}/ogrjoin/*.py
     ${CMAKE_CURRENT_LIST_DIR}/ogrjoin/*.pyi
     ${CMAKE_CURRENT_LIST_DIR}/ogrjoin/py.typed)
foreach(file IN LISTS OJ_PYTHON_FILES)
  get_filename_component(folder ${PROJECT_BINARY_DIR}/python/ogrjoin/${file}
                         DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK ${CMAKE_CURRENT_LIST_DIR}/ogrjoin/${file}
       ${PROJECT_BINARY_DIR}/python/ogrjoin/${file} SYMBOLIC)
endforeach()
