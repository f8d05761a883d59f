# The CUDA module, ogrjoin_cuda.so: the library loads it at run time and works
# without it. It contains code for the GPUs of this machine, and PTX of the
# newest one for later GPUs. On a machine without a GPU it contains code for
# sm_80 (also for sm_86 and sm_89) and sm_90; for other GPUs the driver compiles
# PTX at first use, which takes 4 s. With OGRJOIN_CUDA_ARCHITECTURES=all it
# contains code for the first of each major version from sm_75 on.

set(OJ_CUDA_SOURCES
  cuda/foundations/device/cuda_sort.cu
  cuda/foundations/device/cuda_scan.cu
  cuda/foundations/device/cuda_device.cu
  cuda/foundations/device/cuda_host_threads.cu
  cuda/foundations/device/cuda_pinned_stage.cu
  cuda/foundations/device/cuda_copy.cu
  cuda/foundations/device/cuda_peers.cu
  cuda/foundations/device/cuda_layer.cu
  cuda/joins/nearest/cuda_segment_cells_build.cu
  cuda/joins/nearest/cuda_nearest_segment_of_far_points.cu
  cuda/joins/nearest/cuda_nearest.cu
  cuda/foundations/rings/cuda_cell_tree_start_level.cu
  cuda/foundations/rings/cuda_polygon_cells_build.cu
  cuda/joins/within/cuda_points_in_polygons.cu
  cuda/papers/cuda_quadrants.cu
  cuda/foundations/tree/cuda_tree.cu
  cuda/joins/points/cuda_tree_distance_joins.cu
  cuda/joins/shapes/cuda_box_pairs.cu
  cuda/joins/shapes/cuda_intersects_prepare.cu
  cuda/joins/shapes/cuda_intersects.cu
  cuda/joins/shapes/cuda_candidate_screen.cu
  cuda/foundations/index/cuda_family.cu
  cuda/foundations/index/cuda_pair_order.cu
  cuda/foundations/index/cuda_pair_listing.cu
  cuda/joins/points/cuda_close_points.cu
  cuda/joins/points/cuda_points_in_boxes.cu
  cuda/joins/points/cuda_nearest_points.cu
  cuda/joins/similar_text/cuda_text_side.cu
  cuda/joins/similar_text/cuda_similar_text.cu
  cuda/papers/cuda_gssjoin.cu
  cuda/joins/similar_shapes/cuda_shape_side.cu
  cuda/joins/similar_shapes/cuda_similar_shapes.cu
  cuda/papers/cuda_topkabt.cu
  cuda/joins/similar_vectors/cuda_vector_side.cu
  cuda/joins/similar_vectors/cuda_similar_vectors.cu
  cuda/papers/cuda_lss.cu
  cuda/papers/cuda_gpics_tree.cu
  cuda/papers/cuda_gpics.cu
  cuda/foundations/index/cuda_index.cu
  cuda/foundations/index/cuda_row_shares.cu
  cuda/foundations/index/cuda_batches.cu
  cuda/foundations/index/cuda_pair_sums.cu
  cuda/foundations/index/cuda_resident_points.cu
  cuda/live/cuda_live_apply.cu
  cuda/live/cuda_live_search.cu
  cuda/live/cuda_live_regions.cu
  cuda/live/cuda_live_join.cu
  cuda/live/cuda_live.cu
  cuda/cuda_module.cu)

# Plain C. The module links no library of the project: it contains its own copies
# of these sources.
set(OJ_CUDA_PLAIN
  cuda/foundations/index/cuda_pace.c
  flatten/base/oj_status.c
  flatten/base/oj_alloc.c
  flatten/arrays/oj_matches.c)

# Run-time libraries of sanitizers do not work with CUDA's.
if(OGRJOIN_CUDA STREQUAL "OFF" OR
   (OGRJOIN_CUDA STREQUAL "AUTO" AND OGRJOIN_SANITIZE))
  return()
endif()

include(CheckLanguage)
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(OJ_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda/bin)
  mark_as_advanced(OJ_NVCC)
  if(OJ_NVCC)
    set(ENV{CUDACXX} ${OJ_NVCC})
  endif()
