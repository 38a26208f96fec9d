/* SPDX-License-Identifier: Apache-2.0
 *
 * onceward: looks after a deployment from a terminal or a script.
 */
#include "cli.h"

#include "base/log.h"

int main(int argc, char **argv)
{
    log_init("onceward", LOG_ERROR, stderr);
    return cli_main(argc, argv, stdout, stderr);
}
