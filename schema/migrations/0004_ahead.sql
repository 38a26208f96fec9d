-- SPDX-License-Identifier: Apache-2.0
--
-- What is acknowledged while an earlier event of the lane still waits is settled too, ahead of the place.

ALTER TABLE onceward.lane_progress ADD COLUMN ahead_from bigint;
COMMENT ON COLUMN onceward.lane_progress.ahead_from IS
    'least seq of a row whose settled_ids hold ids that are not behind this row''s place; null: none do';