endif()
# OFF: the test of the compiler uses any architecture that is present.
set(CMAKE_CUDA_ARCHITECTURES OFF)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(OGRJOIN_CUDA STREQUAL "AUTO")
    message(STATUS "No nvcc: no CUDA module")
    return()
  endif()
  message(FATAL_ERROR "OGRJOIN_CUDA is ON, and there is no nvcc that works: install the CUDA toolkit, "
    "or set OGRJOIN_CUDA=OFF")
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 11.8)
  if(OGRJOIN_CUDA STREQUAL "AUTO")
    message(STATUS "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is older than 11.8: "
                   "no CUDA module")
    return()
  endif()
  message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is older than 11.8: install a newer CUDA "
    "toolkit, or set OGRJOIN_CUDA=OFF")
endif()

set(oj_cuda_list ${OGRJOIN_CUDA_ARCHITECTURES})
if(NOT oj_cuda_list)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                  OUTPUT_VARIABLE oj_cuda_here ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+\\.[0-9]" oj_cuda_here "${oj_cuda_here}")
  foreach(version IN LISTS oj_cuda_here)
    string(REPLACE "." "" number ${version})
    if(number GREATER_EQUAL 75 AND NOT number IN_LIST oj_cuda_list)
      list(APPEND oj_cuda_list ${number})
    endif()
  endforeach()
  list(SORT oj_cuda_list COMPARE NATURAL)
endif()
set(oj_cuda_virtual "")
if(NOT oj_cuda_list)
  set(oj_cuda_list 80 90)
  set(oj_cuda_virtual 75-virtual)
elseif(oj_cuda_list STREQUAL "all")
  set(oj_cuda_list "")
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-code
                  OUTPUT_VARIABLE oj_cuda_known OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX MATCHALL "sm_[0-9]+" oj_cuda_known "${oj_cuda_known}")
  list(REMOVE_DUPLICATES oj_cuda_known)
  list(SORT oj_cuda_known COMPARE NATURAL)
  set(oj_cuda_majors "")
  foreach(name IN LISTS oj_cuda_known)
    string(SUBSTRING ${name} 3 -1 number)
    math(EXPR major "${number} / 10")
    if(number EQUAL 110 AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
      continue() # Jetson Thor, an Arm machine
    endif()
    if(number GREATER_EQUAL 75 AND NOT major IN_LIST oj_cuda_majors)
      list(APPEND oj_cuda_majors ${major})
      list(APPEND oj_cuda_list ${number})
    endif()
  endforeach()
endif()
list(GET oj_cuda_list -1 oj_cuda_newest)
set(oj_cuda_codes ${oj_cuda_list})
list(TRANSFORM oj_cuda_codes APPEND "-real")
list(APPEND oj_cuda_codes ${oj_cuda_virtual} "${oj_cuda_newest}-virtual")
string(REPLACE ";" " " oj_cuda_text "${oj_cuda_list}")

add_library(ogrjoin_cuda MODULE ${OJ_CUDA_SOURCES} ${OJ_CUDA_PLAIN})
target_link_libraries(ogrjoin_cuda PRIVATE oj_flags Threads::Threads)
target_compile_definitions(ogrjoin_cuda PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:OJ_CUDA_ARCHITECTURES="sm ${oj_cuda_text}">)
# No fused multiply-add: it would change answers.
target_compile_options(ogrjoin_cuda PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:-O3;-fmad=false;-Xcompiler=-ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall;-Xcompiler=-Wextra>
  $<$<COMPILE_LANGUAGE:CUDA>:--threads=2>)
if(OGRJOIN_WERROR)
  target_compile_options(ogrjoin_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
target_link_options(ogrjoin_cuda PRIVATE
  -static-libstdc++ -static-libgcc -Wl,--no-undefined
  -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cuda/module.map)
set_target_properties(ogrjoin_cuda PROPERTIES
  PREFIX ""
  CUDA_ARCHITECTURES "${oj_cuda_codes}"
  CUDA_STANDARD 17
  CUDA_STANDARD_REQUIRED ON
  CUDA_EXTENSIONS OFF
  CUDA_RUNTIME_LIBRARY Static
  CUDA_VISIBILITY_PRESET hidden
  LINKER_LANGUAGE CXX
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda/module.map)
