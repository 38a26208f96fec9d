/* SPDX-License-Identifier: Apache-2.0
 *
 * cmocka with the standard headers that it wants to see first.
 */
#ifndef SUPPORT_CMOCKA_ALL_H
#define SUPPORT_CMOCKA_ALL_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
/* clang-format on */

#endif
