# cmake -DOUTPUT=... -DHEADERS=a;b;c -P exports.cmake: writes a version script
# with every function that the headers declare with OJ_EXPORT. Hidden visibility
# alone does not do it: the compiler makes the names of functions with clones
# for several instruction sets (algs/base/cpu_vector.h) visible in any
# case.
set(names "")
foreach(header IN LISTS HEADERS)
  file(READ "${header}" text)
  string(REGEX REPLACE "/\\*[^*]*\\*+([^/*][^*]*\\*+)*/" " " text "${text}")
  string(REPLACE ";" " ; " text "${text}")
  string(REGEX MATCHALL "OJ_EXPORT[^;(]*[ *\n]oj_[a-z0-9_]+[(]" found "${text}")
  foreach(declaration IN LISTS found)
    string(REGEX REPLACE ".*[ *\n](oj_[a-z0-9_]+)[(]$" "\\1" name
           "${declaration}")
    list(APPEND names ${name})
  endforeach()
endforeach()
if(NOT names)
  message(FATAL_ERROR "no function is declared with OJ_EXPORT")
endif()
list(SORT names)
list(REMOVE_DUPLICATES names)
list(JOIN names ";\n        " names)
file(WRITE "${OUTPUT}" "{
    global:
        ${names};
    local:
        *;
};
")
