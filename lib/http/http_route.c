/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the route of a target. Paths are compared as they were sent: an
 * escaped letter or a trailing slash is another path, and there is none.
 */
#include "http_private.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

/* Whether the path has the pattern's form. Notes where its parameters begin. */
static bool matches(const char *pattern, const char *path, const char **ret_params)
{
    size_t param_count = 0;
    while (*pattern != '\0') {
        if (*pattern != '{') {
            if (*pattern++ != *path++) {
                return false;
            }
            continue;
        }
        assert(param_count < HTTP_PARAM_COUNT_MAX);
        size_t size = strcspn(path, "/");
        if (size == 0) {
            return false;
        }
        ret_params[param_count++] = path;
        path += size;
        pattern = strchr(pattern, '}');
        assert(pattern != NULL);
        pattern++;
    }
    return *path == '\0';
}

/* Where a route names the path letter by letter, the path is that resource and no parameter of another pattern. */
static bool is_literal_path(const struct http_route *routes, size_t route_count, const char *path)
{
    for (size_t i = 0; i < route_count; i++) {
        if (strcmp(routes[i].pattern, path) == 0) {
            return true;
        }
    }
    return false;
}

static void allow_add(char allow[HTTP_ALLOW_SIZE], const char *method)
{
    size_t used = strlen(allow);
    bool is_whole = text_format(allow + used, HTTP_ALLOW_SIZE - used, "%s%s%s", used == 0 ? "" : ", ", method,
                                strcmp(method, "GET") == 0 ? ", HEAD" : "");
    assert(is_whole);
}

enum http_match http_route_find(const struct http_route *routes, size_t route_count, const char *method, char *path,
                                size_t *ret_index, const char **ret_params, char allow[HTTP_ALLOW_SIZE])
{
    bool is_literal = is_literal_path(routes, route_count, path);
    allow[0] = '\0';
    for (size_t i = 0; i < route_count; i++) {
        const char *params[HTTP_PARAM_COUNT_MAX] = {NULL};
        if ((is_literal && strcmp(routes[i].pattern, path) != 0) || !matches(routes[i].pattern, path, params)) {
            continue;
        }
        if (strcmp(routes[i].method, method) != 0) {
            allow_add(allow, routes[i].method);
            continue;
        }
        for (size_t k = 0; k < HTTP_PARAM_COUNT_MAX && params[k] != NULL; k++) {
            path[(size_t)(params[k] - path) + strcspn(params[k], "/")] = '\0';
        }
        memcpy(ret_params, params, sizeof params);
        *ret_index = i;
        return HTTP_MATCH_FOUND;
    }
    return allow[0] == '\0' ? HTTP_MATCH_NO_PATH : HTTP_MATCH_NO_METHOD;
}
