# SPDX-License-Identifier: Apache-2.0
#
# The two functions that carry every directory file (and one for programs):
#   onceward_module(name SOURCES … USES … PRIVATE …)    a static library of lib/
#   onceward_program(name SOURCES … USES …)             a service library without main.c, and its executable
#   onceward_test(test_x LABEL … SOURCES … USES … NEEDS …)
#   onceward_fuzz(fuzz_x USES … PRIVATE … INCLUDES …)      a fuzz target, whose corpus runs as a test
#   onceward_script_test(test_x LABEL … NEEDS …)         a test that is test_x.sh; its argument is the folder of the programs
# A module shows only its own include folder; what it USES, it shows on; what is PRIVATE stays inside.

add_library(onceward_flags INTERFACE)
add_library(onceward::flags ALIAS onceward_flags)
target_compile_options(onceward_flags INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes
    -Wformat=2 -Wundef -Wvla -Wswitch-enum -Wno-string-conversion -fno-common
    $<$<BOOL:${ONCEWARD_WERROR}>:-Werror>
    $<$<CONFIG:RelWithDebInfo>:-fstack-protector-strong>)
target_link_options(onceward_flags INTERFACE $<$<CONFIG:RelWithDebInfo>:-Wl,-z,relro,-z,now>)
target_compile_definitions(onceward_flags INTERFACE _GNU_SOURCE
    ONCEWARD_VERSION="${PROJECT_VERSION}"
    $<$<BOOL:${ONCEWARD_FAILPOINTS}>:ONCEWARD_FAILPOINTS>
    $<$<CONFIG:RelWithDebInfo>:_FORTIFY_SOURCE=2>)

function(onceward_module name)
    cmake_parse_arguments(ARG "" "" "SOURCES;USES;PRIVATE" ${ARGN})
    add_library(onceward_${name} STATIC ${ARG_SOURCES})
    add_library(onceward::${name} ALIAS onceward_${name})
    target_include_directories(onceward_${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)
    list(TRANSFORM ARG_USES PREPEND onceward::)
    target_link_libraries(onceward_${name} PUBLIC ${ARG_USES} PRIVATE onceward::flags ${ARG_PRIVATE})
endfunction()

function(onceward_program name)
    cmake_parse_arguments(ARG "" "BINARY" "SOURCES;USES;PRIVATE" ${ARGN})
    add_library(onceward_${name}_service STATIC ${ARG_SOURCES})
    add_library(onceward::${name}_service ALIAS onceward_${name}_service)
    target_include_directories(onceward_${name}_service PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
    list(TRANSFORM ARG_USES PREPEND onceward::)
    target_link_libraries(onceward_${name}_service PUBLIC ${ARG_USES} PRIVATE onceward::flags ${ARG_PRIVATE})
    add_executable(${ARG_BINARY} main.c)
    target_link_libraries(${ARG_BINARY} PRIVATE onceward_${name}_service onceward::flags)
    install(TARGETS ${ARG_BINARY} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

function(onceward_test name)
    cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;USES;PRIVATE;NEEDS" ${ARGN})
    if(NOT ARG_SOURCES)
        set(ARG_SOURCES ${name}.c)
    endif()
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 60)
    endif()
    add_executable(${name} ${ARG_SOURCES})
    list(TRANSFORM ARG_USES PREPEND onceward::)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support)
    target_compile_definitions(${name} PRIVATE ONCEWARD_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                               ONCEWARD_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
    # A test that NEEDS postgres or kafka is given that service's fixture, and fails where the service is missing.
    list(TRANSFORM ARG_NEEDS REPLACE "(.+)" "onceward::\\1_fixture" OUTPUT_VARIABLE fixtures)
    target_link_libraries(${name} PRIVATE ${fixtures} ${ARG_USES} ${ARG_PRIVATE} PkgConfig::CMOCKA onceward::flags)
    onceward_add_test(${name})
endfunction()

# For the two functions around it, whose variables it reads: the test by its label, unless it needs a Kafka and none is
# wanted.
macro(onceward_add_test)
    if(ONCEWARD_KAFKA_TESTS OR NOT "kafka" IN_LIST ARG_NEEDS)
        add_test(NAME ${ARG_LABEL}.${name} COMMAND ${ARGN})
        math(EXPR timeout "${ARG_TIMEOUT} * ${ONCEWARD_TIMEOUT_FACTOR}")
        set_tests_properties(${ARG_LABEL}.${name} PROPERTIES LABELS "${ARG_LABEL};${ARG_NEEDS}" TIMEOUT ${timeout})
    endif()
endmacro()

# The corpus is tests/fuzz/corpus/x: inputs that are worth keeping, and every input that once found a fault.
function(onceward_fuzz name)
    cmake_parse_arguments(ARG "" "" "USES;PRIVATE;INCLUDES" ${ARGN})
    add_executable(${name} ${name}.c fuzz_kit.c)
    list(TRANSFORM ARG_USES PREPEND onceward::)
    target_link_libraries(${name} PRIVATE onceward::base ${ARG_USES} ${ARG_PRIVATE} onceward::flags)
    list(TRANSFORM ARG_INCLUDES PREPEND ${PROJECT_SOURCE_DIR}/)
    target_include_directories(${name} PRIVATE ${ARG_INCLUDES})
    string(REPLACE "fuzz_" "" corpus ${name})
    set(run ${name} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${corpus})
    if(ONCEWARD_FUZZER)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        list(APPEND run -runs=0)
    else()
        target_sources(${name} PRIVATE fuzz_main.c)
    endif()
    add_dependencies(fuzz ${name})
    add_test(NAME unit.${name} COMMAND ${run})
    set_tests_properties(unit.${name} PROPERTIES LABELS "unit;fuzz" TIMEOUT 60)
endfunction()

function(onceward_script_test name)
    cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "NEEDS" ${ARGN})
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 60)
    endif()
    onceward_add_test(${CMAKE_CURRENT_SOURCE_DIR}/${name}.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
endfunction()
