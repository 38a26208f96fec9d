/* SPDX-License-Identifier: Apache-2.0
 *
 * schema/openapi.yaml, inside the program: its C file is made by the build.
 */
#ifndef PRODUCER_OPENAPI_H
#define PRODUCER_OPENAPI_H

#include <stddef.h>

/* UTF-8, ended by a NUL that the size does not count. */
extern const char producer_openapi[];
extern const size_t producer_openapi_size;

#endif
