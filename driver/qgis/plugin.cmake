# The plugin of QGIS as it is installed there: one zip with the folder ogrjoin.
# QGIS takes it by "Install from ZIP"; from the tree it works by
# QGIS_PLUGINPATH=driver/qgis.

set(OJ_QGIS_FILES
  LICENSE
  README.md
  metadata.txt
  __init__.py
  plugin.py
  provider.py
  command.py
  source.py
  destination.py
  parameters.py
  algorithm.py
  join_by_nearest.py
  join_by_location.py
  join_by_location_summary.py
  join_within_distance.py
  validate_join.py
  save_live_layer.py
  icons/__init__.py
  icons/ogrjoin.svg
  icons/joinbynearest.svg
  icons/joinbylocation.svg
  icons/joinbylocationsummary.svg
  icons/joinwithindistance.svg
  icons/validatejoin.svg
  icons/savelivelayer.svg)

set(OJ_QGIS_SOURCE ${CMAKE_CURRENT_LIST_DIR}/ogrjoin)
set(OJ_QGIS_STAGE ${PROJECT_BINARY_DIR}/qgis)
set(OJ_QGIS_ZIP ${PROJECT_BINARY_DIR}/ogrjoin_qgis.zip)
set(OJ_QGIS_INPUTS)
file(REMOVE_RECURSE ${OJ_QGIS_STAGE})
foreach(name IN LISTS OJ_QGIS_FILES)
  set(input ${OJ_QGIS_SOURCE}/${name})
  if(name STREQUAL "LICENSE")
    set(input ${PROJECT_SOURCE_DIR}/LICENSE)
  elseif(name STREQUAL "README.md")
    set(input ${CMAKE_CURRENT_LIST_DIR}/README.md)
  endif()
  list(APPEND OJ_QGIS_INPUTS ${input})
  configure_file(${input} ${OJ_QGIS_STAGE}/ogrjoin/${name} COPYONLY)
endforeach()

# The version is the project's.
file(STRINGS ${OJ_QGIS_SOURCE}/metadata.txt OJ_QGIS_VERSION REGEX "^version=")
if(NOT OJ_QGIS_VERSION STREQUAL "version=${PROJECT_VERSION}")
  message(FATAL_ERROR "driver/qgis/ogrjoin/metadata.txt says "
                      "${OJ_QGIS_VERSION}, the project ${PROJECT_VERSION}")
endif()

add_custom_command(OUTPUT ${OJ_QGIS_ZIP}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${OJ_QGIS_ZIP}
  COMMAND ${CMAKE_COMMAND} -E tar cf ${OJ_QGIS_ZIP} --format=zip ogrjoin
  WORKING_DIRECTORY ${OJ_QGIS_STAGE}
  DEPENDS ${OJ_QGIS_INPUTS}
  COMMENT "Zipping the plugin of QGIS"
  VERBATIM)
add_custom_target(qgis_plugin ALL DEPENDS ${OJ_QGIS_ZIP})
install(FILES ${OJ_QGIS_ZIP} DESTINATION ${CMAKE_INSTALL_DATADIR}/ogrjoin)
