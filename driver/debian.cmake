# Debian packages by CPack: libogrjoin1, libogrjoin-dev, and ogrjoin with the
# command, GDAL's driver, man page, completion and the zip for QGIS.
#
#   cmake --preset debian && cmake --build build/debian -j4
#   cd build/debian && cpack -G DEB

set(OJ_PACKAGES library=libogrjoin${PROJECT_VERSION_MAJOR} dev=libogrjoin-dev
                command=ogrjoin)
set(CPACK_PACKAGE_CONTACT "ogrjoin maintainers <maintainers@ogrjoin.invalid>"
    CACHE STRING "Who maintains the packages: NAME <ADDRESS>")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
    ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "libogrjoin${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION}-1), libgeos-dev")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "joins of two geospatial layers")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "This is the library: pairs of features \
that meet, lie in one\nanother or are near, from plain arrays or Arrow streams.")
set(CPACK_DEBIAN_DEV_DESCRIPTION
    "What programs that use the library are compiled with.")
set(CPACK_DEBIAN_COMMAND_DESCRIPTION "Each feature of one layer gets the \
attributes of those of\nanother that it intersects, lies in or is nearest to.\nA \
command, a driver of GDAL, and a plugin for QGIS.")

# The changelog and the copyright in the document folder of each package.
string(TIMESTAMP OJ_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(CPACK_COMPONENTS_ALL "")
foreach(pair IN LISTS OJ_PACKAGES)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 component)
  list(GET pair 1 package)
  string(TOUPPER ${component} name)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_DEBIAN_${name}_PACKAGE_NAME ${package})
  set(changelog ${PROJECT_BINARY_DIR}/debian/${package}/changelog.Debian)
  file(WRITE ${changelog} "${package} (${PROJECT_VERSION}-1) unstable; "
    "urgency=medium\n\n  * Version ${PROJECT_VERSION}.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${OJ_DATE}\n")
  execute_process(COMMAND gzip -9nf ${changelog})
  install(FILES ${changelog}.gz DESTINATION share/doc/${package}
          COMPONENT ${component})
  install(FILES LICENSE RENAME copyright DESTINATION share/doc/${package}
          COMPONENT ${component})
endforeach()
install(CODE "file(GLOB pages
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/man/man1/*.1\")
  execute_process(COMMAND gzip -9nf \${pages})" COMPONENT command)
include(CPack)
