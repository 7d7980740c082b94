# Helper programs for black-box tests and benchmarks. Not part of the default build:
#	cmake --build build/debug --target gateway_host
file(GLOB TOOL_SOURCES CONFIGURE_DEPENDS test/tools/*.c test/bench.d/*.c)
foreach(source ${TOOL_SOURCES})
	get_filename_component(name ${source} NAME_WE)
	add_executable(${name} EXCLUDE_FROM_ALL ${source})
	target_link_libraries(${name} PRIVATE warnings apiserver_lib)
	set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tools)
endforeach()
