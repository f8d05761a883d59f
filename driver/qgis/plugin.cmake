# Makes the zip of the QGIS plugin, with the folder ogrjoin, for "Install from
# ZIP" in QGIS. From the source tree the plugin runs with
# QGIS_PLUGINPATH=driver/qgis.

set(OJ_QGIS_SOURCE ${CMAKE_CURRENT_LIST_DIR}/ogrjoin)
set(OJ_QGIS_STAGE ${PROJECT_BINARY_DIR}/qgis)
set(OJ_QGIS_ZIP ${PROJECT_BINARY_DIR}/ogrjoin_qgis.zip)
file(GLOB OJ_QGIS_INPUTS CONFIGURE_DEPENDS ${OJ_QGIS_SOURCE}/*.py
     ${OJ_QGIS_SOURCE}/metadata.txt)
file(GLOB OJ_QGIS_ICONS CONFIGURE_DEPENDS ${OJ_QGIS_SOURCE}/icons/*.svg)
list(APPEND OJ_QGIS_INPUTS ${PROJECT_SOURCE_DIR}/LICENSE
     ${CMAKE_CURRENT_LIST_DIR}/README.md)
file(REMOVE_RECURSE ${OJ_QGIS_STAGE})
file(COPY ${OJ_QGIS_INPUTS} DESTINATION ${OJ_QGIS_STAGE}/ogrjoin)
file(COPY ${OJ_QGIS_ICONS} DESTINATION ${OJ_QGIS_STAGE}/ogrjoin/icons)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${OJ_QGIS_INPUTS} ${OJ_QGIS_ICONS})

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
  DEPENDS ${OJ_QGIS_INPUTS} ${OJ_QGIS_ICONS}
  COMMENT "Zipping the plugin of QGIS"
  VERBATIM)
add_custom_target(qgis_plugin ALL DEPENDS ${OJ_QGIS_ZIP})
install(FILES ${OJ_QGIS_ZIP} DESTINATION ${CMAKE_INSTALL_DATADIR}/ogrjoin
        COMPONENT command)
