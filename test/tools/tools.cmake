# Helper programs for black-box tests and benchmarks; with TESTS off only on demand:
#	cmake --build build/release --target gateway_host
# A tool is one file; gateway_host is the gateway without the rest of apiserver.
file(GLOB gateway_host_PARTS CONFIGURE_DEPENDS apiserver/gateway.c apiserver/gw_*.c)
file(GLOB TOOL_SOURCES CONFIGURE_DEPENDS test/tools/*.c test/bench.d/*.c)
foreach(source ${TOOL_SOURCES})
	get_filename_component(name ${source} NAME_WE)
	add_executable(${name} ${source} ${${name}_PARTS})
	target_include_directories(${name} PRIVATE .)
	target_link_libraries(${name} PRIVATE warnings agent_common)
	set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tools
		EXCLUDE_FROM_ALL $<NOT:$<BOOL:${TESTS}>>)
endforeach()
if(TESTS)
	add_test(NAME gateway_wire COMMAND ${CMAKE_SOURCE_DIR}/test/gateway/run WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
	set_tests_properties(gateway_wire PROPERTIES TIMEOUT 300
		ENVIRONMENT GATEWAY_HOST=${CMAKE_BINARY_DIR}/tools/gateway_host)
endif()
