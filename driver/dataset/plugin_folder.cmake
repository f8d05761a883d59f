# Where the driver is installed: the folder gdalplugins beside the library.
# GDAL may look in another folder, for example if GDAL is a package in /usr,
# and ogrjoin is in /usr/local. Then a link to the driver is made there if the
# folder is writable. No link is made if the install prefix is not the
# configured one: a staged or moved tree changes nothing outside of itself.
set(OGRJOIN_GDAL_PLUGINS "" CACHE PATH
    "The folder in which GDAL looks for plugins (empty: found out)")
set(OJ_GDAL_PLUGINS ${OGRJOIN_GDAL_PLUGINS})
if(NOT OJ_GDAL_PLUGINS)
  # Beside libgdal, as GDAL's own build puts it.
  set(library "")
  foreach(property IMPORTED_LOCATION_RELEASE IMPORTED_LOCATION_RELWITHDEBINFO
                   IMPORTED_LOCATION_NONE IMPORTED_LOCATION)
    if(NOT library)
      get_target_property(library GDAL::GDAL ${property})
    endif()
  endforeach()
  if(library)
    get_filename_component(OJ_GDAL_PLUGINS ${library} DIRECTORY)
    # Before 3.5 GDAL looked in PREFIX/lib, whatever the folder of the library.
    if(GDAL_VERSION VERSION_LESS 3.5)
      string(REGEX REPLACE "/lib/.*" "/lib" OJ_GDAL_PLUGINS
             ${OJ_GDAL_PLUGINS})
    endif()
    string(APPEND OJ_GDAL_PLUGINS /gdalplugins)
  endif()
endif()

# If the driver is loaded through a link, $ORIGIN is the folder of the link. So
# the library's folder is the second entry.
set_target_properties(ogr_JOIN PROPERTIES
  INSTALL_RPATH "$ORIGIN/..;${CMAKE_INSTALL_FULL_LIBDIR}")
install(TARGETS ogr_JOIN
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gdalplugins
        COMPONENT command)
set(OJ_PLUGIN ${CMAKE_INSTALL_FULL_LIBDIR}/gdalplugins/ogr_JOIN.so)
set(OJ_PLUGIN_LINK ${OJ_GDAL_PLUGINS}/ogr_JOIN.so)
if(OJ_GDAL_PLUGINS AND NOT OJ_PLUGIN STREQUAL OJ_PLUGIN_LINK)
  install(CODE "
    if(CMAKE_INSTALL_PREFIX STREQUAL \"${CMAKE_INSTALL_PREFIX}\" AND
       \"\$ENV{DESTDIR}\" STREQUAL \"\")
      execute_process(COMMAND ln -sfn \"${OJ_PLUGIN}\" \"${OJ_PLUGIN_LINK}\"
                      RESULT_VARIABLE failed ERROR_QUIET)
      if(failed)
        message(WARNING \"${OJ_GDAL_PLUGINS} cannot be written to: set \"
                        \"GDAL_DRIVER_PATH to the folder of ${OJ_PLUGIN}\")
      else()
        list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"${OJ_PLUGIN_LINK}\")
        message(STATUS \"Linked: ${OJ_PLUGIN_LINK}\")
      endif()
    endif()")
endif()
