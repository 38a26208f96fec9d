# SPDX-License-Identifier: Apache-2.0
"""The contract tester makes simple texts and so the same key again and again, for calls that are not the same: each
would be 422, and nothing behind the key would be tried. A key that is well-formed is made new for each call."""
import uuid

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    del context, kwargs
    component = case.meta and case.meta.components.get("header")
    is_good = component is None or component.mode.is_positive
    if is_good and "Idempotency-Key" in (case.headers or {}):
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
