# SPDX-License-Identifier: Apache-2.0
#
# Third parties, each linked PRIVATE by the one module that may include it.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(PQ REQUIRED IMPORTED_TARGET libpq)
pkg_check_modules(RDKAFKA REQUIRED IMPORTED_TARGET rdkafka)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(UV REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

# llhttp: pkg-config where it exists; Debian 12 ships its sources (package node-llhttp).
pkg_check_modules(LLHTTP QUIET IMPORTED_TARGET libllhttp)
if(TARGET PkgConfig::LLHTTP)
    add_library(onceward_llhttp INTERFACE)
    target_link_libraries(onceward_llhttp INTERFACE PkgConfig::LLHTTP)
else()
    find_path(LLHTTP_INCLUDE_DIR llhttp.h PATHS /usr/share/include/llhttp REQUIRED NO_DEFAULT_PATH)
    find_path(LLHTTP_SOURCE_DIR llhttp.c PATHS /usr/share/llhttp REQUIRED NO_DEFAULT_PATH)
    add_library(onceward_llhttp STATIC ${LLHTTP_SOURCE_DIR}/llhttp.c ${LLHTTP_SOURCE_DIR}/api.c ${LLHTTP_SOURCE_DIR}/http.c)
    target_include_directories(onceward_llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE_DIR})
    target_compile_options(onceward_llhttp PRIVATE -w)
endif()
add_library(onceward::llhttp ALIAS onceward_llhttp)
