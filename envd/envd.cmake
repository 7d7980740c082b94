# envd, the daemon inside a sandbox: one static program without OpenSSL, libcurl or libuuid. It
# takes from common/ only what it needs (base and the HTTP server, without TLS). In a sanitizer
# build it is linked dynamically, since sanitizers need that.
pkg_check_modules(MD REQUIRED IMPORTED_TARGET libmd)

set(ENVD_BASE alloc bug clock err fsutil json log loop map rand str str_code)
file(GLOB ENVD_COMMON CONFIGURE_DEPENDS common/http/*.c)
list(FILTER ENVD_COMMON EXCLUDE REGEX "/tls[^/]*\\.c$")
foreach(name ${ENVD_BASE})
	list(APPEND ENVD_COMMON ${CMAKE_SOURCE_DIR}/common/base/${name}.c)
endforeach()

set(ENVD_STATIC OFF)
if(NOT SAN)
	set(ENVD_STATIC ON)
endif()

file(GLOB ENVD_SOURCES CONFIGURE_DEPENDS envd/*.c)
list(FILTER ENVD_SOURCES EXCLUDE REGEX "/main\\.c$")
add_library(envd_lib STATIC ${ENVD_SOURCES} ${ENVD_COMMON})
target_include_directories(envd_lib PUBLIC . common)
set_target_properties(envd_lib PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(envd_lib PRIVATE warnings PUBLIC llhttp)

# The libraries as archives for the static program, as usual ones for tests and sanitizers.
add_library(envd_libs INTERFACE)
if(ENVD_STATIC)
	foreach(name event_core jansson md z)
		find_library(ENVD_${name}_A lib${name}.a REQUIRED)
		target_link_libraries(envd_libs INTERFACE ${ENVD_${name}_A})
	endforeach()
	target_link_libraries(envd_libs INTERFACE m)
else()
	target_link_libraries(envd_libs INTERFACE PkgConfig::EVENT PkgConfig::JANSSON PkgConfig::MD ZLIB::ZLIB)
endif()
target_link_libraries(envd_lib PUBLIC envd_libs)

if(EXISTS ${CMAKE_SOURCE_DIR}/envd/main.c)
	add_executable(envd envd/main.c)
	target_link_libraries(envd PRIVATE warnings envd_lib)
	set_target_properties(envd PROPERTIES POSITION_INDEPENDENT_CODE ON
		RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
	if(ENVD_STATIC)
		target_sources(envd PRIVATE envd/static/no_resolver.c)
		target_link_options(envd PRIVATE -static-pie)
		if(CMAKE_BUILD_TYPE STREQUAL "Release")
			target_link_options(envd PRIVATE -s)
		endif()
	endif()
	install(TARGETS envd RUNTIME DESTINATION bin)
endif()

# The program from outside: one test for each file of test/envd. They need root.
if(TESTS)
	file(GLOB ENVD_OUTSIDE CONFIGURE_DEPENDS test/envd/test_*.py)
	foreach(source ${ENVD_OUTSIDE})
		get_filename_component(name ${source} NAME_WE)
		string(REGEX REPLACE "^test_" "envd_outside_" name ${name})
		add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E env ENVD_BIN=$<TARGET_FILE:envd> python3 -W ignore ${source}
			WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/test/envd)
	endforeach()
endif()
